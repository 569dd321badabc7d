package main

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
	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

func newFacts() *cobra.Command {
	c := &cobra.Command{
		Use:   "facts",
		Short: "Ask hosts what they are, and show what they said",
		Long: `facts gather runs the runbook facts on hosts: system, kernel, model, firmware, uptime,
disk, clock, boot id. What they say is kept with its time, and can be used in
selectors: fact.os=debian, 'fact.disk_free<500'. It is as true as it is young.`,
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
	return clientCommand(&cobra.Command{
		Use:               "gather SELECTOR",
		Short:             "Ask hosts what they are, and wait for it",
		Example:           "  muster facts gather all",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeHosts,
	}, func(ctx context.Context, s *session, args []string) error {
		on, err := s.selectorArg(ctx, args, orSayAll)
		if err != nil {
			return exit(exitUsage, err)
		}
		return s.gather(ctx, on)
	})
}

func newFactsShow() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:               "show HOST",
		Short:             "Show what a host said of itself, and when",
		Example:           "  muster facts show fw001",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeHosts,
	}, func(ctx context.Context, s *session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return exit(exitUsage, err)
		}
		l, err := s.facts(ctx, args[0])
		switch {
		case err != nil:
			return err
		case len(l.Hosts) != 1:
			return exit(exitNotAll, fmt.Errorf("%s has said nothing yet: `muster facts gather %[1]s`",
				args[0]))
		case s.json:
			return s.writeJSON(l.Hosts[0])
		}
		return s.write(factsText(l.Hosts[0], s.now()))
	})
}

func newFactsList() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:               "ls [SELECTOR]",
		Aliases:           []string{"list"},
		Short:             "List what hosts said of themselves",
		Example:           "  muster facts ls 'role=fw' -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeHosts,
	}, func(ctx context.Context, s *session, args []string) error {
		on, err := s.selectorArg(ctx, args, orLeaveOut)
		if err != nil {
			return exit(exitUsage, err)
		}
		l, err := s.facts(ctx, cmp.Or(on, "all"))
		if err != nil {
			return err
		}
		if l.None != "" {
			s.say("have said nothing yet: %s", fit(cell(l.None), 200))
		}
		return s.list(l.Hosts, factsGrid(l.Hosts, s.now()), "`muster facts gather SELECTOR` asks hosts")
	})
}

func (c *client) facts(ctx context.Context, on string) (api.FactList, error) {
	var l api.FactList
	err := c.get(ctx, "/v1/facts", url.Values{"on": {on}}, &l)
	l.Hosts = filled(l.Hosts)
	return l, err
}

// gather runs the runbook and sees to it that what the hosts said is kept.
func (s *session) gather(ctx context.Context, on string) error {
	b := api.Submit{Runbook: "facts", On: on, As: s.as,
		ID: string(jobs.NewTaskID(s.now(), chance()))}
	t, err := s.client.submit(ctx, b, func(error, time.Duration) { s.say("no answer, trying again") })
	if err != nil {
		return submitEnding(ctx, b, err)
	}
	s.say("%s", accepted(t))
	end, err := s.follow(ctx, t.TaskInfo)
	if err != nil {
		return err
	}
	var kept api.Gathered
	path := "/v1/tasks/" + url.PathEscape(string(t.Task)) + "/facts"
	err = s.do(ctx, call{method: http.MethodPost, path: path, bound: submitTimeout}, &kept)
	if err != nil {
		return err
	}
	kept.Bad = filled(kept.Bad)
	code := exitOf(end)
	if len(kept.Bad) > 0 {
		code = max(code, exitNotAll)
	}
	if s.json {
		if err := s.writeJSON(kept); err != nil {
			return err
		}
		return exitWith(code)
	}
	if err := s.write(gatheredText(kept, end)); err != nil {
		return err
	}
	return exitWith(code)
}

// gatheredText says whose facts are kept, and whose are not.
func gatheredText(g api.Gathered, end jobs.TaskInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "facts of %s kept\n", count(g.Kept, "host"))
	for i, bad := range g.Bad {
		if i == 10 {
			fmt.Fprintf(&b, "and of %d more not\n", len(g.Bad)-i)
			break
		}
		fmt.Fprintf(&b, "%s: %s\n", cell(bad.Host), cell(bad.Error))
	}
	if missing := end.Total - end.Outcomes[jobs.Succeeded]; missing > 0 {
		fmt.Fprintf(&b, "%s did not answer: `muster task %s` tells why\n", count(missing, "host"),
			cell(string(end.Task)))
	}
	return b.String()
}

// factsText shows the facts of one host, a line each.
func factsText(f api.HostFacts, now time.Time) string {
	var b strings.Builder
	stale := ""
	if f.Stale {
		stale = ", stale: `muster facts gather " + cell(f.Host) + "`"
	}
	fmt.Fprintf(&b, "%-13s %s\n", "host", cell(f.Host))
	fmt.Fprintf(&b, "%-13s %s (%s%s)\n", "said", moment(f.At), ago(f.At, now), stale)
	for _, name := range fleet.FactNames() {
		if value, ok := f.Facts[name]; ok {
			fmt.Fprintf(&b, "%-13s %s\n", name, cell(factText(name, value)))
		}
	}
	return b.String()
}

// factText is the value of a fact for people.
func factText(name, value string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return value
	}
	switch name {
	case "uptime":
		return span(time.Duration(min(n, 1<<32)) * time.Second)
	case "disk", "disk_free":
		return remote.ByteCount(min(n, 1<<40) << 20)
	case "clock_offset":
		return clockText(n)
	}
	return value
}

// clockText says how far a clock is off, of which whole seconds are known.
func clockText(seconds int64) string {
	off := span(time.Duration(min(max(seconds, -seconds), 1<<32)) * time.Second)
	switch {
	case seconds > 1:
		return off + " ahead"
	case seconds < -1:
		return off + " behind"
	}
	return "right, to a second or two"
}

func factsGrid(list []api.HostFacts, now time.Time) grid {
	g := newGrid("HOST", "OS", "VERSION", "KERNEL", "ARCH", "MODEL", "FIRMWARE", ">FREE", ">UP",
		"SAID")
	for _, f := range list {
		row := []string{cell(f.Host)}
		for _, name := range []string{"os", "os_version", "kernel", "arch", "model", "firmware",
			"disk_free", "uptime"} {
			row = append(row, orDash(cell(factText(name, f.Facts[name]))))
		}
		said := ago(f.At, now)
		if f.Stale {
			said += ", stale"
		}
		g.add(append(row, said)...)
	}
	return g
}
