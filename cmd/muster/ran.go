package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
)

// ranColumns bounds the arguments in a row of a table; a task and a job show all of them.
const ranColumns = 60

// ranWords are the arguments for a row of a table.
func ranWords(r *jobs.Ran) string { return orDash(fit(cell(r.Text()), ranColumns)) }

// pastRan are the arguments of a job of history.
func pastRan(j api.PastJob) string {
	if j.Asked == nil {
		return ranWords(nil)
	}
	return ranWords(j.Asked.Ran)
}

// ranPairs say what a task runs, a line for the runbook and one for each argument.
func ranPairs(runbook string, r *jobs.Ran) [][2]string {
	if r == nil {
		return [][2]string{{"runbook", cell(runbook) + " (its arguments are not kept)"}}
	}
	words := cell(runbook)
	if r.Version != "" {
		words += ", version " + cell(r.Version)
	}
	pairs := [][2]string{{"runbook", words + ", sha256 " + cell(r.SHA256)}}
	for _, a := range r.Arguments {
		pairs = append(pairs, [2]string{"argument", cell(a.Text())})
	}
	return pairs
}

// whoWords names who ordered a task, as far as that is kept.
func whoWords(operator string, proven bool, r *jobs.Ran) string {
	if proven || r == nil || operator == "" {
		return cell(operator)
	}
	return cell(operator) + " (unproven)"
}

// askedHead are the columns of a report as CSV that say what was asked for.
var askedHead = strings.Fields("runbook sha256 arguments on operator reason")

// askedMax bounds the arguments in a row of a report, in bytes: each row has them.
const askedMax = 1000

func askedCells(t jobs.TaskInfo) []string {
	hash := ""
	if t.Ran != nil {
		hash = t.Ran.SHA256
	}
	return []string{t.Runbook, hash, jobs.Brief(t.Ran.Text(), askedMax), t.On,
		whoWords(t.Operator, t.Proven, t.Ran), t.Reason}
}

// ofPairs say of which task a job is, and what that was asked for.
func ofPairs(t *api.OfTask) [][2]string {
	if t == nil {
		return nil
	}
	return append([][2]string{{"operator", whoWords(t.Operator, t.Proven, t.Ran)},
		{"on", cell(t.On)}, {"reason", cell(t.Reason)}}, ranPairs(t.Runbook, t.Ran)...)
}

// courseText shows attempts and steps; empty if none are kept.
func courseText(c api.Course, width int) string {
	text := ""
	if len(c.Attempts) > 0 {
		g := newGrid(">ATTEMPT", "NODE", "STARTED", "ENDED", "HOW")
		for _, a := range c.Attempts {
			g.add(strconv.Itoa(a.Attempt), orDash(cell(a.Node)), moment(a.Started), moment(a.Ended),
				orDash(cell(a.How)))
		}
		text += "\n" + g.render(width, true)
	}
	if len(c.Steps) > 0 {
		g := newGrid(">STEP", "BEGUN")
		for _, b := range c.Steps {
			g.add(strconv.Itoa(b.Step), moment(b.At))
		}
		text += "\n" + g.render(width, true)
	}
	return text
}

// jobDetails is a job in JSON, with its way to its end.
type jobDetails struct {
	api.JobDetail
	Attempts []api.Attempt   `json:"attempts"`
	Steps    []api.StepBegun `json:"steps"`
}

// course reads the attempts and steps of a job from history. That history is away, or that
// there is none, is said, and is no reason to show nothing.
func (s *session) course(ctx context.Context, id jobs.ID) api.Course {
	var c api.Course
	err := s.get(ctx, "/v1/jobs/"+url.PathEscape(string(id))+"/course", nil, &c)
	if err != nil {
		s.say("its attempts and steps cannot be shown: %s", cell(err.Error()))
	}
	return c
}

func newHistoryEvents() *cobra.Command {
	limit, cursor := 500, ""
	c := &cobra.Command{
		Use:   "events TASK|JOB",
		Short: "List what happened to a task and its jobs, or to one job, also long ago",
		Long: `events lists what history keeps of what happened to a task and its jobs, or to one
job, the first event first: who submitted what, each take, each step, each order, each
end. muster events follows what happens now.`,
		Example: `  muster history events 0wcy7y2fb2
  muster history events 0wcy7y2fb2:fw001 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTasks,
	}
	c.Flags().IntVar(&limit, "limit", limit, "events of a page, at most 500")
	c.Flags().StringVar(&cursor, "cursor", "", "`place` where the next page begins")
	completeFlagWith(c, "cursor", cobra.NoFileCompletions)
	completeFlagWith(c, "limit", cobra.NoFileCompletions)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		if limit < 1 || limit > api.PageMax {
			return exit(exitUsage, fmt.Errorf("--limit %d: want 1 to %d", limit, api.PageMax))
		}
		q := url.Values{"of": {args[0]}, "limit": {strconv.Itoa(limit)}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		s.banner(ctx)
		var page api.PastEvents
		if err := s.get(ctx, "/v1/history/events", q, &page); err != nil {
			return err
		}
		if s.json {
			page.Events = filled(page.Events)
			return s.writeJSON(page)
		}
		return s.showPastEvents(page)
	})
}

func (s *session) showPastEvents(page api.PastEvents) error {
	if len(page.Events) == 0 {
		s.say("history has no event of it")
		return nil
	}
	text := ""
	for _, h := range page.Events {
		text += h.At.UTC().Format("2006-01-02 ") + eventLine(h)
	}
	if err := s.write(text); err != nil {
		return err
	}
	if page.Next != "" {
		s.say("there are more: the same with --cursor %s", cell(page.Next))
	}
	return nil
}
