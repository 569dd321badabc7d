package hosts

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster/cli"
	"muster/cli/complete"
	"muster/cli/reach"
	"muster/fleet"
	"muster/fleet/remote"
)

// exitSSH is the exit code of muster ssh if there was no shell, as of ssh.
const exitSSH = 255

// NewSSH makes the command ssh.
func NewSSH() *cobra.Command {
	var k reach.KeyFlags
	tty := false
	c := &cobra.Command{
		Use:   "ssh HOST [-- COMMAND...]",
		Short: "Open a shell on a host, on the way that jobs take",
		Long: `ssh connects from this machine to a host as workers do: address, user, private key,
host keys and jump hosts are those of the inventory that the server has. On a node
that simply works; elsewhere give a key with --identity, or have an agent.

With a terminal on both sides the shell runs on a terminal; a command gets a terminal
only with --tty. The exit code is that of the shell or command, and 255 if there was
none. ssh waits for no lock: look at muster hosts show before you change something.`,
		Example: `  muster ssh fw001
  muster ssh fw001 -- uptime
  muster ssh fw001 --tty -- top
  muster ssh fw001 < commands.sh`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	k.Add(c)
	c.Flags().BoolVarP(&tty, "tty", "t", false, "a terminal for a command, too")
	cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		h, err := host(ctx, s.Client, args[0])
		if err != nil {
			return cli.Exit(exitSSH, err)
		}
		if h.Lock != "" {
			s.Say("job %s has this host at the moment", cli.Cell(string(h.Lock)))
		}
		return shell{k, strings.Join(args[1:], " "), tty}.open(ctx, s.Screen, h.Host)
	})
	c.Flags().Lookup("output").Hidden = true // the output is the host's own
	return c
}

// A shell is what ssh does on a host.
type shell struct {
	keys    reach.KeyFlags
	command string // empty: a shell
	tty     bool   // a terminal for the command, too
}

// open opens the shell and ends with its exit code.
func (l shell) open(ctx context.Context, s *cli.Screen, h fleet.Host) error {
	client, err := l.keys.Client()
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer client.Close()
	conn, err := client.Connect(ctx, l.keys.Key(h))
	if err != nil {
		return cli.Exit(exitSSH, err)
	}
	defer conn.Close()

	t := remote.Terminal{Command: l.command, Stdin: os.Stdin, Stdout: s.Out, Stderr: s.Err}
	if l.tty || l.command == "" {
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
