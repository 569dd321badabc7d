package read

import (
	"muster/jobs"
	"muster/jobs/queue/codec"
)

// place says where a job was found: its score in each of the sets (0 if it is absent), due and
// committed of its task, and the time of reading; 0 if that is not known.
type place struct {
	queue, again, held float64
	task               []any
	now                jobs.Micros
}

// info returns a job in the form that people see.
func info(r *codec.Record, id jobs.ID, at place) jobs.JobInfo {
	j := jobs.JobInfo{ID: id, Host: id.Host(), State: r.State, Outcome: r.End.Outcome,
		Class: r.End.Class, Attempt: r.Attempt, Node: r.Node, Due: jobs.TimeOf(r.Due),
		Started: jobs.TimeOf(r.Started), Finished: jobs.TimeOf(r.End.At),
		ExitCode: r.End.ExitCode(), Error: r.End.Err,
		Step: r.Step, Tries: r.Tries, Aside: jobs.Aside{Note: r.End.Note}}
	if r.Due == 0 {
		due, _ := at.task[0].(string)
		m, _ := jobs.ParseMicros(due)
		j.Due = jobs.TimeOf(m)
	}
	if j.State == jobs.Ended {
		j.Times = times(r, jobs.MicrosOf(j.Due.Time), at.now)
		return j
	}
	j.Note, j.Gate = jobs.Saying(r.Saved), jobs.GateOf(r.Step, r.Saved)
	j.Next = jobs.TimeOf(jobs.Micros(max(at.queue, at.again)))
	committed, _ := at.task[1].(string)
	switch {
	case at.held > 0 && at.held <= jobs.WavesMax && committed != "":
		j.State = jobs.Held // its wave is not open
	case at.held > 0 && committed != "":
		j.State = jobs.Paused
	case j.State != "":
	case at.again > 0:
		j.State = jobs.Blocked
	case committed == "":
		j.State = jobs.Held
	default:
		j.State = jobs.Queued
	}
	switch {
	case j.State == jobs.Deferred, j.State == jobs.Retry, j.State == jobs.Waiting,
		j.State == jobs.Verify:
		j.Why = r.Why
	case j.State == jobs.Queued && r.Later > 0 && r.Due > at.now:
		j.Why = "it has a time of its own: a window, a freeze or the jitter of a schedule gave it"
	}
	if j.State != jobs.Held {
		j.Times = times(r, jobs.MicrosOf(j.Due.Time), at.now)
	}
	return j
}
