package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
)

// pastFlags are the conditions of what is asked of history.
type pastFlags struct {
	customer, host, runbook, operator, outcome, task, from, to string
}

func (f *pastFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.customer, "customer", "", "only hosts of this `customer`")
	c.Flags().StringVar(&f.host, "host", "", "only this `host`")
	c.Flags().StringVar(&f.runbook, "runbook", "", "only this `runbook`")
	c.Flags().StringVar(&f.operator, "operator", "", "only tasks of this `operator`")
	c.Flags().StringVar(&f.outcome, "outcome", "", "only this `outcome`: "+join(jobs.Outcomes()))
	c.Flags().StringVar(&f.task, "task", "", "only the task of this `id`")
	c.Flags().StringVar(&f.from, "from", "", "only what ended at this `time` or later")
	c.Flags().StringVar(&f.to, "to", "", "only what ended before this `time`")
	completeFlag(c, "outcome", texts(jobs.Outcomes())...)
	completeFlagWith(c, "task", completeTasks)
	completeFlagWith(c, "host", completeHostName)
	completeFlagWith(c, "runbook", completeRunbooks)
}

// query reports every mistake in the flags.
func (f pastFlags) query() (url.Values, error) {
	var errs []error
	q := url.Values{}
	for name, value := range map[string]string{"customer": f.customer, "host": f.host,
		"runbook": f.runbook, "operator": f.operator, "outcome": f.outcome, "task": f.task} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.outcome != "" && !jobs.Outcome(f.outcome).Valid() {
		errs = append(errs, fmt.Errorf("--outcome %q: want one of %s", f.outcome, join(jobs.Outcomes())))
	}
	if f.task != "" {
		if _, err := jobs.ParseTaskID(f.task); err != nil {
			errs = append(errs, fmt.Errorf("--task: %w", err))
		}
	}
	for _, flag := range []struct{ name, text string }{{"from", f.from}, {"to", f.to}} {
		if flag.text == "" {
			continue
		}
		at, err := when(flag.text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag.name, err))
			continue
		}
		q.Set(flag.name, at.UTC().Format(time.RFC3339Nano))
	}
	return q, errors.Join(errs...)
}

