package hosts

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/submit"
	"muster/cli/watch"
	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

// NewFacts makes the command facts.
func NewFacts() *cobra.Command {
	c := &cobra.Command{
		Use:   "facts",
		Short: "Collect facts about hosts, and show them",
		Long: `facts gather runs the runbook facts on hosts: system, kernel, model, firmware, uptime,
disk, clock, boot id. muster keeps the facts with their time, and selectors can use
them: fact.os=debian, 'fact.disk_free<500'. Facts do not follow the host: mind their age.`,
		Example: `  muster facts gather 'role=fw'
  muster facts show fw001
  muster facts ls 'fact.os=debian'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newFactsGather(), newFactsShow(), newFactsList())
	return c
}

func newFactsGather() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "gather SELECTOR",
		Short:             "Collect facts about hosts, and wait for the result",
		Example:           "  muster facts gather all",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Hosts,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		on, err := s.SelectorArg(ctx, args, cli.OrSayAll)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return gather(ctx, s, on)
	})
}

func newFactsShow() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "show HOST",
		Short:             "Show the facts of a host, and when it reported them",
		Example:           "  muster facts show fw001",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Hosts,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		l, err := facts(ctx, s.Client, args[0])
		switch {
		case err != nil:
			return err
		case len(l.Hosts) != 1:
			return cli.Exit(cli.ExitNotAll, fmt.Errorf(
				"%s has said nothing yet: `muster facts gather %[1]s`",
				args[0]))
		case s.JSON:
			return s.WriteJSON(l.Hosts[0])
		}
		return s.Write(factsText(l.Hosts[0], s.Now()))
	})
}

func newFactsList() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "ls [SELECTOR]",
		Aliases:           []string{"list"},
		Short:             "List the facts of hosts",
		Example:           "  muster facts ls 'role=fw' -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.Hosts,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		on, err := s.SelectorArg(ctx, args, cli.OrLeaveOut)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		l, err := facts(ctx, s.Client, cmp.Or(on, "all"))
		if err != nil {
			return err
		}
		if l.None != "" {
			s.Say("have said nothing yet: %s", cli.Fit(cli.Cell(l.None), 200))
		}
		return s.List(l.Hosts, factsGrid(l.Hosts, s.Now()), "`muster facts gather SELECTOR` asks hosts")
	})
}

func facts(ctx context.Context, c *cli.Client, on string) (api.FactList, error) {
	var l api.FactList
	err := c.Get(ctx, "/v1/facts", url.Values{"on": {on}}, &l)
	l.Hosts = cli.Filled(l.Hosts)
	return l, err
}

// gather runs the runbook and stores the facts that hosts reported.
func gather(ctx context.Context, s *cli.Session, on string) error {
	b := api.Submit{Runbook: "facts", On: on, As: s.As,
		ID: string(jobs.NewTaskID(s.Now(), cli.Chance()))}
	t, err := s.Client.Submit(ctx, b, func(error, time.Duration) { s.Say("no answer, trying again") })
	if err != nil {
		return submit.SubmitEnding(ctx, b, err)
	}
	s.Say("%s", submit.Accepted(t))
	end, err := watch.Follow(ctx, s, t.TaskInfo)
	if err != nil {
		return err
	}
	var kept api.Gathered
	path := "/v1/tasks/" + url.PathEscape(string(t.Task)) + "/facts"
	err = s.Do(ctx, cli.Call{Method: http.MethodPost, Path: path, Bound: cli.SubmitTimeout}, &kept)
	if err != nil {
		return err
	}
	kept.Bad = cli.Filled(kept.Bad)
	code := watch.ExitOf(end)
	if len(kept.Bad) > 0 {
		code = max(code, cli.ExitNotAll)
	}
	if s.JSON {
		if err := s.WriteJSON(kept); err != nil {
			return err
		}
		return cli.ExitWith(code)
	}
	if err := s.Write(gatheredText(kept, end)); err != nil {
		return err
	}
	return cli.ExitWith(code)
}

// gatheredText names the hosts whose facts were stored, and the others.
func gatheredText(g api.Gathered, end jobs.TaskInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "facts of %s kept\n", cli.Count(g.Kept, "host"))
	for i, bad := range g.Bad {
		if i == 10 {
			fmt.Fprintf(&b, "and of %d more not\n", len(g.Bad)-i)
			break
		}
		fmt.Fprintf(&b, "%s: %s\n", cli.Cell(bad.Host), cli.Cell(bad.Error))
	}
	if missing := end.Total - end.Outcomes[jobs.Succeeded]; missing > 0 {
		fmt.Fprintf(&b, "%s did not answer: `muster task %s` shows why\n", cli.Count(missing, "host"),
			cli.Cell(string(end.Task)))
	}
	return b.String()
}

// factsText shows the facts of one host, a line each.
func factsText(f api.HostFacts, now time.Time) string {
	var b strings.Builder
	stale := ""
	if f.Stale {
		stale = ", stale: `muster facts gather " + cli.Cell(f.Host) + "`"
	}
	fmt.Fprintf(&b, "%-13s %s\n", "host", cli.Cell(f.Host))
	fmt.Fprintf(&b, "%-13s %s (%s%s)\n", "said", cli.Moment(f.At), cli.Ago(f.At, now), stale)
	for _, name := range fleet.FactNames() {
		if value, ok := f.Facts[name]; ok {
			fmt.Fprintf(&b, "%-13s %s\n", name, cli.Cell(factText(name, value)))
		}
	}
	return b.String()
}

// factText returns the value of a fact for people.
func factText(name, value string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return value
	}
	switch name {
	case "uptime":
		return cli.Span(time.Duration(min(n, 1<<32)) * time.Second)
	case "disk", "disk_free":
		return remote.ByteCount(min(n, 1<<40) << 20)
	case "clock_offset":
		return clockText(n)
	}
	return value
}

// clockText describes the error of a clock, which is known in whole seconds.
func clockText(seconds int64) string {
	off := cli.Span(time.Duration(min(max(seconds, -seconds), 1<<32)) * time.Second)
	switch {
	case seconds > 1:
		return off + " ahead"
	case seconds < -1:
		return off + " behind"
	}
	return "right, to a second or two"
}

func factsGrid(list []api.HostFacts, now time.Time) cli.Grid {
	g := cli.NewGrid("HOST", "OS", "VERSION", "KERNEL", "ARCH", "MODEL", "FIRMWARE", ">FREE", ">UP",
		"SAID")
	for _, f := range list {
		row := []string{cli.Cell(f.Host)}
		for _, name := range []string{"os", "os_version", "kernel", "arch", "model", "firmware",
			"disk_free", "uptime"} {
			row = append(row, cli.OrDash(cli.Cell(factText(name, f.Facts[name]))))
		}
		said := cli.Ago(f.At, now)
		if f.Stale {
			said += ", stale"
		}
		g.Add(append(row, said)...)
	}
	return g
}
