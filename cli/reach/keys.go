package reach

import (
	"cmp"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/settings"
)

// KeyFlags choose the key for connections from this machine.
type KeyFlags struct {
	identity string
	command  *cobra.Command // has the flag config
}

// Add adds the flags --identity and --config to a command.
func (k *KeyFlags) Add(c *cobra.Command) {
	c.Flags().StringVarP(&k.identity, "identity", "i", "",
		"private key `file`; default that of the inventory, else the agent")
	if k.command = c; c.Flags().Lookup("config") == nil {
		c.Flags().String("config", os.Getenv("MUSTER_CONFIG"), "configuration `file` of a node, "+
			"which says where the passphrase of keys is (default "+settings.DefaultConfig+
			" if it can be read)")
	}
}

// Client returns a client for hosts, which the caller closes. The configuration of a node has its
// timeouts and passphrases; an operator may have no configuration, or may not be allowed to read
// it.
func (k KeyFlags) Client() (*remote.Client, error) {
	cfg := remote.Default()
	given := k.command.Flags().Lookup("config")
	file := cmp.Or(given.Value.String(), settings.DefaultConfig)
	switch s, err := settings.Read(settings.Source{File: file, Env: os.Environ()}); {
	case err == nil:
		cfg = s.Remote()
	case given.Changed:
		return nil, err
	}
	if cfg.AgentSocket == "" {
		cfg.AgentSocket = os.Getenv("SSH_AUTH_SOCK")
	}
	return remote.New(cfg)
}

// Key decides which key logs in to a host and its jump hosts: the keys of the inventory are files
// of nodes, and may be missing on this machine.
func (k KeyFlags) Key(h fleet.Host) fleet.Host {
	if k.identity != "" {
		h.Key, h.Certificate = k.identity, ""
	} else if k.lacks(h.Key) {
		h.Key, h.Certificate = "", ""
	}
	h.Jump = slices.Clone(h.Jump)
	for i := range h.Jump {
		if hop := &h.Jump[i]; k.lacks(hop.Key) {
			hop.Key, hop.Certificate = k.identity, ""
		}
	}
	return h
}

// lacks reports that a key file is not on this machine, and that there is a replacement for it.
func (k KeyFlags) lacks(key string) bool {
	_, err := os.Stat(key)
	return key != "" && err != nil && (k.identity != "" || os.Getenv("SSH_AUTH_SOCK") != "")
}

// Address returns the address and the port of a host.
func Address(h fleet.Host) string {
	return net.JoinHostPort(h.Address, strconv.Itoa(h.Port))
}
