package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/fleet"
	"muster/jobs/queue"
)

// toolRounds is less than elsewhere: the slowest of them takes minutes for one.
const toolRounds = 1

// tool is another program that runs a command on many hosts.
type tool struct {
	name string
	most int                                      // at a time; more makes it slower; 0: as many as one likes
	args func(w toolFiles, parallel int) []string // the program first
}

// toolFiles are what the programs of others read.
type toolFiles struct{ config, hosts, inventory string }

// tools lists the peers. Each of them calls ssh with the same configuration.
func tools() []tool {
	return []tool{
		{"ansible, raw", 64, func(w toolFiles, parallel int) []string {
			return []string{"ansible", "all", "-i", w.inventory, "-f", strconv.Itoa(parallel),
				"-m", "raw", "-a", "true", "--ssh-common-args", "-F " + w.config}
		}},
		{"clush", 0, func(w toolFiles, parallel int) []string {
			return []string{"clush", "-q", "-S", "--hostfile", w.hosts, "-f", strconv.Itoa(parallel),
				"-o", "-F " + w.config, "true"}
		}},
		{"parallel-ssh", 0, func(w toolFiles, parallel int) []string {
			return []string{"parallel-ssh", "-h", w.hosts, "-p", strconv.Itoa(parallel), "-t", "0",
				"-x", "-F " + w.config, "true"}
		}},
	}
}

// beside compares a rollout with what other programs need for the same hosts.
func beside(ctx context.Context, b *bench) (rows []row, err error) {
	h, err := b.newHosts(b.size(3000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	files, err := b.writeForTools(h.list)
	if err != nil {
		return nil, err
	}
	for _, parallel := range []int{64, 256} {
		more, err := b.besideAt(ctx, h, files, parallel)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// besideAt compares with so many hosts at a time.
func (b *bench) besideAt(ctx context.Context, h *hosts, files toolFiles, parallel int) (rows []row,
	err error) {
	size := nodeSize{children: sshChildren, slots: parallel / sshChildren}
	n, err := b.newNode(ctx, size, func(q *queue.Queue) error {
		return q.Publish(ctx, inventory, h.list, nil)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()

	all := []contender{n.rollout("muster", h.list, "true"),
		h.loop("bare loop", h.list, "true", parallel)}
	for _, t := range tools() {
		if t.most > 0 && parallel > t.most {
			continue
		}
		all = append(all, b.visit(t, files, len(h.list), parallel))
	}
	got, err := b.race(ctx, min(b.rounds, toolRounds), all)
	if err != nil {
		return nil, err
	}
	at := fmt.Sprintf(", %d at a time", parallel)
	mine := newRow("muster"+at, "hosts/s", got[0])
	rows = append(rows, mine)
	for i, c := range all[1:] {
		rows = append(rows, newRow(c.name+at, "hosts/s", got[i+1]).to("muster", mine))
	}
	return rows, nil
}

// visit makes a contender of a program.
func (b *bench) visit(t tool, files toolFiles, n, parallel int) contender {
	return contender{t.name, func(ctx context.Context) (float64, error) {
		args := t.args(files, parallel)
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.SysProcAttr = apart()
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "LC_ALL=C.UTF-8",
			"ANSIBLE_SSH_USETTY=False", // its raw asks for a terminal, which pretended hosts have not
			"ANSIBLE_NOCOLOR=1", "ANSIBLE_LOCALHOST_WARNING=0", "ANSIBLE_DEPRECATION_WARNINGS=0"}
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return 0, fmt.Errorf("%w: %s", err, failing(said.Bytes()))
		}
		return perSecond(n, began), nil
	}}
}

// failing picks what tells of a failure; the end of the text, if there is nothing.
func failing(said []byte) string {
	for line := range strings.Lines(string(said)) {
		if strings.Contains(line, "FAIL") || strings.Contains(line, "UNREACHABLE") ||
			strings.Contains(line, "exited with") {
			i := strings.Index(string(said), line)
			return lastLines(said[:min(len(said), i+len(line)+300)], 5)
		}
	}
	return lastLines(said, 5)
}

// writeForTools writes the hosts down as others want them, by address: so one
// section of the configuration serves all, and no time goes into finding it.
func (b *bench) writeForTools(list []fleet.Host) (w toolFiles, err error) {
	w = toolFiles{
		config:    filepath.Join(b.dir, "ssh_config"),
		hosts:     filepath.Join(b.dir, "hosts.txt"),
		inventory: filepath.Join(b.dir, "hosts.ini"),
	}
	known := filepath.Join(b.dir, "known_hosts")
	var keys, addresses strings.Builder
	for _, h := range list {
		fmt.Fprintln(&addresses, h.Address)
		for _, key := range h.HostKeys {
			fmt.Fprintf(&keys, "[%s]:%d %s\n", h.Address, h.Port, key)
		}
	}
	first := list[0]
	if i := slices.IndexFunc(list, func(h fleet.Host) bool {
		return h.Port != first.Port || h.User != first.User || net.ParseIP(h.Address) == nil
	}); i >= 0 {
		return w, fmt.Errorf("%s is not reached in the way of %s", list[i].Name, first.Name)
	}
	config := fmt.Sprintf(`Host *
  Port %d
  User %s
  IdentityFile %s
  IdentitiesOnly yes
  UserKnownHostsFile %s
  StrictHostKeyChecking yes
  BatchMode yes
  LogLevel ERROR
`, first.Port, first.User, first.Key, known)
	return w, errors.Join(
		os.WriteFile(w.config, []byte(config), 0o600),
		os.WriteFile(known, []byte(keys.String()), 0o600),
		os.WriteFile(w.hosts, []byte(addresses.String()), 0o600),
		os.WriteFile(w.inventory, []byte(addresses.String()), 0o600))
}
