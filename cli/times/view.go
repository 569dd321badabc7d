package times

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster/api"
	"muster/cli"
	"muster/windows"
)

func appliedText(did api.AppliedSchedules) string {
	would := ""
	if did.Check {
		would = "would be "
	}
	var b strings.Builder
	for _, one := range did.Schedules {
		change := would + cli.Cell(string(one.Change))
		if one.Change == api.Unchanged {
			change = string(one.Change)
		}
		fmt.Fprintf(&b, "%s: %s", cli.Cell(one.Name), change)
		if !one.Next.IsZero() {
			b.WriteString("; next " + cli.Moment(one.Next))
		}
		b.WriteString("\n")
		for _, d := range one.Differences {
			b.WriteString("  " + cli.Cell(d) + "\n")
		}
		for _, note := range one.Notes {
			fmt.Fprintf(&b, "? %s: %s\n", cli.Cell(one.Name), cli.Cell(note))
		}
		if one.Refused != "" {
			b.WriteString("  a tick now would have no task: " + cli.Cell(one.Refused) + "\n")
		}
	}
	b.WriteString(leftText(did.Left))
	return b.String()
}

func scheduleGrid(list []api.ScheduleInfo, colours cli.Palette) cli.Grid {
	g := cli.NewGrid("SCHEDULE", "CRON", "ZONE", "RUNBOOK", "NEXT", "LAST", "RESULT", "ON")
	for _, i := range list {
		next := cli.Moment(i.Next)
		if why := standing(i.Paused, i.Enabled); why != "" {
			next = colours.Paint(cli.Yellow, cli.Fit(why, 30))
		}
		result := cli.Cell(i.Ticks.Result)
		if i.Ticks.Refused {
			result = colours.Paint(cli.Red, cli.Fit(result, 40))
		} else if i.Ticks.Task != "" {
			result = cli.Cell(string(i.Ticks.Task))
		}
		g.Add(cli.Cell(i.Name), cli.Cell(i.Cron), cli.Cell(i.Zone), cli.Cell(i.Runbook), next,
			cli.Moment(i.Ticks.Tick),
			cli.OrDash(result), cli.Fit(cli.Cell(i.On), 40))
	}
	return g
}

// standing explains why a schedule has no ticks; empty: it has.
func standing(paused string, enabled bool) string {
	switch {
	case paused != "":
		return cli.Cell(paused)
	case !enabled:
		return "not enabled"
	}
	return ""
}

func showSchedule(s *cli.Screen, i api.ScheduleInfo) error {
	if s.JSON {
		return s.WriteJSON(i)
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(i.Args)) {
		args = append(args, cli.Cell(name+"="+i.Args[name]))
	}
	skipped := ""
	if i.Ticks.Skipped > 0 {
		skipped = cli.Count(i.Ticks.Skipped, "tick") + " before it, not made up for"
	}
	pending := ""
	if n := len(i.Ticks.Pending); n > 0 {
		pending = cli.Count(n, "tick") + " to become tasks"
	}
	return s.Write(cli.Details(
		[2]string{"schedule", cli.Cell(i.Name)},
		[2]string{"cron", cli.Cell(i.Cron + " in " + i.Zone)},
		[2]string{"except", cli.Cell(strings.Join(i.Except, ", "))},
		[2]string{"gap, fold", cli.Cell(i.Gap + ", " + i.Fold)},
		[2]string{"jitter", cli.Cell(i.Jitter)},
		[2]string{"missed, overlap", cli.Cell(string(i.Missed) + ", " + string(i.Overlap))},
		[2]string{"runbook", cli.Cell(i.Runbook)},
		[2]string{"args", strings.Join(args, " ")},
		[2]string{"on", cli.Cell(i.On)},
		[2]string{"priority", cli.Cell(i.Priority)},
		[2]string{"expire", cli.Cell(i.Expire)},
		[2]string{"expect", cli.Cell(i.Expect)},
		[2]string{"disruptive", cli.Yes(i.Disruptive)},
		[2]string{"supersedes", cli.Cell(i.Supersedes)},
		[2]string{"only", cli.Cell(i.Only)},
		[2]string{"goes out", rolloutAsked(i.Rollout)},
		[2]string{"version", fmt.Sprintf("%d, by %s at %s", i.Version, cli.Cell(i.By), cli.Moment(i.At))},
		[2]string{"state", standing(i.Paused, i.Enabled)},
		[2]string{"next tick", cli.Moment(i.Next)},
		[2]string{"pending", pending},
		[2]string{"last tick", cli.Moment(i.Ticks.Tick)},
		[2]string{"its result", cli.Cell(i.Ticks.Result)},
		[2]string{"skipped", skipped},
		[2]string{"last task", cli.Cell(string(i.Ticks.Task))},
	))
}

// rolloutAsked describes the rollout of a schedule's tasks as it was written: each tick computes
// the numbers.
func rolloutAsked(r *windows.RolloutRequest) string {
	if r == nil {
		return ""
	}
	var list []string
	add := func(word, value string) {
		if value != "" {
			list = append(list, word+" "+cli.Cell(value))
		}
	}
	flag := func(word string, is bool) {
		if is {
			list = append(list, word)
		}
	}
	add("canary", r.Canary)
	add("waves", strings.Join(r.Waves, ","))
	add("soak", r.Soak)
	add("health", r.Health)
	for _, name := range slices.Sorted(maps.Keys(r.HealthArgs)) {
		add("health-arg", name+"="+r.HealthArgs[name])
	}
	flag("gate", r.Gate)
	add("max-failed", r.MaxFailed)
	add("breaker", r.Breaker)
	flag("unreachable-ok", r.UnreachableOK)
	return strings.Join(list, ", ")
}

func tickGrid(l api.TickList, here *time.Location) cli.Grid {
	g := cli.NewGrid("UTC", strings.ToUpper(cli.Cell(l.Zone)), "HERE")
	for _, t := range l.Ticks {
		g.Add(cli.Moment(t.At), cli.Cell(t.Local), t.At.In(here).Format("2006-01-02 15:04:05 -0700"))
	}
	return g
}
