package work

import (
	"strconv"
	"strings"
	"time"

	"muster/jobs"
	"muster/server/pages/frame"
)

// taskFactsOf lists what the task was asked to do.
func taskFactsOf(t jobs.TaskInfo) []frame.Fact {
	return []frame.Fact{{Name: "Runbook", Value: t.Runbook, Link: "/runbooks/" + t.Runbook},
		{Name: "Arguments", Value: t.Ran.Text()}, {Name: "On", Value: t.On},
		{Name: "Hosts", Value: strconv.Itoa(t.Total)}, {Name: "Operator", Value: frame.Operator(t)},
		{Name: "Reason", Value: t.Reason}, {Name: "Priority", Value: string(t.Priority)},
		{Name: "Disturbs its hosts", Value: frame.Yes(t.Disruptive)},
		{Name: "Retry of", Value: string(t.RetryOf), Link: frame.LinkOf(string(t.RetryOf))},
		{Name: "Chain", Value: string(t.Chain)}, {Name: "Schedule", Value: t.Schedule,
			Link: "/schedules/" + t.Schedule}, {Name: "Supersedes", Value: t.Supersedes},
		{Name: "Zones", Value: strings.Join(t.Zones, ", ")}, {Name: "Inventory", Value: t.Inventory},
		frame.Timed("Submitted", t.Submitted), frame.Timed("First job taken", t.Started),
		frame.Timed("Last job ended", t.Finished), {Name: "Took", Value: tookIf(t)}}
}

// tookIf returns the time that a task took, once it has ended.
func tookIf(t jobs.TaskInfo) string {
	if t.Finished.IsZero() {
		return ""
	}
	return frame.Took(t.Seconds)
}

// jobFactsOf lists what is known of a job.
func jobFactsOf(f jobFacts) []frame.Fact {
	exit := ""
	if f.j.ExitCode != nil {
		exit = strconv.Itoa(*f.j.ExitCode)
	}
	list := []frame.Fact{{Name: "Class of the failure", Value: string(f.j.Class)},
		{Name: "Exit code", Value: exit}, {Name: "Attempt", Value: strconv.Itoa(f.j.Attempt)},
		{Name: "Tries", Value: strconv.Itoa(f.j.Tries)}, {Name: "Step", Value: strconv.Itoa(f.j.Step)},
		{Name: "Node", Value: f.j.Node}, {Name: "Note", Value: f.j.Note},
		frame.Timed("Due", f.j.Due), frame.Timed("Began", f.j.Started), frame.Timed("Ended",
			f.j.Finished),
		frame.Timed("Next action", f.j.Next), {Name: "Waits for", Value: f.j.Waits}}
	if f.j.Of != nil {
		of := f.j.Of
		list = append(list, frame.Fact{Name: "Runbook", Value: of.Runbook, Link: "/runbooks/" +
			of.Runbook},
			frame.Fact{Name: "Operator", Value: of.Operator}, frame.Fact{Name: "Arguments",
				Value: of.Ran.Text()},
			frame.Fact{Name: "Reason", Value: of.Reason})
	}
	return list
}

// usesOf returns the uses of a job's time in words.
func usesOf(named []frame.Counted) string {
	var out []string
	for _, c := range named {
		if c.N > 0 {
			out = append(out, c.Kind+" "+(time.Duration(c.N)*time.Millisecond).String())
		}
	}
	return strings.Join(out, ", ")
}
