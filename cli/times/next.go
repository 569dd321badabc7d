package times

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
		ValidArgsFunction: complete.HostName,
	}
	c.Flags().IntVarP(&n, "count", "n", n, "how many")
	c.Flags().StringVar(&window, "window", "", "`name` of a window, instead of a host")
	c.Flags().StringVar(&from, "from", "", "`time` from which to look (default now)")
	cli.CompleteFlagWith(c, "window", completeWindows)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		path := "/v1/windows/" + url.PathEscape(window) + "/next"
		switch {
		case (window == "") == (len(args) == 0):
			return cli.Exit(cli.ExitUsage, errors.New("want one of HOST and --window"))
		case window == "":
			path = "/v1/hosts/" + url.PathEscape(args[0]) + "/next"
		}
		q := url.Values{"count": {strconv.Itoa(n)}}
		if from != "" {
			at, err := cli.When(from)
			if err != nil {
				return cli.Exit(cli.ExitUsage, fmt.Errorf("--from: %w", err))
			}
			q.Set("from", at.UTC().Format(time.RFC3339))
		}
		var l api.OccurrenceList
		if err := s.Get(ctx, path, q, &l); err != nil {
			return err
		}
		return s.List(cli.Filled(l.Occurrences), occurrenceGrid(s.Screen, l.Occurrences),
			"no occurrence is ahead")
	})
}

func occurrenceGrid(s *cli.Screen, list []api.Occurrence) cli.Grid {
	g := cli.NewGrid("WINDOW", "UTC", "OPEN", "AT ITS PLACE", "ENDS", "LAST BEGIN", "HERE", "APPROVED")
	for _, o := range list {
		approved := approvedWords(s, &o)
		if o.Frozen != "" {
			approved = s.Colours.Paint(cli.Yellow, "frozen by "+cli.Cell(o.Frozen))
		}
		g.Add(cli.Cell(o.Window), cli.Moment(o.Start), cli.Span(cli.Seconds(o.Seconds)),
			cli.Cell(o.LocalStart),
			cli.Moment(o.End), cli.Moment(o.Cutoff), o.Start.Local().Format("Mon 2006-01-02 15:04 -07:00"),
			approved)
	}
	return g
}

func newWindowsExplain() *cobra.Command {
	runbook := ""
	c := &cobra.Command{
		Use:               "explain HOST",
		Short:             "Show which windows hold for a host, why, and whether work may start now",
		Example:           "  muster windows explain fw001 --runbook firmware",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.HostName,
	}
	c.Flags().StringVar(&runbook, "runbook", "", "`name` of the runbook that is to run")
	cli.CompleteFlagWith(c, "runbook", complete.Runbooks)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		var e api.HostWindows
		err := s.Get(ctx, "/v1/hosts/"+url.PathEscape(args[0])+"/windows",
			url.Values{"runbook": {runbook}}, &e)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(e)
		}
		return s.Write(explained(e))
	})
}

func explained(e api.HostWindows) string {
	var b strings.Builder
	for _, w := range e.Windows {
		fmt.Fprintf(&b, "%s holds: it is for %s, the most special level with a window\n",
			cli.Cell(w.Name),
			cli.Cell(w.For))
	}
	for _, w := range e.Hidden {
		fmt.Fprintf(&b, "%s does not hold: it is for %s, and there are windows for the %s\n",
			cli.Cell(w.Name), cli.Cell(w.For), cli.Cell(e.Level))
	}
	for _, w := range e.Others {
		fmt.Fprintf(&b, "%s does not hold: it is for %s, and the customer of this host never approved "+
			"it; it hides nothing\n", cli.Cell(w.Name), cli.Cell(w.For))
	}
	for _, f := range e.Freezes {
		state := "is not on now"
		if f.Active {
			state = "holds now"
		}
		fmt.Fprintf(&b, "freeze %s for %s %s: %s\n", cli.Cell(f.Name), cli.Cell(f.For), state,
			cli.OrDash(cli.Cell(f.Reason)))
	}
	switch {
	case e.Now.Open && e.Now.Until.IsZero():
		fmt.Fprintf(&b, "open now, and not shut in the next %d days\n", int(windows.Horizon.Hours()/24))
	case e.Now.Open:
		fmt.Fprintf(&b, "open now, until %s\n", cli.Moment(e.Now.Until))
	case e.Now.Next.IsZero():
		fmt.Fprintf(&b, "not open now: %s\n", cli.Cell(e.Now.Why))
	default:
		fmt.Fprintf(&b, "not open now: %s; next %s\n", cli.Cell(e.Now.Why), cli.Moment(e.Now.Next))
	}
	return b.String()
}
