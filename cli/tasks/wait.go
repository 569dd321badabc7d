package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
)

// NewWait makes the command wait.
func NewWait() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait TASK",
		Short: "Wait for the end of a task; exit codes as those of run",
		Long: `wait follows a task to its end and prints the summary. If the time of --timeout is over
first, wait shows what the task waits for, and with -o json prints the task as it is.

Exit codes: 0 all jobs succeeded, 1 some did not or the time was over, 3 the server does
not answer, 4 cancelled or stopped by a rule, 130 interrupted (the task continues).`,
		Example: `  muster wait 0wcy7y2fb2
  muster wait 0wcy7y2fb2 --timeout 30m -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after this `time`; the task is left alone")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if err != nil {
			return err
		}
		if timeout < 0 {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("--timeout %s: want a time such as 90s or 30m",
				timeout))
		}
		return watch.Wait(ctx, s, id, timeout)
	})
}
