package spans

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/jobs/trace"
)

// A Job is a job that has ended, with its course as far as history has it.
type Job struct {
	Past   api.PastJob
	Course api.Course
	// Submit is the span of the submit of its task.
	Submit trace.Context
}

// waits has the names of the times between attempts, by how the attempt before them ended.
var waits = map[string]string{"retry": "pause", "wait": "wait", "verify": "verify",
	"defer": "window", "back": "queued", "lost": "lost"}

// jobSpans has the spans of a job while they are made.
type jobSpans struct {
	job  Job
	past api.PastJob
	root trace.SpanID
	made []Span
}

// OfJob returns the spans of a job, the one of the whole job first.
func OfJob(j Job) []Span {
	past := j.Past
	m := &jobSpans{job: j, past: past, root: trace.Span("job", string(past.ID))}
	m.made = []Span{m.whole()}
	begin, end := m.made[0].Start, m.made[0].End
	if len(j.Course.Attempts) == 0 && !past.Started.IsZero() {
		m.job.Course.Attempts = []api.Attempt{{Attempt: past.Attempt, Node: past.Node,
			Started: past.Started, Ended: past.Finished, How: string(past.Outcome)}}
	}
	before, out := "queued", m.shorten()
	if out > 0 {
		m.made[0].Attributes = append(m.made[0].Attributes,
			Attribute{"muster.attempts_left_out", int64(out)})
	}
	for i, a := range m.job.Course.Attempts {
		if a.Started.IsZero() {
			continue // only its end was stored
		}
		from := between(a.Started.Time, begin, end)
		m.wait(before, begin, from)
		begin = between(m.endOf(i, end), from, end)
		m.attempt(a, from, begin)
		before = cmp.Or(waits[a.How], "queued")
	}
	m.wait(before, begin, end)
	return m.made
}

// The bounds of the spans of a job: one that waits for weeks looks thousands of times.
const (
	attemptsMost = 50 // its first ones, and as many of its last
	stepsMost    = 500
)

// shorten leaves out attempts in the middle of many, and steps beyond the bound. It returns the
// number of attempts that it has left out.
func (m *jobSpans) shorten() (out int) {
	c := &m.job.Course
	if len(c.Steps) > stepsMost {
		c.Steps = c.Steps[len(c.Steps)-stepsMost:]
	}
	if out = len(c.Attempts) - 2*attemptsMost; out <= 0 {
		return 0
	}
	last := c.Attempts[len(c.Attempts)-attemptsMost:]
	c.Attempts = append(slices.Clone(c.Attempts[:attemptsMost]), last...)
	return out
}

// whole returns the span of the whole job: from when it could run, as far as that is known.
func (m *jobSpans) whole() Span {
	j := m.past
	s := Span{Trace: trace.OfJob(j.ID), ID: m.root, Name: "job " + text(j.Runbook), Kind: Consumer,
		Link: &m.job.Submit, End: j.Finished.Time}
	s.Start = s.End
	for _, at := range []jobs.Time{j.Due, j.Started} {
		if !at.IsZero() && at.Before(s.Start) {
			s.Start = at.Time
		}
	}
	for _, a := range m.job.Course.Attempts {
		if !a.Started.IsZero() && a.Started.Before(s.Start) {
			s.Start = a.Started.Time
		}
	}
	l := list{{"messaging.system", "muster"}, {"messaging.operation.type", "process"},
		{"messaging.operation.name", "job"}}
	l.text("messaging.destination.name", j.Zone)
	l.text("messaging.message.id", string(j.ID))
	l.text("muster.task", string(j.ID.Task()))
	l.text("muster.host", j.Host)
	l.text("muster.customer", j.Customer)
	l.text("muster.runbook", j.Runbook)
	l.text("muster.node", j.Node)
	l.text("muster.outcome", string(j.Outcome))
	l.text("muster.class", string(j.Class))
	l.text("muster.proof", string(j.Proof))
	l.number("muster.attempts", j.Attempt)
	l.number("muster.tries", j.Tries)
	if j.ExitCode != nil {
		l.number("muster.exit_code", *j.ExitCode)
	}
	for _, use := range jobs.Uses() {
		if spent := j.Times[use]; spent > 0 {
			l = append(l, Attribute{"muster.seconds." + string(use), spent})
		}
	}
	s.Attributes = l
	if s.judge(j.Outcome); j.Proof == api.NotProven && s.Status == OK {
		s.Status = Unset
	}
	return s
}

