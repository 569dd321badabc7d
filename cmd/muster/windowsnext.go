package main

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
	"muster/fleet"
	"muster/windows"
)

func newWindowsNext() *cobra.Command {
	n, window, from := 10, "", ""
	c := &cobra.Command{
		Use:   "next HOST | --window NAME",
		Short: "List when a host, or a window, is open next: in UTC, at its place and here",
		Example: `  muster windows next fw001 --count 10
  muster windows next --window acme-sunday --from 2027-03-01`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeHostName,
	}
	c.Flags().IntVarP(&n, "count", "n", n, "how many")
	c.Flags().StringVar(&window, "window", "", "`name` of a window, instead of a host")
	c.Flags().StringVar(&from, "from", "", "`time` from which to look (default now)")
	completeFlagWith(c, "window", completeWindows)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		path := "/v1/windows/" + url.PathEscape(window) + "/next"
		switch {
		case (window == "") == (len(args) == 0):
			return exit(exitUsage, errors.New("want one of HOST and --window"))
		case window == "":
			path = "/v1/hosts/" + url.PathEscape(args[0]) + "/next"
		}
		q := url.Values{"count": {strconv.Itoa(n)}}
		if from != "" {
			at, err := when(from)
			if err != nil {
				return exit(exitUsage, fmt.Errorf("--from: %w", err))
			}
			q.Set("from", at.UTC().Format(time.RFC3339))
		}
		var l api.OccurrenceList
		if err := s.get(ctx, path, q, &l); err != nil {
			return err
		}
		return s.list(filled(l.Occurrences), s.occurrenceGrid(l.Occurrences), "no occurrence is ahead")
	})
}

func (s *session) occurrenceGrid(list []api.Occurrence) grid {
	g := newGrid("WINDOW", "UTC", "OPEN", "AT ITS PLACE", "ENDS", "LAST BEGIN", "HERE", "APPROVED")
	for _, o := range list {
		approved := s.approved(&o)
		if o.Frozen != "" {
			approved = s.colours.paint(yellow, "frozen by "+cell(o.Frozen))
		}
		g.add(cell(o.Window), moment(o.Start), span(seconds(o.Seconds)), cell(o.LocalStart),
			moment(o.End), moment(o.Cutoff), o.Start.Local().Format("Mon 2006-01-02 15:04 -07:00"), approved)
	}
	return g
}

// when reads an instant as people write it: RFC 3339, a date with or without a time, which is of
// the clocks here, or +90m from now on.
func when(text string) (time.Time, error) {
	if later, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := time.ParseDuration(later); err == nil && d >= 0 {
			return time.Now().Add(d).Truncate(time.Second), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range []string{"2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: want 2026-12-24, 2026-12-24 22:00 "+
		"(of the clocks here), 2026-12-24T21:00:00Z or +90m", text)
}

// whenOver reads when something is over: a day alone is one of it.
func whenOver(text string) (time.Time, error) {
	t, err := when(text)
	if _, dayErr := time.Parse(time.DateOnly, text); err == nil && dayErr == nil {
		t = t.AddDate(0, 0, 1)
	}
	return t, err
}

func newWindowsExplain() *cobra.Command {
	runbook := ""
	c := &cobra.Command{
		Use:               "explain HOST",
		Short:             "Say which windows hold for a host, why, and whether work may start now",
		Example:           "  muster windows explain fw001 --runbook firmware",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeHostName,
	}
	c.Flags().StringVar(&runbook, "runbook", "", "`name` of the runbook that is to run")
	completeFlagWith(c, "runbook", completeRunbooks)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		var e api.HostWindows
		err := s.get(ctx, "/v1/hosts/"+url.PathEscape(args[0])+"/windows",
			url.Values{"runbook": {runbook}}, &e)
		if err != nil {
			return err
		}
		if s.json {
			return s.writeJSON(e)
		}
		return s.write(explained(e))
	})
}

func explained(e api.HostWindows) string {
	var b strings.Builder
	for _, w := range e.Windows {
		fmt.Fprintf(&b, "%s holds: it is for %s, the most special level with a window\n", cell(w.Name),
			cell(w.For))
	}
	for _, w := range e.Hidden {
		fmt.Fprintf(&b, "%s does not hold: it is for %s, and there are windows for the %s\n",
			cell(w.Name), cell(w.For), cell(e.Level))
	}
	for _, w := range e.Others {
		fmt.Fprintf(&b, "%s does not hold: it is for %s, and the customer of this host never approved "+
			"it; it hides nothing\n", cell(w.Name), cell(w.For))
	}
	for _, f := range e.Freezes {
		state := "is not on now"
		if f.Active {
			state = "holds now"
		}
		fmt.Fprintf(&b, "freeze %s for %s %s: %s\n", cell(f.Name), cell(f.For), state,
			orDash(cell(f.Reason)))
	}
	switch {
	case e.Now.Open && e.Now.Until.IsZero():
		fmt.Fprintf(&b, "open now, and not shut in the next %d days\n", int(windows.Horizon.Hours()/24))
	case e.Now.Open:
		fmt.Fprintf(&b, "open now, until %s\n", moment(e.Now.Until))
	case e.Now.Next.IsZero():
		fmt.Fprintf(&b, "not open now: %s\n", cell(e.Now.Why))
	default:
		fmt.Fprintf(&b, "not open now: %s; next %s\n", cell(e.Now.Why), moment(e.Now.Next))
	}
	return b.String()
}

// completeHostName names the hosts.
func completeHostName(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	hosts, ok := askServer(c, func(ctx context.Context, c *client) ([]fleet.Host, error) {
		var l api.HostList
		err := c.get(ctx, "/v1/hosts", nil, &l)
		return l.Hosts, err
	})
	if !ok {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
