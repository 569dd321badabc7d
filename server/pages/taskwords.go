package pages

import (
	"strconv"
	"strings"
	"time"

	"muster/internal/wording"
	"muster/jobs"
)

// clipText shortens a text in a table.
func clipText(text string) string { return wording.ClipTo(text, 160) }

// operator returns the operator of a task, and says if nobody has proved the name.
func operator(t jobs.TaskInfo) string {
	if t.Operator != "" && !t.Proven {
		return t.Operator + " (unproven)"
	}
	return t.Operator
}

// whyOf returns the reason why a job does not run, or its error.
func whyOf(j jobs.JobInfo) string {
	text := j.Why
	if j.Error != "" {
		text = firstLine(j.Error)
	}
	if j.HostLeft {
		text = strings.TrimPrefix(text+"; its host has left the inventory", "; ")
	}
	if text == "" {
		text = j.Note
	}
	return wording.ClipTo(text, 300)
}

// taskFactsOf lists what the task was asked to do.
func taskFactsOf(t jobs.TaskInfo) []fact {
	return []fact{{name: "Runbook", value: t.Runbook, link: "/runbooks/" + t.Runbook},
		{name: "Arguments", value: t.Ran.Text()}, {name: "On", value: t.On},
		{name: "Hosts", value: strconv.Itoa(t.Total)}, {name: "Operator", value: operator(t)},
		{name: "Reason", value: t.Reason}, {name: "Priority", value: string(t.Priority)},
		{name: "Disturbs its hosts", value: yes(t.Disruptive)},
		{name: "Retry of", value: string(t.RetryOf), link: linkOf(string(t.RetryOf))},
		{name: "Chain", value: string(t.Chain)}, {name: "Schedule", value: t.Schedule,
			link: "/schedules/" + t.Schedule}, {name: "Supersedes", value: t.Supersedes},
		{name: "Zones", value: strings.Join(t.Zones, ", ")}, {name: "Inventory", value: t.Inventory},
		timed("Submitted", t.Submitted), timed("First job taken", t.Started),
		timed("Last job ended", t.Finished), {name: "Took", value: tookIf(t)}}
}

// tookIf returns the time that a task took, once it has ended.
func tookIf(t jobs.TaskInfo) string {
	if t.Finished.IsZero() {
		return ""
	}
	return took(t.Seconds)
}

// linkOf returns the address of a task; empty: there is none.
func linkOf(id string) string {
	if id == "" {
		return ""
	}
	return "/tasks/" + id
}

// yes returns a word for a fact that holds.
func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// jobFactsOf lists what is known of a job.
func jobFactsOf(f jobFacts) []fact {
	exit := ""
	if f.j.ExitCode != nil {
		exit = strconv.Itoa(*f.j.ExitCode)
	}
	list := []fact{{name: "Class of the failure", value: string(f.j.Class)},
		{name: "Exit code", value: exit}, {name: "Attempt", value: strconv.Itoa(f.j.Attempt)},
		{name: "Tries", value: strconv.Itoa(f.j.Tries)}, {name: "Step", value: strconv.Itoa(f.j.Step)},
		{name: "Node", value: f.j.Node}, {name: "Note", value: f.j.Note},
		timed("Due", f.j.Due), timed("Began", f.j.Started), timed("Ended", f.j.Finished),
		timed("Next action", f.j.Next), {name: "Waits for", value: f.j.Waits}}
	if f.j.Of != nil {
		of := f.j.Of
		list = append(list, fact{name: "Runbook", value: of.Runbook, link: "/runbooks/" + of.Runbook},
			fact{name: "Operator", value: of.Operator}, fact{name: "Arguments", value: of.Ran.Text()},
			fact{name: "Reason", value: of.Reason})
	}
	return list
}

// usesOf returns the uses of a job's time in words.
func usesOf(named []counted) string {
	var out []string
	for _, c := range named {
		if c.n > 0 {
			out = append(out, c.kind+" "+(time.Duration(c.n)*time.Millisecond).String())
		}
	}
	return strings.Join(out, ", ")
}
