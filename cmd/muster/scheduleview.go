package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster/api"
	"muster/windows"
)

func appliedText(did api.AppliedSchedules) string {
	would := ""
	if did.Check {
		would = "would be "
	}
	var b strings.Builder
	for _, one := range did.Schedules {
		change := would + cell(string(one.Change))
		if one.Change == api.Unchanged {
			change = string(one.Change)
		}
		fmt.Fprintf(&b, "%s: %s", cell(one.Name), change)
		if !one.Next.IsZero() {
			b.WriteString("; next " + moment(one.Next))
		}
		b.WriteString("\n")
		for _, d := range one.Differences {
			b.WriteString("  " + cell(d) + "\n")
		}
		for _, note := range one.Notes {
			fmt.Fprintf(&b, "? %s: %s\n", cell(one.Name), cell(note))
		}
		if one.Refused != "" {
			b.WriteString("  a tick now would have no task: " + cell(one.Refused) + "\n")
		}
	}
	b.WriteString(leftText(did.Left))
	return b.String()
}

func scheduleGrid(list []api.ScheduleInfo, colours palette) grid {
	g := newGrid("SCHEDULE", "CRON", "ZONE", "RUNBOOK", "NEXT", "LAST", "RESULT", "ON")
	for _, i := range list {
		next := moment(i.Next)
		if why := standing(i); why != "" {
			next = colours.paint(yellow, fit(why, 30))
		}
		result := cell(i.Ticks.Result)
		if i.Ticks.Refused {
			result = colours.paint(red, fit(result, 40))
		} else if i.Ticks.Task != "" {
			result = cell(string(i.Ticks.Task))
		}
		g.add(cell(i.Name), cell(i.Cron), cell(i.Zone), cell(i.Runbook), next, moment(i.Ticks.Tick),
			orDash(result), fit(cell(i.On), 40))
	}
	return g
}

// standing says why a schedule has no ticks; empty: it has.
func standing(i api.ScheduleInfo) string {
	switch {
	case i.Paused != "":
		return cell(i.Paused)
	case !i.Enabled:
		return "not enabled"
	}
	return ""
}

func (s *session) showSchedule(i api.ScheduleInfo) error {
	if s.json {
		return s.writeJSON(i)
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(i.Args)) {
		args = append(args, cell(name+"="+i.Args[name]))
	}
	skipped := ""
	if i.Ticks.Skipped > 0 {
		skipped = count(i.Ticks.Skipped, "tick") + " before it, not made up for"
	}
	pending := ""
	if n := len(i.Ticks.Pending); n > 0 {
		pending = count(n, "tick") + " to become tasks"
	}
	return s.write(details(
		[2]string{"schedule", cell(i.Name)},
		[2]string{"cron", cell(i.Cron + " in " + i.Zone)},
		[2]string{"except", cell(strings.Join(i.Except, ", "))},
		[2]string{"gap, fold", cell(i.Gap + ", " + i.Fold)},
		[2]string{"jitter", cell(i.Jitter)},
		[2]string{"missed, overlap", cell(string(i.Missed) + ", " + string(i.Overlap))},
		[2]string{"runbook", cell(i.Runbook)},
		[2]string{"args", strings.Join(args, " ")},
		[2]string{"on", cell(i.On)},
		[2]string{"priority", cell(i.Priority)},
		[2]string{"expire", cell(i.Expire)},
		[2]string{"expect", cell(i.Expect)},
		[2]string{"disruptive", yes(i.Disruptive)},
		[2]string{"supersedes", cell(i.Supersedes)},
		[2]string{"only", cell(i.Only)},
		[2]string{"goes out", rolloutAsked(i.Rollout)},
		[2]string{"version", fmt.Sprintf("%d, by %s at %s", i.Version, cell(i.By), moment(i.At))},
		[2]string{"stands", standing(i)},
		[2]string{"next tick", moment(i.Next)},
		[2]string{"pending", pending},
		[2]string{"last tick", moment(i.Ticks.Tick)},
		[2]string{"its result", cell(i.Ticks.Result)},
		[2]string{"skipped", skipped},
		[2]string{"last task", cell(string(i.Ticks.Task))},
	))
}

// rolloutAsked says how the tasks of a schedule go out, as it was asked for: numbers are
// made of it at each tick.
func rolloutAsked(r *windows.RolloutRequest) string {
	if r == nil {
		return ""
	}
	var list []string
	add := func(word, value string) {
		if value != "" {
			list = append(list, word+" "+cell(value))
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

func tickGrid(l api.TickList, here *time.Location) grid {
	g := newGrid("UTC", strings.ToUpper(cell(l.Zone)), "HERE")
	for _, t := range l.Ticks {
		g.add(moment(t.At), cell(t.Local), t.At.In(here).Format("2006-01-02 15:04:05 -0700"))
	}
	return g
}
