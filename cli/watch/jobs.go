package watch

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// JobGrid shows jobs as a table.
func JobGrid(list []jobs.JobInfo, now time.Time, colours cli.Palette) cli.Grid {
	g := cli.NewGrid("JOB", "STATE", "OUTCOME", ">ATTEMPT", "NODE", "STARTED", ">TOOK", ">EXIT",
		"ERROR")
	for _, j := range list {
		g.Add(cli.Cell(string(j.ID)), cli.Cell(string(j.State)),
			colours.Outcome(j.Outcome, cli.OrDash(cli.Cell(string(j.Outcome)))), strconv.Itoa(j.Attempt),
			cli.OrDash(cli.Cell(j.Node)), cli.Moment(j.Started), JobTook(j, now),
			ExitText(j.ExitCode), cli.OrDash(cli.Fit(cli.Cell(JobWords(j)), LineColumns)))
	}
	return g
}

// JobWords describes the problem of a job, or else what it waits for, or its course.
func JobWords(j jobs.JobInfo) string {
	if api.IsWithoutProof(j.Note) {
		return strings.Join(slices.DeleteFunc([]string{j.Note, j.Error},
			func(s string) bool { return s == "" }), "; ")
	}
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

// ExitText shows an exit code, or a dash.
func ExitText(code *int) string {
	if code == nil {
		return "-"
	}
	return strconv.Itoa(*code)
}

// Summary returns a task with the output of its hosts.
func Summary(ctx context.Context, c *cli.Client, id jobs.TaskID, excerpt int) (
	s api.Summary, err error) {
	q := url.Values{}
	if excerpt > 0 {
		q.Set("excerpt", strconv.Itoa(excerpt))
	}
	err = c.Do(ctx, cli.Call{Method: http.MethodGet, Bound: cli.SubmitTimeout, Query: q,
		Path: "/v1/tasks/" + url.PathEscape(string(id)) + "/summary"}, &s)
	return s, err
}

// JobTook returns the working time of a job; if its worker did not report it, or the job has not
// ended, the time since its start.
func JobTook(j jobs.JobInfo, now time.Time) string {
	work := j.Times.Of(jobs.Connecting, jobs.Acting, jobs.Verifying, jobs.Pausing)
	if j.State != jobs.Ended || j.Started.IsZero() || work == 0 {
		return cli.Took(j.Started, j.Finished, now)
	}
	return cli.Span(work)
}
