package tasks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/jobs"
)

// NewJobs makes the command jobs.
func NewJobs() *cobra.Command {
	var task, state, outcome string
	c := &cobra.Command{
		Use:   "jobs TASK",
		Short: "List the jobs of a task, one a host",
		Example: `  muster jobs 0wcy7y2fb2
  muster jobs 0wcy7y2fb2 --outcome failed
  muster jobs last --state running -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	c.Flags().StringVar(&task, "task", "", "`id` of the task, which may also stand without this flag")
	c.Flags().StringVar(&state, "state", "", "only jobs in this `state`: "+cli.Join(jobs.States()))
	c.Flags().StringVar(&outcome, "outcome", "",
		"only jobs with this `outcome`: "+cli.Join(jobs.Outcomes()))
	cli.MissesItself(c, "task")
	cli.CompleteFlagWith(c, "task", complete.Tasks)
	cli.CompleteFlag(c, "state", cli.Texts(jobs.States())...)
	cli.CompleteFlag(c, "outcome", cli.Texts(jobs.Outcomes())...)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := cli.OneOf(&task, args); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		id, err := checkJobs(task, jobs.State(state), jobs.Outcome(outcome))
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		list, err := s.Jobs(ctx, id, jobs.State(state), jobs.Outcome(outcome))
		if err != nil {
			return err
		}
		return showJobs(ctx, s, id, list)
	})
}

// showJobs prints jobs of a task. If Redis has forgotten the task before its end, only those jobs
// are known whose end history has: the command fails, so that nobody takes the list for complete.
func showJobs(ctx context.Context, s *cli.Session, id jobs.TaskID, list []jobs.JobInfo) error {
	t, err := s.Task(ctx, id, 0, 0)
	if err != nil {
		return err
	}
	none := "there are no such jobs"
	if t.Forgotten {
		none = "no such job is known"
		err = cli.Exit(cli.ExitNotAll, fmt.Errorf("task %s was forgotten by Redis before it ended; "+
			"%d of its %d jobs are known to have ended; what became of the others is not known, and no "+
			"more will come of them", id, t.Outcomes.Sum(), t.Total))
	}
	return errors.Join(s.List(list, watch.JobGrid(list, s.Now(), s.Colours), none), err)
}

// checkJobs reports all mistakes in a query for jobs.
func checkJobs(task string, s jobs.State, o jobs.Outcome) (jobs.TaskID, error) {
	var errs []error
	id, err := jobs.ParseTaskID(task)
	switch {
	case task == "":
		errs = append(errs, errors.New("no task is named: give its id, or last; "+
			"`muster tasks` lists the tasks"))
	case err != nil:
		errs = append(errs, fmt.Errorf("%w; `muster tasks` lists the tasks", err))
	}
	if s != "" && !slices.Contains(jobs.States(), s) {
		errs = append(errs, fmt.Errorf("--state %q: want one of %s", s, cli.Join(jobs.States())))
	}
	if o != "" && !o.Valid() {
		errs = append(errs, fmt.Errorf("--outcome %q: want one of %s", o, cli.Join(jobs.Outcomes())))
	}
	return id, errors.Join(errs...)
}

// NewJob makes the command job.
func NewJob() *cobra.Command {
	var f askFlags
	c := &cobra.Command{
		Use:   "job JOB",
		Short: "Show a job: its state or outcome, what it ran, its attempts and steps",
		Long: `job shows a job, also one of long ago: its state or its outcome, what it ran, who ordered
it, and the attempts and steps that history keeps. muster history events lists each event
of the job. With --attempts only those are shown: each attempt with its node, its times,
how it ended, and the steps that it began. Exit code 1: history has no attempt of it.

With --ask a worker asks the host of a job that ended unknown how the job ended, if the
host keeps records of steps (fence). If the record shows it, the job gets a new outcome:
succeeded only if all its steps were done, else failed with what was not done. The worker
begins nothing on the host, stops nothing and waits for nothing. It unlocks the host if
nothing of the job is at work there; a redundancy group that the job froze stays frozen.
A host can be asked about a job until a day after the end of its task. --ask takes
several jobs, or with --unknown a task, for all its jobs that ended unknown.

Exit codes with --ask: 0 all outcomes are known now, 1 some jobs stay unknown, or nobody
answered in time.`,
		Example: `  muster job 0wcy7y2fb2:fw001
  muster job 0wcy7y2fb2:fw001 --attempts
  muster job 0wcy7y2fb2:fw001 --ask --reason 'the network is back'
  muster job last --ask --unknown`,
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			if f.ask {
				return complete.TaskOrJobs(c, args, typed)
			}
			return complete.Jobs(c, args, typed)
		},
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if f.ask {
			return cobra.MinimumNArgs(1)(c, args)
		}
		return cobra.ExactArgs(1)(c, args)
	}
	attempts := false
	c.Flags().BoolVar(&attempts, "attempts", false, "only its attempts, each with its steps")
	c.Flags().BoolVar(&f.ask, "ask", false,
		"have the host asked how the job ended, and wait for the answer")
	c.Flags().BoolVar(&f.unknown, "unknown", false,
		"with --ask: all jobs of a task that ended unknown")
	c.Flags().DurationVar(&f.timeout, "timeout", askTimeout, "with --ask: wait for so much `time`")
	cli.AddReason(c, &f.reason)
	c.MarkFlagsMutuallyExclusive("attempts", "ask")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		list, task, err := f.check(args)
		if err != nil {
			return err
		}
		if f.ask {
			return askHosts(ctx, s, f, list, task)
		}
		if attempts {
			return showAttempts(ctx, s, list[0])
		}
		return showJob(ctx, s, list[0])
	})
}

func showJob(ctx context.Context, s *cli.Session, id jobs.ID) error {
	var j api.JobDetail
	if err := s.Get(ctx, "/v1/jobs/"+url.PathEscape(string(id)), nil, &j); err != nil {
		return err
	}
	c := courseOf(ctx, s, id)
	if c.Doubted != "" {
		s.Say("look: %s", cli.Cell(c.Doubted))
	}
	if s.JSON {
		return s.WriteJSON(JobDetails{j, cli.Filled(c.Attempts), cli.Filled(c.Steps)})
	}
	return s.Write(jobText(j, s.Now(), s.Colours) + watch.GateText(j.JobInfo) +
		watch.CourseText(c, s.TableWidth()))
}

func jobText(d api.JobDetail, now time.Time, colours cli.Palette) string {
	j := d.JobInfo
	outcome := string(j.Outcome)
	if j.Class != "" {
		outcome += " (" + string(j.Class) + ")"
	}
	host := cli.Cell(j.Host)
	if j.HostLeft {
		host += " (no longer in the inventory; the job continues with the data of its submit)"
	}
	next := ""
	if !j.Next.IsZero() {
		next = cli.Moment(j.Next)
	}
	return cli.Details(append([][2]string{
		{"job", cli.Cell(string(j.ID))},
		{"host", host},
		{"state", cli.Cell(string(j.State))},
		{"outcome", colours.Outcome(j.Outcome, cli.Cell(outcome))},
		{"exit code", watch.ExitText(j.ExitCode)},
		{"error", cli.Cell(j.Error)},
		{"how", cli.Cell(j.Note)},
		{"asked", askText(j.Ask)},
		{"attempt", fmt.Sprintf("%d, %d failed", j.Attempt, j.Tries)},
		{"step", strconv.Itoa(j.Step)},
		{"node", cli.Cell(j.Node)},
		{"due", cli.Moment(j.Due)},
		{"started", cli.Moment(j.Started)},
		{"finished", cli.Moment(j.Finished)},
		{"took", watch.JobTook(j, now)},
		{"times", cli.TimesText(j.Times)},
		{"next", next},
		{"waits for", cli.Cell(j.Waits)},
		{"why", cli.Cell(j.Why)},
		{"awaits", watch.AwaitWords(d.Awaits)},
	}, watch.OfPairs(d.Of)...)...)
}

// JobDetails is a job for JSON, with its course.
type JobDetails struct {
	api.JobDetail
	Attempts []api.Attempt   `json:"attempts"`
	Steps    []api.StepBegun `json:"steps"`
}

// courseOf reads the attempts and steps of a job from history. If history is away, or there is
// none, it prints that; the job is shown all the same.
func courseOf(ctx context.Context, s *cli.Session, id jobs.ID) api.Course {
	var c api.Course
	err := s.Get(ctx, "/v1/jobs/"+url.PathEscape(string(id))+"/course", nil, &c)
	if err != nil {
		s.Say("its attempts and steps cannot be shown: %s", cli.Cell(err.Error()))
	}
	return c
}
