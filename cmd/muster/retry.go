package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/jobs"
	"muster/server"
)

// retryFlags are the flags of retry.
type retryFlags struct {
	failed, wait, skip, dry bool
	outcomes                []string
	reason                  string
}

func newRetry() *cobra.Command {
	var f retryFlags
	c := &cobra.Command{
		Use:   "retry TASK --failed | --outcome LIST",
		Short: "Do jobs of a task again, as a new task",
		Long: `retry makes a new task of those hosts whose jobs ended in a way that is named. It
runs what the old task ran, with the same arguments; the hosts are as the inventory
has them today. Of a task that still runs only jobs that have ended are taken.
How a job ended is kept for a day.`,
		Example: `  muster retry 0wcy7y2fb2 --failed
  muster retry 0wcy7y2fb2 --outcome unreachable,unknown --wait
  muster retry 0wcy7y2fb2 --failed --reason 'the disk is full no more'
  muster retry 0wcy7y2fb2 --failed --dry-run`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTasks,
	}
	fl := c.Flags()
	fl.BoolVar(&f.failed, "failed", false, "jobs with the outcome failed")
	fl.StringSliceVar(&f.outcomes, "outcome", nil, "jobs with one of these `outcomes`: "+
		join(jobs.Outcomes()))
	fl.BoolVar(&f.skip, "skip-missing", false, "leave out hosts that are in the inventory no more")
	fl.BoolVar(&f.wait, "wait", false, "follow it to its end; exit codes as those of muster run")
	fl.BoolVar(&f.dry, "dry-run", false, "tell what would be done and do nothing")
	fl.StringVar(&f.reason, "reason", "", "`why`, which the new task keeps")
	c.MarkFlagsMutuallyExclusive("wait", "dry-run")
	completeFlag(c, "outcome", texts(jobs.Outcomes())...)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		of, err := taskArg(args[0])
		list, bad := f.list()
		if err := errors.Join(err, bad); err != nil {
			return exit(exitUsage, err)
		}
		return s.retry(ctx, of, server.RetryRequest{
			OrderRequest: server.OrderRequest{As: s.as, Reason: f.reason},
			Outcomes:     list, SkipMissing: f.skip, DryRun: f.dry}, f.wait)
	})
}

// list is the outcomes that are asked for, or what is wrong with them.
func (f retryFlags) list() ([]jobs.Outcome, error) {
	var list []jobs.Outcome
	var errs []error
	if f.failed {
		list = append(list, jobs.Failed)
	}
	for _, text := range f.outcomes {
		o := jobs.Outcome(strings.TrimSpace(text))
		if !o.Valid() {
			errs = append(errs, fmt.Errorf("--outcome %q: want one of %s", o, join(jobs.Outcomes())))
		}
		if !slices.Contains(list, o) {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		errs = append(errs, errors.New("say which jobs: --failed, or --outcome unreachable,unknown"))
	}
	return list, errors.Join(errs...)
}

// retry hands in the new task and, if wanted, follows it.
func (s *session) retry(ctx context.Context, of jobs.TaskID, b server.RetryRequest,
	wait bool) error {
	var id jobs.TaskID
	if !b.DryRun {
		id = jobs.NewTaskID(s.now(), chance())
		b.ID = string(id)
	}
	t, err := handIn[server.Retried](ctx, s.client, id, call{method: http.MethodPost,
		path: "/v1/tasks/" + url.PathEscape(string(of)) + "/retry", body: b, bound: submitTimeout},
		func(error, time.Duration) { s.say("no answer, trying again") })
	if err != nil {
		return err
	}
	if t.Open > 0 {
		s.say("of task %s %s not ended: left out", cell(string(of)), have(t.Open))
	}
	if t.Skipped != "" {
		s.say("in the inventory no more, left out: %s", cell(t.Skipped))
	}
	if !b.DryRun {
		s.sayPlan(t.Submitted)
	}
	switch {
	case b.DryRun:
		if s.json {
			return s.writeJSON(t)
		}
		return s.showPlan(t.Submitted)
	case s.json && !wait:
		return s.writeJSON(t)
	case !wait:
		s.say("%s", accepted(t.Submitted))
		s.say("follow it with `muster wait %s`", t.Task)
		return s.write(cell(string(t.Task)) + "\n")
	}
	return s.toTheEnd(ctx, t.TaskInfo)
}

// have is a number of jobs with its verb.
func have(n int) string {
	if n == 1 {
		return "1 job has"
	}
	return fmt.Sprintf("%d jobs have", n)
}
