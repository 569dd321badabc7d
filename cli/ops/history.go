package ops

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
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/jobs"
)

// pastFlags are the conditions of a question to history.
type pastFlags struct {
	customer, host, runbook, operator, outcome, task, from, to string
}

func (f *pastFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.customer, "customer", "", "only hosts of this `customer`")
	c.Flags().StringVar(&f.host, "host", "", "only this `host`")
	c.Flags().StringVar(&f.runbook, "runbook", "", "only this `runbook`")
	c.Flags().StringVar(&f.operator, "operator", "", "only tasks of this `operator`")
	c.Flags().StringVar(&f.outcome, "outcome", "", "only this `outcome`: "+cli.Join(jobs.Outcomes()))
	c.Flags().StringVar(&f.task, "task", "", "only the task of this `id`")
	c.Flags().StringVar(&f.from, "from", "", "only what ended at this `time` or later")
	c.Flags().StringVar(&f.to, "to", "", "only what ended before this `time`")
	cli.CompleteFlag(c, "outcome", cli.Texts(jobs.Outcomes())...)
	cli.CompleteFlagWith(c, "task", complete.Tasks)
	cli.CompleteFlagWith(c, "host", complete.HostName)
	cli.CompleteFlagWith(c, "runbook", complete.Runbooks)
}

// query reports all mistakes in the flags.
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
		errs = append(errs, fmt.Errorf("--outcome %q: want one of %s", f.outcome,
			cli.Join(jobs.Outcomes())))
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
		at, err := cli.When(flag.text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag.name, err))
			continue
		}
		q.Set(flag.name, at.UTC().Format(time.RFC3339Nano))
	}
	return q, errors.Join(errs...)
}

// NewHistory makes the command history.
func NewHistory() *cobra.Command {
	var f pastFlags
	limit, cursor := 50, ""
	c := &cobra.Command{
		Use:   "history [TASK]",
		Short: "List jobs that have ended, also long ago, the last one first",
		Long: `history lists jobs that have ended, the last one first, for as long as history.keep
says. Each answer is one page; its last line shows how to get the next one. A job that
is missing has not ended, or history lacks its end: see muster history gaps.

Times are RFC 3339, or a date with or without a time, on the clocks of this machine.`,
		Example: `  muster history --customer acme --outcome failed --from 2026-11-01
  muster history --host fw001 --limit 5
  muster history 0wcy7y2fb2
  muster history --runbook firmware --operator alice -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	f.add(c)
	c.Flags().IntVar(&limit, "limit", limit, "jobs of a page, at most 500")
	c.Flags().StringVar(&cursor, "cursor", "", "`place` where the next page begins")
	cli.CompleteFlagWith(c, "cursor", cobra.NoFileCompletions)
	cli.CompleteFlagWith(c, "limit", cobra.NoFileCompletions)
	cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := cli.OneOf(&f.task, args); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		q, err := f.query()
		if limit < 1 || limit > api.PageMax {
			err = errors.Join(err, fmt.Errorf("--limit %d: want 1 to %d", limit, api.PageMax))
		}
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		watch.Banner(ctx, s)
		q.Set("limit", strconv.Itoa(limit))
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		var page api.PastJobs
		if err := s.Get(ctx, "/v1/history", q, &page); err != nil {
			return err
		}
		if s.JSON {
			page.Jobs = cli.Filled(page.Jobs)
			return s.WriteJSON(page)
		}
		err = s.List(page.Jobs, pastGrid(page.Jobs, s.Colours), "there are no such jobs")
		if err != nil {
			return err
		}
		if page.Next != "" {
			s.Say("there are more: the same with --cursor %s", cli.Cell(page.Next))
		}
		return nil
	})
	c.AddCommand(newHistoryExport(), newHistoryEvents(), newHistoryGaps())
	return c
}

func pastGrid(list []api.PastJob, colours cli.Palette) cli.Grid {
	head := strings.Fields("ENDED JOB CUSTOMER RUNBOOK OPERATOR OUTCOME >TOOK >EXIT ERROR")
	asked := slices.ContainsFunc(list, func(j api.PastJob) bool { return j.Asked != nil })
	if asked { // a report shows it once, with the task
		head = append(head, "ARGUMENTS")
	}
	g := cli.NewGrid(head...)
	for _, j := range list {
		if j.Proof == api.NotProven {
			j.Note = api.WithoutProof(j.Note)
		}
		lasted := "-"
		if !j.Started.IsZero() && !j.Finished.IsZero() {
			lasted = cli.Span(max(0, j.Finished.Sub(j.Started.Time)))
		}
		row := []string{cli.Moment(j.Finished), cli.Cell(string(j.ID)),
			cli.OrDash(cli.Cell(j.Customer)), cli.OrDash(cli.Cell(j.Runbook)),
			cli.OrDash(cli.Cell(j.Operator)), colours.Outcome(j.Outcome, cli.Cell(string(j.Outcome))),
			lasted,
			watch.ExitText(j.ExitCode), cli.OrDash(cli.Fit(cli.Cell(watch.JobWords(j.JobInfo)),
				watch.LineColumns))}
		if asked {
			row = append(row, watch.PastRan(j))
		}
		g.Add(row...)
	}
	return g
}

func newHistoryExport() *cobra.Command {
	var f pastFlags
	c := &cobra.Command{
		Use:   "export",
		Short: "Write all jobs that have ended, a line of JSON each",
		Long: `export writes every job that the flags pick, a line of JSON each, the last one first.
If some of them could not be read it ends with exit code 1.`,
		Example: `  muster history export --from 2026-01-01 --to 2027-01-01 >2026.jsonl
  muster history export --customer acme | jq -r .host`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.add(c)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		q, err := f.query()
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		r, err := s.Send(ctx, cli.Call{Method: http.MethodGet, Path: "/v1/history/export", Query: q})
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
			if err := s.Write(cli.EscapeJSON(lines.Bytes()) + "\n"); err != nil {
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
		Long: `gaps shows up to which event history has stored each zone, and which events were gone
before history could store them: so many entries between two ids of the stream. Where
history may be incomplete, there is a line here.`,
		Example:           "  muster history gaps",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		watch.Banner(ctx, s)
		var h api.HistoryState
		if err := s.Get(ctx, "/v1/history/state", nil, &h); err != nil {
			return err
		}
		if s.JSON {
			h.Streams, h.Gaps = cli.Filled(h.Streams), cli.Filled(h.Gaps)
			return s.WriteJSON(h)
		}
		streams := cli.NewGrid("ZONE", "STORED UP TO", ">EVENTS", "LAST WRITTEN")
		for _, p := range h.Streams {
			streams.Add(cli.Cell(p.Zone), cli.Cell(p.Last), strconv.FormatInt(p.Events, 10),
				cli.Moment(p.At))
		}
		gaps := cli.NewGrid("NOTICED", "ZONE", ">ENTRIES", "AFTER", "FIRST THERE", "WHY")
		for _, g := range h.Gaps {
			n := strconv.FormatInt(g.Entries, 10)
			if g.Entries < 0 {
				n = "?"
			}
			gaps.Add(cli.Moment(g.At), cli.Cell(g.Zone), n, cli.OrDash(cli.Cell(g.After)),
				cli.OrDash(cli.Cell(g.First)),
				cli.Cell(g.Note))
		}
		if err := s.List(h.Streams, streams, "nothing was stored yet"); err != nil {
			return err
		}
		if len(h.Gaps) == 0 {
			return s.Write("\nno gaps\n")
		}
		if err := s.Write("\n"); err != nil {
			return err
		}
		return s.List(h.Gaps, gaps, "")
	})
}
