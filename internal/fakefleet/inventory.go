package fakefleet

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"muster/fleet"
)

// customers, roles and models are given out in turn; the shares differ so that selectors can
// distinguish hosts. The model decides the system.
var (
	customers = []string{"acme", "acme", "acme", "globex", "globex", "initech", "umbrella"}
	roles     = []string{"fw", "fw", "fw", "fw", "vpn"}
	models    = []string{"x200", "x200", "x200", "x400", "x400", "x100"}
)

// nameOf and addressOf count from fw0001 at 127.77.0.1.
func nameOf(i int) string { return fmt.Sprintf("fw%04d", i+1) }

func addressOf(i int) string { return fmt.Sprintf("127.77.%d.%d", (i+1)>>8, (i+1)&255) }

func (h *host) model() string { return models[h.index%len(models)] }

// hostAt returns the host at a dialled address; nil if there is none.
func (f *Fleet) hostAt(a net.Addr) *host {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return nil
	}
	ip := tcp.IP.To4()
	if ip == nil || ip[0] != 127 || ip[1] != 77 {
		return nil
	}
	i := int(ip[2])<<8 + int(ip[3]) - 1
	if i < 0 || i >= len(f.hosts) {
		return nil
	}
	return f.hosts[i]
}

// Port returns the one port of all hosts except those that refuse.
func (f *Fleet) Port() int { return f.port }

// Hosts returns the inventory. Key is empty until WriteFiles has written it.
func (f *Fleet) Hosts() []fleet.Host {
	hosts := make([]fleet.Host, len(f.hosts))
	for i, h := range f.hosts {
		hosts[i] = fleet.Host{
			Name:     h.name,
			Address:  addressOf(i),
			Port:     f.port,
			User:     f.config.User,
			HostKeys: []string{h.keyLine()},
			Customer: customers[i%len(customers)],
			Zone:     fleet.DefaultZone,
			Fence:    fleet.FenceNone,
			Labels:   map[string]string{"role": roles[i%len(roles)], "model": h.model()},
		}
		if path := f.keyPath.Load(); path != nil {
			hosts[i].Key = *path
		}
		if h.personality == Refuse {
			hosts[i].Port = f.closed
		}
	}
	return hosts
}

// The files that WriteFiles writes.
const (
	InventoryFile = "fleet.yaml"
	KeyFile       = "id_ed25519"
)

// WriteFiles writes the inventory and the private key of the operator into a
// directory that exists. From then on Hosts names that key.
func (f *Fleet) WriteFiles(dir string) error {
	path, err := filepath.Abs(filepath.Join(dir, KeyFile))
	if err != nil {
		return err
	}
	key, err := f.PrivateKey()
	if err != nil {
		return err
	}
	if err := writeSecret(path, key); err != nil {
		return err
	}
	f.keyPath.Store(&path)
	return os.WriteFile(filepath.Join(dir, InventoryFile), f.inventory(path), 0o644)
}

// writeSecret also sets the mode of a file that existed before.
func writeSecret(path string, secret []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = file.Chmod(0o600)
	if err == nil {
		_, err = file.Write(secret)
	}
	return errors.Join(err, file.Close())
}

// inventory is YAML. All values are plain words, but the path of the key and
// the login name, which came from outside and are quoted.
func (f *Fleet) inventory(key string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "defaults: {user: %q, port: %d, key: %q, fence: none}\n",
		f.config.User, f.port, key)
	fmt.Fprintln(&b, "hosts:")
	for _, h := range f.Hosts() {
		fmt.Fprintf(&b, "  - name: %s\n    address: %s\n", h.Name, h.Address)
		if h.Port != f.port {
			fmt.Fprintf(&b, "    port: %d\n", h.Port)
		}
		fmt.Fprintf(&b, "    customer: %s\n    zone: %s\n", h.Customer, h.Zone)
		fmt.Fprintf(&b, "    labels: {role: %s, model: %s}\n", h.Labels["role"], h.Labels["model"])
		fmt.Fprintf(&b, "    host_key: %q\n", h.HostKeys[0])
	}
	return b.Bytes()
}
