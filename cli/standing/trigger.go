package standing

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

// New makes the command trigger.
func New() *cobra.Command {
	c := &cobra.Command{
		Use:   "trigger",
		Short: "Show which events start which tasks, and what they did",
		Long: `Triggers start tasks when something happens elsewhere, by the file
/etc/muster/triggers.yaml: docs/TRIGGERS.md. An event carries data and never an order: a
trigger says the runbook, the hosts and how many of them at most.`,
		Example: `  muster trigger ls
  muster trigger show diagnose
  muster trigger test alert.json --source alertmanager --kind firing
  muster trigger log --trigger diagnose
  muster trigger check triggers.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newList(), newShow(), newTest(), newLog(), newCheck())
	return c
}

func newList() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the triggers in force",
		Long: `ls lists the triggers in force, in the order of their file. If a changed file has
mistakes, it says so, and the earlier triggers stay.`,
		Example:           "  muster trigger ls\n  muster trigger ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.TriggerList
		if err := s.Get(ctx, "/v1/triggers", nil, &l); err != nil {
			return err
		}
		if s.JSON {
			l.Triggers = cli.Filled(l.Triggers)
			return s.WriteJSON(l)
		}
		if l.Complaint != "" {
			s.Say("the file of triggers has mistakes: %s", cli.Cell(l.Complaint))
		}
		g := cli.NewGrid("TRIGGER", "SOURCES", "KINDS", "RUNBOOK", "ON", ">AT MOST", "LIMIT", ">RECENT",
			">WAITING", "ENABLED")
		for _, t := range l.Triggers {
			g.Add(cli.Cell(t.Name), cells(t.Sources), cells(t.Kinds), cli.Cell(t.Runbook),
				cli.Fit(cli.Cell(t.On), onColumns), strconv.Itoa(t.AtMost), cli.OrDash(cli.Cell(t.Limit)),
				strconv.Itoa(t.Recent), strconv.Itoa(len(t.Waiting)), yes(t.Enabled))
		}
		return s.List(l.Triggers, g, "there are no triggers: docs/TRIGGERS.md says how")
	})
}

// onColumns bounds a selector of a table.
const onColumns = 40

func cells(list []string) string { return cli.OrDash(cli.Cell(strings.Join(list, ","))) }

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func newShow() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "show TRIGGER",
		Short: "Show one trigger with its last firings",
		Long: `show shows a trigger: which events it is for, what it binds of them, which hosts it may
mean, and what it did about the last events.`,
		Example:           "  muster trigger show diagnose\n  muster trigger show diagnose -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		var t struct {
			api.TriggerInfo
			Firings []api.Firing `json:"firings"`
		}
		err := s.Get(ctx, "/v1/triggers/"+url.PathEscape(args[0]), nil, &t.TriggerInfo)
		if err != nil {
			return err
		}
		var l api.FiringList
		q := url.Values{"trigger": {args[0]}, "limit": {"10"}}
		if err := s.Get(ctx, "/v1/firings", q, &l); err != nil {
			return err
		}
		t.Firings = cli.Filled(l.Firings)
		if s.JSON {
			return s.WriteJSON(t)
		}
		if err := s.Write(cli.Details(details(t.TriggerInfo)...)); err != nil {
			return err
		}
		if len(l.Firings) == 0 {
			return s.Write("no event has concerned it in the last week\n")
		}
		return s.List(l.Firings, firings(l.Firings), "")
	})
}

func details(t api.TriggerInfo) [][2]string {
	out := [][2]string{{"trigger", cli.Cell(t.Name)}, {"enabled", yes(t.Enabled)},
		{"principal", cli.Cell(t.Principal)}, {"sources", cells(t.Sources)},
		{"kinds", cells(t.Kinds)}, {"customers", cells(t.Customers)}}
	for _, w := range t.When {
		out = append(out, [2]string{"when", cli.Cell(w)})
	}
	out = append(out, [2]string{"runbook", cli.Cell(t.Runbook)})
	for _, a := range t.Args {
		out = append(out, [2]string{"argument", cli.Cell(a)})
	}
	return append(out, [][2]string{{"on", cli.Cell(t.On)},
		{"of those", cli.OrDash(cli.Cell(t.Narrowed))},
		{"at most", cli.Count(t.AtMost, "host")}, {"limit", cli.OrDash(cli.Cell(t.Limit))},
		{"fired", fmt.Sprintf("%d times within the time of the limit", t.Recent)},
		{"collects", cli.OrDash(cli.Cell(t.Debounce))}, {"waiting", cells(t.Waiting)}}...)
}

func firings(list []api.Firing) cli.Grid {
	g := cli.NewGrid("AT", "TRIGGER", "EVENT", "SOURCE", "RESULT", "TASK", ">HOSTS", "WHY")
	for _, f := range list {
		hosts := ""
		if f.Hosts > 0 {
			hosts = strconv.Itoa(f.Hosts)
		}
		g.Add(cli.Moment(f.At), cli.Cell(f.Trigger), cli.Cell(f.Event), cli.Cell(f.Source),
			cli.Cell(f.Result), cli.OrDash(cli.Cell(string(f.Task))), cli.OrDash(hosts),
			cli.OrDash(cli.Fit(cli.Cell(f.Why), whyColumns)))
	}
	return g
}

// whyColumns bounds a reason of a table.
const whyColumns = 70

func newLog() *cobra.Command {
	trigger, event, from, limit := "", "", 0, 50
	c := &cobra.Command{
		Use:   "log",
		Short: "List what triggers did about events, the newest first",
		Long: `log lists each event at each trigger that it concerned, the newest first, for a week: it
fires (with its task), collects, or it was limited or refused, with the reason. Whoever
may see some hosts only sees the firings whose tasks are theirs.`,
		Example: `  muster trigger log
  muster trigger log --trigger diagnose --limit 10
  muster trigger log -o json | jq -r '.firings[] | select(.result == "refused").why'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&trigger, "trigger", "", "only firings of this `trigger`")
	c.Flags().StringVar(&event, "event", "", "only firings of this `event`")
	c.Flags().IntVar(&from, "from", 0, "the `place` of the first one")
	c.Flags().IntVar(&limit, "limit", limit, "firings of a page, at most 500")
	for _, name := range []string{"trigger", "event", "from", "limit"} {
		cli.CompleteFlagWith(c, name, cobra.NoFileCompletions)
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		if limit < 1 || limit > 500 {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("--limit %d: want 1 to 500", limit))
		}
		if from < 0 {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("--from %d: want 0 or more", from))
		}
		q := url.Values{"limit": {strconv.Itoa(limit)}, "from": {strconv.Itoa(from)}}
		for name, value := range map[string]string{"trigger": trigger, "event": event} {
			if value != "" {
				q.Set(name, value)
			}
		}
		var l api.FiringList
		if err := s.Get(ctx, "/v1/firings", q, &l); err != nil {
			return err
		}
		if s.JSON {
			l.Firings = cli.Filled(l.Firings)
			return s.WriteJSON(l)
		}
		err := s.List(l.Firings, firings(l.Firings), "there are no such firings")
		if err == nil && l.Next > 0 {
			s.Say("there are more: the same with --from %d", l.Next)
		}
		return err
	})
}
