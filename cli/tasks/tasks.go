package tasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/approvals"
	"muster/cli/complete"
	"muster/cli/live"
	"muster/cli/watch"
	"muster/jobs"
)

// NewTasks makes the command tasks.
func NewTasks() *cobra.Command {
	limit := 0
	c := &cobra.Command{
		Use:   "tasks",
		Short: "List the newest tasks",
		Example: `  muster tasks
  muster tasks --limit 5 -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		const most = 500
		if limit < 1 || limit > most {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("--limit %d: want 1 to %d", limit, most))
		}
		list, err := s.Tasks(ctx, limit)
		if err != nil {
			return err
		}
		watch.Banner(ctx, s)
		return s.List(list, watch.TaskGrid(list, s.Colours), "there are no tasks: `muster run` makes one")
	})
}

// NewTask makes the command task.
func NewTask() *cobra.Command {
	wait, shown := false, false
	c := &cobra.Command{
		Use:   "task TASK",
		Short: "Show a task and what its hosts said, or wait for its end",
		Long: `task shows a task: what it was asked to do, what its jobs came to, what others wait
for, and what its hosts said, alike hosts together.

With --watch it shows these facts until the task ends, without the output: outcomes,
waves, the budget of failures, what waits for what. On a terminal that is a picture;
elsewhere a line when something has changed, and with -o json a line of JSON. The exit
code is that of the task.`,
		Example: `  muster task 0wcy7y2fb2
  muster task 0wcy7y2fb2 --wait
  muster task 0wcy7y2fb2 --watch -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	c.Flags().BoolVar(&wait, "wait", false, "follow it to its end; exit codes as those of muster run")
	c.Flags().BoolVar(&shown, "watch", false, "show what changes until its end; exit codes likewise")
	c.MarkFlagsMutuallyExclusive("wait", "watch")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if err != nil {
			return err
		}
		if shown {
			return live.Task(ctx, s, id)
		}
		if !wait {
			return showTask(ctx, s, id)
		}
		t, err := watch.FirstNews(ctx, s, id)
		if err != nil {
			return err
		}
		if t, err = watch.Follow(ctx, s, t); err != nil {
			return err
		}
		if !s.JSON {
			return watch.Conclude(ctx, s, t)
		}
		if err := showTask(ctx, s, id); err != nil {
			return err
		}
		return cli.ExitWith(watch.ExitOf(t))
	})
}

// scheduleWords names the schedule of a task, and the tick.
func scheduleWords(t jobs.TaskInfo) string {
	switch {
	case t.Schedule == "":
		return ""
	case t.Tick.IsZero():
		return cli.Cell(t.Schedule) + ", run by a person"
	}
	return cli.Cell(t.Schedule) + ", tick " + cli.Moment(t.Tick)
}

// taskDetails is a task for JSON, with the output of its hosts.
type taskDetails struct {
	jobs.TaskInfo
	Groups  []api.Alike `json:"groups"`
	AtGates int         `json:"at_gates,omitempty"` // jobs that wait for a person
	Waits   []jobs.Lack `json:"waits,omitempty"`    // reasons why others of them wait
	// Awaits lists the windows and freezes that they wait for.
	Awaits []jobs.Appointment `json:"awaits,omitempty"`
}

func showTask(ctx context.Context, s *cli.Session, id jobs.TaskID) error {
	sum, err := watch.Summary(ctx, s.Client, id, 0)
	if err != nil {
		return err
	}
	if doubted := doubtOf(ctx, s, id); doubted != "" {
		s.Say("look: %s", cli.Cell(doubted))
	}
	if s.JSON {
		return s.WriteJSON(taskDetails{sum.Task, cli.Filled(sum.Groups), sum.AtGates, sum.Waits,
			sum.Awaits})
	}
	t := sum.Task
	told := slices.ContainsFunc(sum.Waits, func(l jobs.Lack) bool { return l.Order })
	if t.State != jobs.TaskEnded && !told {
		watch.Stands(ctx, s, id)
	}
	if t.State == jobs.TaskSubmitting {
		approvals.Say(ctx, s, id)
	}
	return s.Write(cli.Details(append(watch.RanPairs(t.Runbook, t.Ran),
		[2]string{"on", cli.Cell(t.On)},
		[2]string{"priority", cli.Cell(string(t.Priority))},
		[2]string{"submitted", cli.Moment(t.Submitted)},
		[2]string{"started", cli.Moment(t.Started)},
		[2]string{"finished", cli.Moment(t.Finished)},
		[2]string{"inventory", cli.Cell(t.Inventory)},
		[2]string{"disruptive", cli.Yes(t.Disruptive)},
		[2]string{"supersedes", cli.Cell(t.Supersedes)},
		[2]string{"retry of", cli.Cell(string(t.RetryOf))},
		[2]string{"reason", cli.Cell(t.Reason)},
		[2]string{"schedule", scheduleWords(t)},
		[2]string{"rule", watch.RuleWords(t)},
		[2]string{"chain", watch.ChainWord(t)},
	)...) + "\n" + watch.SummaryText(sum, s.TableWidth(), s.Colours))
}
