package spans

import (
	"time"

	"muster/jobs"
	"muster/jobs/trace"
)

// A Task is a task of which all jobs have ended.
type Task struct {
	Info        jobs.TaskInfo
	Traceparent string    // of the caller; empty: none
	Committed   time.Time // when its jobs could run; zero: it is not known
}

// OfTask returns the spans of the submit of a task, and of the task to its end.
func OfTask(of Task) []Span {
	t := of.Info
	c := trace.Submit(t.Task, of.Traceparent)
	end := between(t.Finished.Time, t.Submitted.Time, t.Finished.Time)
	send := Span{Trace: c.Trace, ID: c.Span, Name: "submit " + text(t.Runbook), Kind: Producer,
		Start: t.Submitted.Time, End: t.Submitted.Time}
	if caller, err := trace.Parse(of.Traceparent); err == nil {
		send.Parent = caller.Span
	}
	if !of.Committed.IsZero() {
		send.End = between(of.Committed, send.Start, end)
	}
	l := list{{"messaging.system", "muster"}, {"messaging.operation.type", "send"},
		{"messaging.operation.name", "submit"}}
	l.number("messaging.batch.message_count", t.Total)
	l.text("muster.task", string(t.Task))
	l.text("muster.runbook", t.Runbook)
	send.Attributes = l

	whole := Span{Trace: c.Trace, ID: trace.Span("task", string(t.Task)), Parent: c.Span,
		Name: "task " + text(t.Runbook), Kind: Internal, Start: t.Submitted.Time, End: end}
	l = list{}
	l.text("muster.task", string(t.Task))
	l.text("muster.runbook", t.Runbook)
	l.number("muster.jobs", t.Total)
	for _, o := range jobs.Outcomes() {
		if n := t.Outcomes[o]; n > 0 {
			l.number("muster.jobs."+string(o), n)
		}
	}
	whole.Attributes = l
	whole.judge(worst(t.Outcomes))
	return []Span{send, whole}
}

// worst returns the outcome that stands for those of all jobs of a task: the first bad one in the
// order in which people read them, and succeeded only if all jobs have.
func worst(c jobs.Counts) jobs.Outcome {
	found := jobs.Succeeded
	for _, o := range jobs.Outcomes() {
		switch {
		case c[o] == 0:
		case IsBad(o):
			return o
		case o != jobs.Succeeded:
			found = o
		}
	}
	return found
}
