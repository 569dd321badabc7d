package reset

import (
	"github.com/spf13/cobra"

	"muster/cli"
	"muster/jobs/queue/keys"
)

// New makes the command admin and the command reset below it, which cannot run yet. The rules let a
// user of Redis do what reset does.
func New(rules string) (admin, reset *cobra.Command) {
	admin = &cobra.Command{
		Use:     "admin",
		Short:   "Begin anew: delete all that Redis has of this installation",
		Long:    `admin has an order that nobody needs in everyday work: reset.`,
		Example: "  muster admin reset --dry-run",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	reset = &cobra.Command{
		Use:   "reset",
		Short: "Delete all that Redis has of this installation",
		Long: `reset deletes all keys of muster from the Redis of the configuration: tasks, jobs,
output, tokens, windows, schedules, halts. It calls no server, and refuses while a node
beats or a server has a duty; it looks for 6 s. A node that cannot reach Redis is not
seen, so stop all masters first: their children would continue with what they hold.

Files and the database stay: configuration, keys, inventory, runbooks, history, the
audit log, which gets an entry before anything is deleted. So a server that starts
afterwards finds that Redis has lost what was agreed, and nothing starts before muster
restore puts it back, or muster restore --nothing gives it up. Call reset as the user
who runs the servers: it writes into the same database.

Neither servers nor nodes may delete everything. Make a user of Redis for it, name it in
a configuration with the same server.key and history, and remove it afterwards:
  redis-cli ACL SETUSER muster-reset on '>PASSWORD' \
    ` + keys.RuleLines(rules) + `

Exit codes: 0 everything is deleted, 1 something is not, 2 wrong use, or the name of the
installation was not given.`,
		Example: `  muster admin reset --config reset.yaml --dry-run
  muster admin reset --config reset.yaml --reason 'the test house begins anew'
  muster admin reset --reason 'moved to another Redis' --yes-delete 4kq2xw7m3bzt`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{cli.Offline: "yes"},
	}
	admin.AddCommand(reset)
	return admin, reset
}
