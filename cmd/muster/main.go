// Command muster runs jobs on a fleet of hosts.
//
// One binary plays all the roles: the operator's tool, the server, the master of
// a node and its children, so that versions cannot differ on a node. Each
// subcommand has a file of its own; this is the only package that knows all
// rooms of the house.
//
// Floor 8: may import everything but the packages for tests.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"muster/fleet/remote"
	"muster/jobs/queue"
	"muster/windows"
)

// version is set by the linker.
var version = "devel"

// Exit codes. They are part of the interface.
const (
	exitOK          = 0
	exitNotAll      = 1 // some job did not succeed
	exitUsage       = 2 // wrong use, wrong configuration
	exitUnreachable = 3 // the server does not answer
	exitStopped     = 4 // cancelled, or stopped by a rule
	exitInterrupted = 130
)

// exitError ends the program with a code. Without err nothing more is said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit wraps an error with the code that the program ends with.
func exit(code int, err error) error { return &exitError{code, err} }

func main() { os.Exit(run()) }

func run() int {
	queue.Quiet()
	code, err := execute(context.Background(), newRoot())
	if err != nil {
		complain(os.Stderr, err)
	}
	return code
}

// execute runs the command that the arguments name. It returns the exit code, and what is
// still to be said.
func execute(ctx context.Context, root *cobra.Command) (int, error) {
	cmd, err := root.ExecuteContextC(ctx)
	var e *exitError
	switch {
	case err == nil:
		return exitOK, nil
	case errors.As(err, &e):
		return e.code, e.err
	}
	// What cobra itself finds wrong is wrong use.
	return exitUsage, fmt.Errorf("%w\nsee %s --help", plainError(err), cmd.CommandPath())
}

// complain writes an error for people, a line each. What a host or a server has said may
// stand in any error, so this is the one place where all of them are made harmless.
func complain(w io.Writer, err error) {
	for line := range strings.Lines(remote.Harmless(err.Error())) {
		fmt.Fprintln(w, "muster: "+strings.TrimRight(line, "\n"))
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "muster",
		Short: "Run jobs on a fleet of hosts: fairly, once, and truthfully told",
		Long: `muster runs jobs on a fleet of hosts over SSH.

Operators submit tasks to a server with the commands below. Masters, one on each
node, take the jobs from a queue in Redis and start child processes for them.

Exit codes: 0 it is done, 1 it is not, or not all of it, 2 wrong use, 3 the server does
not answer. Commands with others say so.`,
		Example: `  muster demo                                        # see it work, nothing needed
  muster up --config etc/muster.yaml                 # server and master on this machine
  muster exec 'role=fw' -- uname -a
  muster tasks
  muster logs -f last`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddGroup(
		&cobra.Group{ID: "work", Title: "Work:"},
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "roles", Title: "Roles:"},
	)
	root.AddCommand(newUp(), newServer(), newMaster(), newWorker(), newDemo())
	root.AddCommand(clientCommands()...)
	root.AddCommand(newVersion())
	root.CompletionOptions.HiddenDefaultCmd = false
	root.Version = version // makes --version
	root.SetVersionTemplate(versionText())
	withLists(root)
	plainUsage(root)
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and that of the time zone data",
		Example: "  muster version",
		Args:    cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) {
			fmt.Fprint(c.OutOrStdout(), versionText())
		},
	}
}

// versionText is what version and --version print.
func versionText() string {
	return "muster " + version + "\ntime zone data " + windows.ZoneData + "\n"
}
