package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
)

func newJobs() *cobra.Command {
	var task, state, outcome string
	c := &cobra.Command{
		Use:   "jobs TASK",
		Short: "List the jobs of a task, one a host",
		Example: `  muster jobs 0wcy7y2fb2
  muster jobs 0wcy7y2fb2 --outcome failed
  muster jobs last --state running -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTasks,
	}
	c.Flags().StringVar(&task, "task", "", "`id` of the task, which may also stand without this flag")
	c.Flags().StringVar(&state, "state", "", "only jobs in this `state`: "+join(jobs.States()))
	c.Flags().StringVar(&outcome, "outcome", "",
		"only jobs with this `outcome`: "+join(jobs.Outcomes()))
	missesItself(c, "task")
	completeFlagWith(c, "task", completeTasks)
	completeFlag(c, "state", texts(jobs.States())...)
	completeFlag(c, "outcome", texts(jobs.Outcomes())...)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		if err := oneOf(&task, args); err != nil {
			return exit(exitUsage, err)
		}
		id, err := checkJobs(task, jobs.State(state), jobs.Outcome(outcome))
		if err != nil {
			return exit(exitUsage, err)
		}
		list, err := s.jobs(ctx, id, jobs.State(state), jobs.Outcome(outcome))
		if err != nil {
			return err
		}
		return s.list(list, jobGrid(list, s.now(), s.colours), "there are no such jobs")
	})
}

// checkJobs reports everything that is wrong with a question for jobs.
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
		errs = append(errs, fmt.Errorf("--state %q: want one of %s", s, join(jobs.States())))
	}
	if o != "" && !o.Valid() {
		errs = append(errs, fmt.Errorf("--outcome %q: want one of %s", o, join(jobs.Outcomes())))
	}
	return id, errors.Join(errs...)
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func join[T ~string](list []T) string { return strings.Join(texts(list), ", ") }

func jobGrid(list []jobs.JobInfo, now time.Time, colours palette) grid {
	g := newGrid("JOB", "STATE", "OUTCOME", ">ATTEMPT", "NODE", "STARTED", ">TOOK", ">EXIT", "ERROR")
	for _, j := range list {
		g.add(cell(string(j.ID)), cell(string(j.State)),
			colours.outcome(j.Outcome, orDash(cell(string(j.Outcome)))), strconv.Itoa(j.Attempt),
			orDash(cell(j.Node)), moment(j.Started), jobTook(j, now),
			exitText(j.ExitCode), orDash(fit(cell(jobWords(j)), lineColumns)))
	}
	return g
}

// jobWords is what is wrong with a job, or else what it waits for, or how it went.
func jobWords(j jobs.JobInfo) string {
	switch {
	case j.Error == "" && j.Waits != "":
		return "waits for " + j.Waits
	case j.Error == "" && j.Why != "":
		return j.Why
	case j.Error == "":
		return j.Note
	}
	return j.Error
}

func exitText(code *int) string {
	if code == nil {
		return "-"
	}
	return strconv.Itoa(*code)
}

func newJob() *cobra.Command {
	var f askFlags
	c := &cobra.Command{
		Use:   "job JOB",
		Short: "Show a job: how it stands or ended, what it ran, its attempts and steps",
		Long: `job shows a job, also one of long ago: how it stands or how it ended, what it ran and
who ordered it, and what history keeps of its attempts and steps. Each event of it is in
muster history events.

With --ask a worker asks the host of a job that ended unknown how it ended, if the host
keeps records of its steps (fence). If the record says so, the job's end is that from
then on: succeeded only if all its steps were done, else failed with what was not done.
Nothing is begun, stopped or waited for on the host. Its lock goes if nothing of the job
is at work there; a redundancy group that the job froze stays frozen. A host can be asked
about a job for a day behind the end of its task. Several jobs can be named then, or with
--unknown a task: all its jobs that ended unknown are meant.

Exit codes with --ask: 0 it is known how all of them ended, 1 some stay unknown, or their
orders were not answered in time.`,
		Example: `  muster job 0wcy7y2fb2:fw001
  muster job 0wcy7y2fb2:fw001 --ask --reason 'the network is back'
  muster job last --ask --unknown`,
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			if f.ask {
				return completeTaskOrJobs(c, args, typed)
			}
			return completeJobs(c, args, typed)
		},
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if f.ask {
			return cobra.MinimumNArgs(1)(c, args)
		}
		return cobra.ExactArgs(1)(c, args)
	}
	c.Flags().BoolVar(&f.ask, "ask", false,
		"have the host asked how the job ended, and wait for the answer")
	c.Flags().BoolVar(&f.unknown, "unknown", false,
		"with --ask: all jobs of a task that ended unknown")
	c.Flags().DurationVar(&f.timeout, "timeout", askTimeout, "with --ask: wait for so much `time`")
	addReason(c, &f.reason)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		list, task, err := f.check(args)
		if err != nil {
			return err
		}
		if f.ask {
			return s.askHosts(ctx, f, list, task)
		}
		return s.showJob(ctx, list[0])
	})
}

func (s *session) showJob(ctx context.Context, id jobs.ID) error {
	var j api.JobDetail
	if err := s.get(ctx, "/v1/jobs/"+url.PathEscape(string(id)), nil, &j); err != nil {
		return err
	}
	c := s.course(ctx, id)
	if s.json {
		return s.writeJSON(jobDetails{j, filled(c.Attempts), filled(c.Steps)})
	}
	return s.write(jobText(j, s.now(), s.colours) + gateText(j.JobInfo) +
		courseText(c, s.tableWidth()))
}

func jobText(d api.JobDetail, now time.Time, colours palette) string {
	j := d.JobInfo
	outcome := string(j.Outcome)
	if j.Class != "" {
		outcome += " (" + string(j.Class) + ")"
	}
	host := cell(j.Host)
	if j.HostLeft {
		host += " (in the inventory no more; the job goes on with what it was submitted with)"
	}
	next := ""
	if !j.Next.IsZero() {
		next = moment(j.Next)
	}
	return details(append([][2]string{
		{"job", cell(string(j.ID))},
		{"host", host},
		{"state", cell(string(j.State))},
		{"outcome", colours.outcome(j.Outcome, cell(outcome))},
		{"exit code", exitText(j.ExitCode)},
		{"error", cell(j.Error)},
		{"how", cell(j.Note)},
		{"asked", askText(j.Ask)},
		{"attempt", fmt.Sprintf("%d, %d failed", j.Attempt, j.Tries)},
		{"step", strconv.Itoa(j.Step)},
		{"node", cell(j.Node)},
		{"due", moment(j.Due)},
		{"started", moment(j.Started)},
		{"finished", moment(j.Finished)},
		{"took", jobTook(j, now)},
		{"times", timesText(j.Times)},
		{"next", next},
		{"waits for", cell(j.Waits)},
		{"why", cell(j.Why)},
		{"awaits", awaitWords(d.Awaits)},
	}, ofPairs(d.Of)...)...)
}
