package orders

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/jobs"
)

// NewCancel makes the command cancel.
func NewCancel() *cobra.Command {
	reason, wait := "", false
	c := &cobra.Command{
		Use:   "cancel TASK | JOB...",
		Short: "End a task, or some of its jobs",
		Long: `cancel ends the jobs of a task that are not running, with the outcome cancelled. It
stops running jobs on their hosts within five seconds: such a job ends as cancelled if
nothing of it is left on its host, else as unknown. In place of a task, name jobs of
one task by their ids.

With --wait the exit code is 1 if a job ended as unknown: look at its host.`,
		Example: `  muster cancel 0wcy7y2fb2
  muster cancel 0wcy7y2fb2 --reason 'wrong ruleset' --wait
  muster cancel 0wcy7y2fb2:fw001 0wcy7y2fb2:fw002`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: complete.TaskOrJobs,
	}
	cli.AddReason(c, &reason)
	c.Flags().BoolVar(&wait, "wait", false, "wait until those that run have ended")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, list, err := cancelArgs(args)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		did := cancelled{}
		err = s.Give(ctx, "/v1/tasks/"+url.PathEscape(string(id))+"/cancel",
			api.CancelRequest{OrderRequest: api.OrderRequest{Reason: reason, As: s.As},
				Jobs: list}, &did.Cancel)
		if err != nil {
			return err
		}
		if !s.JSON {
			if err := s.Write(cancelText(did.Cancel, len(list) > 0)); err != nil {
				return err
			}
		}
		if wait {
			if did.Jobs, err = awaitEnds(ctx, s.Client, id, list); err != nil {
				return err
			}
		}
		if s.JSON {
			err = s.WriteJSON(did)
		} else {
			err = s.Write(endsText(did.Jobs))
		}
		if err == nil && slices.ContainsFunc(did.Jobs, mayRun) {
			err = cli.ExitWith(cli.ExitNotAll)
		}
		return err
	})
}

// mayRun reports whether a part of a job may still run on its host.
func mayRun(j jobs.JobInfo) bool { return j.Outcome == jobs.Unknown }

// cancelArgs reads a task, or jobs of one task.
func cancelArgs(args []string) (jobs.TaskID, []jobs.ID, error) {
	if len(args) == 1 && !strings.Contains(args[0], ":") {
		id, err := cli.TaskArg(args[0])
		return id, nil, err
	}
	tasks := !slices.ContainsFunc(args, func(s string) bool { return strings.Contains(s, ":") })
	if tasks {
		return "", nil, fmt.Errorf("cancel one task at a time, not %d: %s", len(args),
			cli.Cell(strings.Join(args, " ")))
	}
	var list []jobs.ID
	var errs []error
	for _, text := range args {
		id, err := cli.JobArg(text)
		if err == nil && id.Task() != jobs.ID(args[0]).Task() {
			err = fmt.Errorf("job %s is of another task than %s: cancel jobs of one task at a time",
				text, args[0])
		}
		if err != nil {
			errs = append(errs, err)
		}
		list = append(list, id)
	}
	return jobs.ID(args[0]).Task(), list, errors.Join(errs...)
}

// cancelled is the result of a cancel for JSON.
type cancelled struct {
	jobs.Cancel
	Jobs []jobs.JobInfo `json:"jobs,omitempty"` // with --wait: the jobs that ran, with their ends
}

func cancelText(c jobs.Cancel, some bool) string {
	text := fmt.Sprintf("task %s: %s cancelled", cli.Cell(string(c.Task)), cli.Count(c.Ended, "job"))
	if c.Running > 0 {
		text += fmt.Sprintf(", %d running: they are stopped on their hosts", c.Running)
	}
	if c.Already > 0 {
		text += fmt.Sprintf(", %d had ended before", c.Already)
	}
	if some {
		text += "; its other jobs continue"
	}
	return text + "\n"
}

// awaitEnds waits for the ends of the jobs that ran when they were cancelled: of some jobs, or of a
// whole task.
func awaitEnds(ctx context.Context, c *cli.Client, id jobs.TaskID, of []jobs.ID) ([]jobs.JobInfo,
	error) {
	wanted := map[jobs.ID]bool{}
	for _, j := range of {
		wanted[j] = true
	}
	ran := map[jobs.ID]bool{}
	for pace := watch.PaceStep; ; pace = min(2*pace, 4*watch.PaceMost) {
		list, err := cli.Again(ctx, c.Patience, func() ([]jobs.JobInfo, error) {
			return c.Jobs(ctx, id, "", "")
		}, nil)
		if err != nil {
			return nil, err
		}
		open, ends := 0, []jobs.JobInfo{}
		for _, j := range list {
			if len(of) > 0 && !wanted[j.ID] {
				continue
			}
			if j.State != jobs.Ended {
				open++
				ran[j.ID] = true
			} else if ran[j.ID] || j.Attempt > 0 && j.Outcome == jobs.Cancelled {
				ends = append(ends, j)
			}
		}
		if open == 0 {
			return ends, nil
		}
		if !cli.Sleep(ctx, pace) {
			return nil, ctx.Err()
		}
	}
}

// endsText counts the outcomes of jobs that were running.
func endsText(list []jobs.JobInfo) string {
	if len(list) == 0 {
		return ""
	}
	counts := jobs.NewCounts()
	for _, j := range list {
		counts[j.Outcome]++
	}
	text := "of those that ran: " + strings.Join(watch.OutcomeWords(counts, false), ", ") + "\n"
	for _, j := range list {
		if j.Error != "" && j.Outcome != jobs.Cancelled {
			text += fmt.Sprintf("  %s: %s, %s\n", cli.Cell(string(j.ID)), cli.Cell(string(j.Outcome)),
				cli.Fit(cli.Cell(j.Error), watch.LineColumns))
		}
	}
	return text
}