func newHistory() *cobra.Command {
	var f pastFlags
	limit, cursor := 50, ""
	c := &cobra.Command{
		Use:   "history [TASK]",
		Short: "List jobs that have ended, also long ago, the last one first",
		Long: `history lists jobs that have ended, the last one first, for as long as history.keep
says. Each answer is one page; its last line tells how to get the next one. A job that
is not there has not ended, or muster lacks its end: see muster history gaps.

Times are RFC 3339, or a date with or without a time of the clocks here.`,
		Example: `  muster history --customer acme --outcome failed --from 2026-11-01
  muster history --host fw001 --limit 5
  muster history 0wcy7y2fb2
  muster history --runbook firmware --operator alice -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTasks,
	}
	f.add(c)
	c.Flags().IntVar(&limit, "limit", limit, "jobs of a page, at most 500")
	c.Flags().StringVar(&cursor, "cursor", "", "`place` where the next page begins")
	completeFlagWith(c, "cursor", cobra.NoFileCompletions)
	completeFlagWith(c, "limit", cobra.NoFileCompletions)
	clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		if err := oneOf(&f.task, args); err != nil {
			return exit(exitUsage, err)
		}
		q, err := f.query()
		if limit < 1 || limit > api.PageMax {
			err = errors.Join(err, fmt.Errorf("--limit %d: want 1 to %d", limit, api.PageMax))
		}
		if err != nil {
			return exit(exitUsage, err)
		}
		s.banner(ctx)
		q.Set("limit", strconv.Itoa(limit))
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		var page api.PastJobs
		if err := s.get(ctx, "/v1/history", q, &page); err != nil {
			return err
		}
		if s.json {
			page.Jobs = filled(page.Jobs)
			return s.writeJSON(page)
		}
		err = s.list(page.Jobs, pastGrid(page.Jobs, s.colours), "there are no such jobs")
		if err != nil {
			return err
		}
		if page.Next != "" {
			s.say("there are more: the same with --cursor %s", cell(page.Next))
		}
		return nil
	})
	c.AddCommand(newHistoryExport(), newHistoryEvents(), newHistoryGaps())
	return c
}

func pastGrid(list []api.PastJob, colours palette) grid {
	head := strings.Fields("ENDED JOB CUSTOMER RUNBOOK OPERATOR OUTCOME >TOOK >EXIT ERROR")
	asked := slices.ContainsFunc(list, func(j api.PastJob) bool { return j.Asked != nil })
	if asked { // a report says it of the task, once
		head = append(head, "ARGUMENTS")
	}
	g := newGrid(head...)
	for _, j := range list {
		lasted := "-"
		if !j.Started.IsZero() && !j.Finished.IsZero() {
			lasted = span(max(0, j.Finished.Sub(j.Started.Time)))
		}
		row := []string{moment(j.Finished), cell(string(j.ID)),
			orDash(cell(j.Customer)), orDash(cell(j.Runbook)),
			orDash(cell(j.Operator)), colours.outcome(j.Outcome, cell(string(j.Outcome))), lasted,
			exitText(j.ExitCode), orDash(fit(cell(jobWords(j.JobInfo)), lineColumns))}
		if asked {
			row = append(row, pastRan(j))
		}
		g.add(row...)
	}
	return g
}

func newHistoryExport() *cobra.Command {
	var f pastFlags
	c := &cobra.Command{
		Use:   "export",
		Short: "Write all jobs that have ended, a line of JSON each",
		Long: `export writes every job that the flags pick, a line of JSON each, the last one first.
It fails with exit code 1 if not all of them came.`,
		Example: `  muster history export --from 2026-01-01 --to 2027-01-01 >2026.jsonl
  muster history export --customer acme | jq -r .host`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.add(c)
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		q, err := f.query()
		if err != nil {
			return exit(exitUsage, err)
		}
		r, err := s.send(ctx, call{method: http.MethodGet, path: "/v1/history/export", query: q})
		if err != nil {
			return err
		}
		defer r.Body.Close()
		lines := bufio.NewScanner(r.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if bytes.Equal(lines.Bytes(), []byte(`{"end":true}`)) {
				return nil
			}
			if !json.Valid(lines.Bytes()) {
				break
			}
			if err := s.write(escapeJSON(lines.Bytes()) + "\n"); err != nil {
				return err
			}
		}
		return errors.Join(errors.New("the export broke off: not all jobs came"), lines.Err())
	})
}

func newHistoryGaps() *cobra.Command {
	c := &cobra.Command{
		Use:   "gaps",
		Short: "Show how far history was written, and what it lacks",
		Long: `gaps shows how far the events of each zone were stored, and which of them were gone
before: so many entries between two ids of the stream. What muster does not know to be
complete it lists here.`,
		Example:           "  muster history gaps",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		s.banner(ctx)
		var h api.HistoryState
		if err := s.get(ctx, "/v1/history/state", nil, &h); err != nil {
			return err
		}
		if s.json {
			h.Streams, h.Gaps = filled(h.Streams), filled(h.Gaps)
			return s.writeJSON(h)
		}
		streams := newGrid("ZONE", "STORED UP TO", ">EVENTS", "LAST WRITTEN")
		for _, p := range h.Streams {
			streams.add(cell(p.Zone), cell(p.Last), strconv.FormatInt(p.Events, 10), moment(p.At))
		}
		gaps := newGrid("NOTICED", "ZONE", ">ENTRIES", "AFTER", "FIRST THERE", "WHY")
		for _, g := range h.Gaps {
			n := strconv.FormatInt(g.Entries, 10)
			if g.Entries < 0 {
				n = "?"
			}
			gaps.add(moment(g.At), cell(g.Zone), n, orDash(cell(g.After)), orDash(cell(g.First)),
				cell(g.Note))
		}
		if err := s.list(h.Streams, streams, "nothing was stored yet"); err != nil {
			return err
		}
		if len(h.Gaps) == 0 {
			return s.write("\nno gaps\n")
		}
		if err := s.write("\n"); err != nil {
			return err
		}
		return s.list(h.Gaps, gaps, "")
	})
}
