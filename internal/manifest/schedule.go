package manifest

import (
	"strconv"

	"muster/windows"
)

func readSchedules(lists []windows.File, in Input) ([]Entry, error) {
	list, err := windows.ParseSchedules(lists, in.Rollout)
	var out []Entry
	for _, e := range list {
		out = append(out, OfSchedule(e))
	}
	return out, err
}

// OfSchedule returns a schedule as an entry.
func OfSchedule(e windows.Entry) Entry {
	return Entry{Kind: Schedule, Name: e.Name, Customer: e.Owner, Value: e}
}

func scheduleDifferences(is, was Entry) []string {
	a, b := is.Value.(windows.Entry), was.Value.(windows.Entry)
	return a.Differences(b)
}

// WriteSchedule returns a schedule as a document that [Read] reads as the same schedule.
func WriteSchedule(e windows.Entry) string {
	b := begin(Schedule)
	b.text("name", e.Name)
	b.text("cron", e.Cron)
	b.list("except", e.Except)
	b.text("zone", e.Zone)
	b.text("jitter", e.Jitter)
	b.other("gap", e.Gap, "first")
	b.other("fold", e.Fold, "first")
	b.text("runbook", e.Runbook)
	b.pairs("args", e.Args)
	b.text("on", e.On)
	b.text("owner", e.Owner)
	b.other("missed", string(e.Missed), string(windows.MissedOnce))
	b.other("overlap", string(e.Overlap), string(windows.OverlapForbid))
	b.other("window", string(e.Window), string(windows.WindowNone))
	b.other("priority", e.Priority, "normal")
	b.text("expire", e.Expire)
	b.text("expect", e.Expect)
	b.flag("disruptive", e.Disruptive)
	b.text("supersedes", e.Supersedes)
	b.text("only", e.Only)
	if !e.Enabled {
		b.raw("enabled", "false")
	}
	if r := e.Rollout; r != nil {
		b.text("canary", r.Canary)
		b.list("waves", r.Waves)
		b.text("soak", r.Soak)
		b.flag("gate", r.Gate)
		b.text("health", r.Health)
		b.pairs("health_args", r.HealthArgs)
		b.text("max_failed", r.MaxFailed)
		b.text("breaker", r.Breaker)
		// A rollout that asks for nothing is one all the same, and a key must say so.
		b.raw("unreachable_ok", strconv.FormatBool(r.UnreachableOK))
	}
	return b.String()
}
