package ops

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
)

// eventFlags are the conditions of a question about past events.
type eventFlags struct {
	of, who, zone, host, since, until, cursor string

	kinds []string
	limit int
}

func (f *eventFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.who, "who", "", "only orders of this `operator`, and submits")
	c.Flags().StringSliceVar(&f.kinds, "kind", nil, "only events of these `names`, such as halt,lift")
	c.Flags().StringVar(&f.since, "since", "", "only what happened at this `time` or later")
	c.Flags().StringVar(&f.until, "until", "", "only what happened before this `time`")
	c.Flags().StringVar(&f.host, "host", "", "only jobs on this `host`")
	c.Flags().StringVar(&f.zone, "zone", "", "only events of this `zone`")
	c.Flags().IntVar(&f.limit, "limit", 500, "events of a page, at most 500")
	c.Flags().StringVar(&f.cursor, "cursor", "", "`place` where the next page begins")
	cli.CompleteFlagWith(c, "host", complete.HostName)
	for _, name := range []string{"who", "kind", "since", "until", "zone", "cursor", "limit"} {
		cli.CompleteFlagWith(c, name, cobra.NoFileCompletions)
	}
}

// query reports all mistakes in the flags.
func (f *eventFlags) query(now time.Time) (url.Values, error) {
	var errs []error
	if f.of == "" && f.since == "" {
		errs = append(errs, errors.New("name a task or a job, or say since when: --since 24h"))
	}
	if f.limit < 1 || f.limit > api.PageMax {
		errs = append(errs, fmt.Errorf("--limit %d: want 1 to %d", f.limit, api.PageMax))
	}
	q := url.Values{"limit": {strconv.Itoa(f.limit)}}
	for name, value := range map[string]string{"of": f.of, "who": f.who, "host": f.host,
		"zone": f.zone, "event": strings.Join(f.kinds, ","), "cursor": f.cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for _, flag := range []struct{ name, to, text string }{{"since", "from", f.since},
		{"until", "to", f.until}} {
		if flag.text == "" {
			continue
		}
		at, err := ago(flag.text, now)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag.name, err))
			continue
		}
		q.Set(flag.to, at.UTC().Format(time.RFC3339Nano))
	}
	return q, errors.Join(errs...)
}

// ago reads an instant, or how long ago it was.
func ago(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	at, err := cli.When(text)
	if err != nil {
		err = fmt.Errorf("%w, or how long ago: 24h, 90m", err)
	}
	return at, err
}

func newHistoryEvents() *cobra.Command {
	var f eventFlags
	c := &cobra.Command{
		Use:   "events [TASK|JOB]",
		Short: "List what happened: to a task, to a job, or in a time; also long ago",
		Long: `events lists the events that history keeps, the first one first: about a task and its
jobs, about one job, or with --since about the whole house. They are submits, takes,
steps, orders and ends. Each answer is one page; its last line shows how to get the next
one. muster events follows events while they happen.

--who picks what somebody ordered: submits, halts, pauses, cancels, approvals. It is the
word of the event; muster audit ls proves who ordered what. Jobs of somebody's tasks are
in muster history --operator. A caller with limited rights gets the events of tasks and
jobs that this caller may see.

Times are RFC 3339, a date with or without a time on the clocks of this machine, or how
long ago: 24h.`,
		Example: `  muster history events 0wcy7y2fb2
  muster history events 0wcy7y2fb2:fw001 -o json
  muster history events --who os:alice --since 24h
  muster history events --kind halt,lift,pause,resume --since 2026-11-01
  muster history events --host fw001 --since 90m`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	f.add(c)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if len(args) > 0 {
			f.of = args[0]
		}
		q, err := f.query(s.Now())
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		watch.Banner(ctx, s)
		var page api.PastEvents
		if err := s.Get(ctx, "/v1/history/events", q, &page); err != nil {
			return err
		}
		if page.Unsaid {
			s.Say("some events of that time were stored by an older muster, which did not note who " +
				"gave the order: they are missing here")
		}
		if s.JSON {
			page.Events = cli.Filled(page.Events)
			return s.WriteJSON(page)
		}
		return showPastEvents(s.Screen, page)
	})
}

func showPastEvents(s *cli.Screen, page api.PastEvents) error {
	if len(page.Events) == 0 {
		s.Say("history has no such event")
		return nil
	}
	text := ""
	for _, h := range page.Events {
		text += h.At.UTC().Format("2006-01-02 ") + watch.EventLine(h.Happening)
	}
	if err := s.Write(text); err != nil {
		return err
	}
	if page.Next != "" {
		s.Say("there are more: the same with --cursor %s", cli.Cell(page.Next))
	}
	return nil
}
