package hosts

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster/cli"
	"muster/cli/complete"
	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/settings"
)

// exitSSH is the exit code of muster ssh if there was no shell, as of ssh.
const exitSSH = 255

// NewSSH makes the command ssh.
func NewSSH() *cobra.Command {
	var k keyFlags
	tty := false
	c := &cobra.Command{
		Use:   "ssh HOST [-- COMMAND...]",
		Short: "Open a shell on a host, on the way that jobs take",
		Long: `ssh connects from this machine to a host as workers do: address, user, private key,
host keys and jump hosts are those of the inventory that the server has. On a node
that simply works; elsewhere give a key with --identity, or have an agent.

With a terminal on both sides it is a shell on a terminal; a command gets one only
with --tty. The exit code is that of the shell or command, and 255 if there was none.
It waits for no lock: look at muster hosts show before you change something.`,
		Example: `  muster ssh fw001
  muster ssh fw001 -- uptime
  muster ssh fw001 --tty -- top
  muster ssh fw001 < commands.sh`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	k.add(c)
	c.Flags().BoolVarP(&tty, "tty", "t", false, "a terminal for a command, too")
	cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		h, err := host(ctx, s.Client, args[0])
		if err != nil {
			return cli.Exit(exitSSH, err)
		}
		if h.Lock != "" {
			s.Say("job %s has this host at the moment", cli.Cell(string(h.Lock)))
		}
		return k.shell(ctx, s.Screen, h.Host, strings.Join(args[1:], " "), tty)
	})
	c.Flags().Lookup("output").Hidden = true // the output is the host's own
	return c
}

// keyFlags choose the key for connections from this machine.
type keyFlags struct {
	identity string
	command  *cobra.Command // has the flag config
}

func (k *keyFlags) add(c *cobra.Command) {
	c.Flags().StringVarP(&k.identity, "identity", "i", "",
		"private key `file`; default that of the inventory, else the agent")
	if k.command = c; c.Flags().Lookup("config") == nil {
		c.Flags().String("config", os.Getenv("MUSTER_CONFIG"), "configuration `file` of a node, "+
			"which says where the passphrase of keys is (default "+settings.DefaultConfig+
			" if it can be read)")
	}
}

// client returns a client for hosts, which the caller closes. The configuration of a node has its
// timeouts and passphrases; an operator may have no configuration, or may not be allowed to read
// it.
func (k keyFlags) client() (*remote.Client, error) {
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

// key decides which key logs in to a host and its jump hosts: the keys of the inventory are files
// of nodes, and may be missing on this machine.
func (k keyFlags) key(h fleet.Host) fleet.Host {
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
func (k keyFlags) lacks(key string) bool {
	_, err := os.Stat(key)
	return key != "" && err != nil && (k.identity != "" || os.Getenv("SSH_AUTH_SOCK") != "")
}

// shell opens a shell on a host and ends with its exit code.
func (k keyFlags) shell(ctx context.Context, s *cli.Screen, h fleet.Host, command string,
	tty bool) error {
	client, err := k.client()
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer client.Close()
	conn, err := client.Connect(ctx, k.key(h))
	if err != nil {
		return cli.Exit(exitSSH, err)
	}
	defer conn.Close()

	t := remote.Terminal{Command: command, Stdin: os.Stdin, Stdout: s.Out, Stderr: s.Err}
	if tty || command == "" {
		restore, err := rawMode(s, &t)
		if err != nil {
			return cli.Exit(exitSSH, err)
		}
		defer restore()
	}
	code, err := conn.Shell(ctx, t)
	if err != nil {
		return cli.Exit(exitSSH, err)
	}
	return cli.ExitWith(code)
}

// rawMode connects the terminal to the host's, if there is one on both sides: every key goes there
// unchanged, Ctrl-C too. It returns the function that ends that.
func rawMode(s *cli.Screen, t *remote.Terminal) (restore func(), err error) {
	in := int(os.Stdin.Fd())
	if !s.OutTerm || !term.IsTerminal(in) {
		return func() {}, nil
	}
	t.Type = os.Getenv("TERM")
	if t.Type == "" {
		t.Type = "dumb"
	}
	size := func() remote.Size {
		columns, rows, err := term.GetSize(in)
		if err != nil {
			return remote.Size{Columns: 80, Rows: 24}
		}
		return remote.Size{Columns: columns, Rows: rows}
	}
	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	changed, sizes, over := make(chan os.Signal, 1), make(chan remote.Size), make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	t.Size, t.Resized = size(), sizes
	go func() {
		for {
			select {
			case <-over:
				return
			case <-changed:
			}
			select {
			case <-over:
				return
			case sizes <- size():
			}
		}
	}()
	return func() {
		signal.Stop(changed)
		close(over)
		// If this fails, the person sees it.
		_ = term.Restore(in, before)
	}, nil
}