// endOf returns when an attempt ended: with its job, or as it was stored, or with what came next.
func (m *jobSpans) endOf(i int, end time.Time) time.Time {
	list := m.job.Course.Attempts
	if i == len(list)-1 && list[i].How == string(m.past.Outcome) {
		return end // history rounds the times of events, and not those of jobs
	}
	if at := list[i].Ended; !at.IsZero() {
		return at.Time
	}
	for _, next := range list[i+1:] {
		if !next.Started.IsZero() {
			return next.Started.Time
		}
	}
	return end
}

// once reports whether the sums of the job's times are those of its only attempt.
func (m *jobSpans) once() bool { return len(m.job.Course.Attempts) == 1 && m.past.Attempt == 1 }

// wait adds the time before an attempt, or before the end of a job that did not run. The time
// before the only attempt is that until its window, and then that for a worker.
func (m *jobSpans) wait(name string, from, to time.Time) {
	if !from.Before(to) {
		return
	}
	if name == "queued" && (m.once() || len(m.job.Course.Attempts) == 0) {
		if d := m.past.Times.Of(jobs.InWindow); d > 0 {
			opened := between(from.Add(d), from, to)
			m.add("window", from, opened)
			from = opened
		}
	}
	m.add(name, from, to)
}

// attempt adds an attempt, with its connection if that is known, and its steps.
func (m *jobSpans) attempt(a api.Attempt, from, to time.Time) {
	no := strconv.Itoa(a.Attempt)
	s := m.add("attempt", from, to)
	var l list
	l.number("muster.attempt", a.Attempt)
	l.text("muster.node", a.Node)
	l.text("muster.how", a.How)
	s.Attributes = l
	if o := jobs.Outcome(a.How); o.Valid() {
		s.judge(o)
	}
	inside, at := s.ID, from
	if d := m.past.Times.Of(jobs.Connecting); m.once() && d > 0 {
		at = between(from.Add(d), from, to)
		m.add("connect", from, at).Parent = inside
	}
	// The first step of an attempt begins without a word to the queue: the events name the others.
	step, known := 0, m.once()
	for _, b := range m.job.Course.Steps {
		if b.At.Before(from) || b.At.After(to) {
			continue
		}
		if known {
			m.step(no, step, at, b.At.Time).Parent = inside
		}
		step, at, known = b.Step, b.At.Time, true
	}
	if known {
		m.step(no, step, at, to).Parent = inside
	}
}

func (m *jobSpans) step(attempt string, n int, from, to time.Time) *Span {
	s := m.add("step", from, between(to, from, to))
	s.ID = trace.Span("step", string(m.past.ID), attempt, strconv.Itoa(n), strconv.Itoa(len(m.made)))
	s.Attributes = []Attribute{{"muster.step", int64(n)}}
	return s
}

// add adds a span right below that of the job. The pointer is good until the next one.
func (m *jobSpans) add(name string, from, to time.Time) *Span {
	m.made = append(m.made, Span{Trace: m.made[0].Trace, Parent: m.root, Name: name, Kind: Internal,
		ID:    trace.Span(name, string(m.past.ID), strconv.Itoa(len(m.made))),
		Start: from, End: to})
	return &m.made[len(m.made)-1]
}

// Settled returns the span of an order to ask the host of a job that had ended unknown, and whose
// outcome is known since then. It belongs to the trace that was sent before.
func Settled(j api.PastJob, at time.Time) Span {
	s := Span{Trace: trace.OfJob(j.ID), ID: trace.Span("settled", string(j.ID)),
		Parent: trace.Span("job", string(j.ID)), Name: "settled", Kind: Internal, Start: at, End: at}
	var l list
	l.text("muster.task", string(j.ID.Task()))
	l.text("muster.host", j.Host)
	l.text("muster.outcome", string(j.Outcome))
	s.Attributes = l
	s.judge(j.Outcome)
	return s
}
