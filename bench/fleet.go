package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
	"muster/internal/fakefleet"
)

// fleetRole makes this program the pretended hosts: a process of its own, so that
// its memory and its garbage are nobody's who is measured.
const fleetRole = "fleet"

// ready is what the fleet says when it listens.
const ready = "ready\n"

// serveFleet pretends hosts until in ends.
func serveFleet(args []string, in io.Reader, out io.Writer) (err error) {
	f := flag.NewFlagSet(fleetRole, flag.ContinueOnError)
	n := f.Int("hosts", 1, "how many")
	dir := f.String("dir", "", "where to write the inventory and the key")
	if err := f.Parse(args); err != nil {
		return err
	}
	hosts, err := fakefleet.Start(fakefleet.Config{Hosts: *n, Seed: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hosts.Close()) }()
	if err := hosts.WriteFiles(*dir); err != nil {
		return err
	}
	if _, err := io.WriteString(out, ready); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// hosts are pretended ones in another process.
type hosts struct {
	*process
	list []fleet.Host
	key  ssh.Signer
}

// newHosts starts pretended hosts.
func (b *bench) newHosts(n int) (*hosts, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := b.start("fleet", self, fleetRole, "-hosts", strconv.Itoa(n), "-dir", b.dir)
	if err != nil {
		return nil, err
	}
	h := &hosts{process: p}
	if err := h.read(b.dir); err != nil {
		return nil, errors.Join(p.explain(err), p.stop())
	}
	return h, nil
}

// read reads what the fleet has written, once it listens.
func (h *hosts) read(dir string) error {
	said, err := bufio.NewReader(h.out).ReadString('\n')
	if said != ready {
		return errors.Join(fmt.Errorf("it says %q, not %q", said, ready), err)
	}
	return h.readFiles(dir)
}

// readFiles reads the inventory and the key.
func (h *hosts) readFiles(dir string) error {
	file := filepath.Join(dir, fakefleet.InventoryFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	inv, err := fleet.Parse(fleet.Source{Name: file, Data: data})
	if err != nil {
		return err
	}
	h.list = inv.Hosts()
	if data, err = os.ReadFile(filepath.Join(dir, fakefleet.KeyFile)); err != nil {
		return err
	}
	h.key, err = ssh.ParsePrivateKey(data)
	return err
}

// namesOf lists the names of hosts.
func namesOf(list []fleet.Host) []string {
	out := make([]string, len(list))
	for i, h := range list {
		out[i] = h.Name
	}
	return out
}

// outcomes are those that are not zero, for an error.
func outcomes[K ~string](counts map[K]int) string {
	var words []string
	for o, n := range counts {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, o))
		}
	}
	return strings.Join(words, ", ")
}
