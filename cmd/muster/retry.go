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

	"muster/api"
	"muster/jobs"
)

// retryFlags are the flags of retry.
type retryFlags struct {
	failed, wait, skip, dry, again bool
	outcomes                       []string
	reason, expect                 string
}

func newRetry() *cobra.Command {
	var f retryFlags
	c := &cobra.Command{
		Use:   "retry TASK --failed | --outcome LIST",
		Short: "Do jobs of a task again, as a new task",
		Long: `retry makes a new task of those hosts whose jobs ended in a way that is named. It
runs what the old task ran, with the same arguments; the hosts are as the inventory
has them today. Of a task that still runs only jobs that have ended are taken.
How a job ended is kept for a day.

The same order given twice does its work once: a host that was retried from this task
before is left out, and it is said by which task. If nothing is left no task is made,
and the id of the earlier one is printed; --wait follows it. What ended badly in that
one, too, is retried from there; --again takes all once more. A retry that was ended
before it began on a host does not count.`,
		Example: `  muster retry 0wcy7y2fb2 --failed
  muster retry 0wcy7y2fb2 --outcome unreachable,unknown --wait
  muster retry 0wcy7y2fb2 --failed --reason 'the disk is full no more'
  muster retry 0wcy7y2fb2 --failed --dry-run
  muster retry 0wcy7y2fb2 --failed --again`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTasks,
	}
	fl := c.Flags()
	fl.BoolVar(&f.failed, "failed", false, "jobs with the outcome failed")
	fl.StringSliceVar(&f.outcomes, "outcome", nil, "jobs with one of these `outcomes`: "+
		join(jobs.Outcomes()))
	fl.BoolVar(&f.skip, "skip-missing", false, "leave out hosts that are in the inventory no more")
	fl.BoolVar(&f.again, "again", false, "also hosts that were retried from this task before")
	fl.BoolVar(&f.wait, "wait", false, "follow it to its end; exit codes as those of muster run")
	fl.BoolVar(&f.dry, "dry-run", false, "tell what would be done and do nothing")
	fl.StringVar(&f.reason, "reason", "", "`why`, which the new task keeps")
	addExpect(c, &f.expect)
	c.MarkFlagsMutuallyExclusive("wait", "dry-run")
	completeFlag(c, "outcome", texts(jobs.Outcomes())...)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		of, err := taskArg(args[0])
		list, bad := f.list()
		if err := errors.Join(err, bad); err != nil {
			return exit(exitUsage, err)
		}
		return s.retry(ctx, of, api.RetryRequest{
			OrderRequest: api.OrderRequest{As: s.as, Reason: f.reason},
			Outcomes:     list, SkipMissing: f.skip, DryRun: f.dry, Again: f.again, Expect: f.expect},
			f.wait)
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
func (s *session) retry(ctx context.Context, of jobs.TaskID, b api.RetryRequest,
	wait bool) error {
	var id jobs.TaskID
	if !b.DryRun {
		id = jobs.NewTaskID(s.now(), chance())
		b.ID = string(id)
	}
	t, err := handIn[api.Retried](ctx, s.client, id, call{method: http.MethodPost,
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
	for _, e := range t.Earlier {
		s.say("%s", earlierWords(e))
	}
	if !b.DryRun {
		s.sayPlan(t.Submitted)
	}
	switch {
	case t.Already:
		return s.already(ctx, t, b.DryRun, wait)
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

// earlierWords says which hosts are left out for an earlier retry, and what to do about
// those that ended badly there.
func earlierWords(e api.Earlier) string {
	who := operatorWords(jobs.TaskInfo{Operator: e.Operator, Proven: e.Proven})
	words := fmt.Sprintf("retried before, left out: %s, by task %s of %s at %s", cell(e.Hosts),
		cell(string(e.Task)), who, moment(e.At))
	var bad []jobs.Outcome
	for _, o := range jobs.Outcomes() {
		if o != jobs.Succeeded && e.Outcomes[o] > 0 {
			bad = append(bad, o)
		}
	}
	if len(bad) == 0 {
		return words
	}
	asked := "--outcome " + strings.Join(texts(bad), ",")
	if slices.Equal(bad, []jobs.Outcome{jobs.Failed}) {
		asked = "--failed"
	}
	return words + fmt.Sprintf(": %s there; `muster retry %s %s` does that again",
		strings.Join(outcomeWords(e.Outcomes, false), ", "), cell(string(e.Task)), asked)
}

// already ends a retry of which nothing was left to do.
func (s *session) already(ctx context.Context, t api.Retried, dry, wait bool) error {
	if dry {
		s.say("no task would be made: all of it was retried before; --again does it once more")
	} else {
		s.say("no task was made: all of it was retried before; --again does it once more")
	}
	switch {
	case wait && len(t.Earlier) == 1:
		return s.wait(ctx, t.Task, 0)
	case wait:
		return exit(exitNotAll, errors.New("these are several tasks: follow each with `muster wait`"))
	case s.json:
		return s.writeJSON(t)
	case dry:
		return nil
	}
	text := ""
	for _, e := range t.Earlier {
		text += cell(string(e.Task)) + "\n"
	}
	return s.write(text)
}
