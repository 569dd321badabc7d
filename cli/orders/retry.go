package orders

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
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/submit"
	"muster/cli/watch"
	"muster/jobs"
)

// retryFlags are the flags of retry.
type retryFlags struct {
	failed, wait, skip, dry, again bool
	outcomes                       []string
	reason, expect                 string
}

// NewRetry makes the command retry.
func NewRetry() *cobra.Command {
	var f retryFlags
	c := &cobra.Command{
		Use:   "retry TASK --failed | --outcome LIST",
		Short: "Do jobs of a task again, as a new task",
		Long: `retry makes a new task for the hosts whose jobs ended with one of the named outcomes.
It runs what the old task ran, with the same arguments, on the hosts as the inventory
has them today. If the old task still runs, retry takes only jobs that have ended. The
queue keeps outcomes for a day.

The same order given twice does its work once: retry leaves out a host that was retried
from this task before, and names the task that did it. If no host is left, retry makes
no task and prints the id of the earlier one; --wait follows that. If hosts failed in
the earlier task too, retry that one; --again takes all hosts once more. A retry that
ended before it began on a host does not count for that host.`,
		Example: `  muster retry 0wcy7y2fb2 --failed
  muster retry 0wcy7y2fb2 --outcome unreachable,unknown --wait
  muster retry 0wcy7y2fb2 --failed --reason 'the disk is full no more'
  muster retry 0wcy7y2fb2 --failed --dry-run
  muster retry 0wcy7y2fb2 --failed --again`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	fl := c.Flags()
	fl.BoolVar(&f.failed, "failed", false, "jobs with the outcome failed")
	fl.StringSliceVar(&f.outcomes, "outcome", nil, "jobs with one of these `outcomes`: "+
		cli.Join(jobs.Outcomes()))
	fl.BoolVar(&f.skip, "skip-missing", false, "leave out hosts that are no longer in the inventory")
	fl.BoolVar(&f.again, "again", false, "also hosts that were retried from this task before")
	fl.BoolVar(&f.wait, "wait", false, "follow it to its end; exit codes as those of muster run")
	fl.BoolVar(&f.dry, "dry-run", false, "show what would be done and do nothing")
	fl.StringVar(&f.reason, "reason", "", "`why`, which the new task keeps")
	submit.AddExpect(c, &f.expect)
	c.MarkFlagsMutuallyExclusive("wait", "dry-run")
	cli.CompleteFlag(c, "outcome", cli.Texts(jobs.Outcomes())...)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		of, err := cli.TaskArg(args[0])
		list, bad := f.list()
		if err := errors.Join(err, bad); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return retryJobs(ctx, s, of, api.RetryRequest{
			OrderRequest: api.OrderRequest{As: s.As, Reason: f.reason},
			Outcomes:     list, SkipMissing: f.skip, DryRun: f.dry, Again: f.again, Expect: f.expect},
			f.wait)
	})
}

// list returns the outcomes that the flags name, or their mistakes.
func (f retryFlags) list() ([]jobs.Outcome, error) {
	var list []jobs.Outcome
	var errs []error
	if f.failed {
		list = append(list, jobs.Failed)
	}
	for _, text := range f.outcomes {
		o := jobs.Outcome(strings.TrimSpace(text))
		if !o.Valid() {
			errs = append(errs, fmt.Errorf("--outcome %q: want one of %s", o, cli.Join(jobs.Outcomes())))
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

// retryJobs submits the new task and, if wanted, follows it.
func retryJobs(ctx context.Context, s *cli.Session, of jobs.TaskID, b api.RetryRequest,
	wait bool) error {
	var id jobs.TaskID
	if !b.DryRun {
		id = jobs.NewTaskID(s.Now(), cli.Chance())
		b.ID = string(id)
	}
	t, err := cli.HandIn[api.Retried](ctx, s.Client, id, cli.Call{Method: http.MethodPost,
		Path: "/v1/tasks/" + url.PathEscape(string(of)) + "/retry", Body: b, Bound: cli.SubmitTimeout},
		func(error, time.Duration) { s.Say("no answer, trying again") })
	if err != nil {
		return err
	}
	if t.Open > 0 {
		s.Say("task %s: %s not ended: left out", cli.Cell(string(of)), have(t.Open))
	}
	if t.Skipped != "" {
		s.Say("no longer in the inventory, left out: %s", cli.Cell(t.Skipped))
	}
	for _, e := range t.Earlier {
		s.Say("%s", earlierWords(e))
	}
	if !b.DryRun {
		submit.SayPlan(s.Screen, t.Submitted)
	}
	switch {
	case t.Already:
		return sayAlready(ctx, s, t, b.DryRun, wait)
	case b.DryRun:
		if s.JSON {
			watch.WouldWait(ctx, s, t.Zones)
			return s.WriteJSON(t)
		}
		return submit.ShowPlan(ctx, s, t.Submitted)
	case s.JSON && !wait:
		return s.WriteJSON(t)
	case !wait:
		s.Say("%s", submit.Accepted(t.Submitted))
		s.Say("follow it with `muster wait %s`", t.Task)
		return s.Write(cli.Cell(string(t.Task)) + "\n")
	}
	return watch.ToTheEnd(ctx, s, t.TaskInfo)
}

// have returns a number of jobs with its verb.
func have(n int) string {
	if n == 1 {
		return "1 job has"
	}
	return fmt.Sprintf("%d jobs have", n)
}

// earlierWords names the hosts that are left out because of an earlier retry, and what to do about
// those that ended badly there.
func earlierWords(e api.Earlier) string {
	who := watch.OperatorWords(jobs.TaskInfo{Operator: e.Operator, Proven: e.Proven})
	words := fmt.Sprintf("retried before, left out: %s, by task %s of %s at %s", cli.Cell(e.Hosts),
		cli.Cell(string(e.Task)), who, cli.Moment(e.At))
	var bad []jobs.Outcome
	for _, o := range jobs.Outcomes() {
		if o != jobs.Succeeded && e.Outcomes[o] > 0 {
			bad = append(bad, o)
		}
	}
	if len(bad) == 0 {
		return words
	}
	asked := "--outcome " + strings.Join(cli.Texts(bad), ",")
	if slices.Equal(bad, []jobs.Outcome{jobs.Failed}) {
		asked = "--failed"
	}
	return words + fmt.Sprintf(": %s there; `muster retry %s %s` does that again",
		strings.Join(watch.OutcomeWords(e.Outcomes, false), ", "), cli.Cell(string(e.Task)), asked)
}

// sayAlready ends a retry that has no job left to do.
func sayAlready(ctx context.Context, s *cli.Session, t api.Retried, dry, wait bool) error {
	if dry {
		s.Say("no task would be made: all hosts were retried before; --again retries them once more")
	} else {
		s.Say("no task was made: all hosts were retried before; --again retries them once more")
	}
	switch {
	case wait && len(t.Earlier) == 1:
		return watch.Wait(ctx, s, t.Task, 0)
	case wait:
		return cli.Exit(cli.ExitNotAll, errors.New(
			"these are several tasks: follow each with `muster wait`"))
	case s.JSON:
		return s.WriteJSON(t)
	case dry:
		return nil
	}
	text := ""
	for _, e := range t.Earlier {
		text += cli.Cell(string(e.Task)) + "\n"
	}
	return s.Write(text)
}
