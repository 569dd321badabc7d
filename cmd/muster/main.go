// Command muster runs jobs on a fleet of hosts.
//
// One binary plays all the roles: the operator's tool, the server, the master of a node and its
// children, so that versions cannot differ on a node. Each subcommand has a file of its own; this
// is the only package that imports all others.
//
// Floor 14: may import everything but the packages for tests.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/man"
	"muster/internal/demo"
	"muster/internal/proc"
	"muster/jobs/queue/hooks"
	"muster/windows"
)

func main() { os.Exit(run()) }

func run() int {
	if err := proc.Private(); err != nil {
		cli.Complain(os.Stderr, err)
		return cli.ExitNotAll
	}
	hooks.Quiet()
	root := newRoot
	if slices.Equal(os.Args[1:], childArgs) {
		root = newWorker // an idle node starts one for a job: it does not make a hundred commands first
	}
	code, err := cli.Execute(context.Background(), root())
	if err != nil {
		cli.Complain(os.Stderr, err)
	}
	return code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "muster",
		Short: "Run jobs on a fleet of hosts: fairly, once, with true results",
		Long: `muster runs jobs on a fleet of hosts over SSH.

Operators submit tasks to a server with the commands below. Masters, one on each
node, take the jobs from a queue in Redis and start child processes for them.

Exit codes: 0 done, 1 not done or not all of it, 2 wrong use, 3 the server does not
answer. The help of a command names any other code.`,
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
	root.AddCommand(newUp(), newServer(), newMaster(), newWorker(), demo.NewDemo())
	root.AddCommand(clientCommands()...)
	root.AddCommand(newVersion(), man.New())
	root.CompletionOptions.HiddenDefaultCmd = false
	root.Version = cli.Version // makes --version
	root.SetVersionTemplate(versionText())
	cli.WithLists(root)
	cli.PlainUsage(root)
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

// versionText returns the text that version and --version print.
func versionText() string {
	return "muster " + cli.Version + "\ntime zone data " + windows.ZoneData + "\n"
}
