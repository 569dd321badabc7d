package traces

import (
	"context"
	"math/rand/v2"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/jobs/trace"
	"muster/server/spans"
)

// pauses are the times between tries.
type pauses struct {
	first, most time.Duration // each is twice as long as the one before
	keep        time.Duration // a request that is older is given up
	linger      time.Duration // the first of a request waits so long for others
}

var usual = pauses{first: time.Second, most: 30 * time.Second, keep: 5 * time.Minute,
	linger: time.Second}

// spansMost bounds the spans of a request: collectors refuse bodies that are too big.
const spansMost = 2000

// historyPatience bounds what history is asked about the jobs of one request.
const historyPatience = 10 * time.Second

// deliver sends tasks and jobs until the collector has them, has refused them for good, or was away
// for too long. It returns false if ctx was done before that.
func (t *Tracer) deliver(ctx context.Context, b []item) bool {
	for list := t.spansOf(ctx, b); ; {
		part := list[:min(len(list), spansMost)]
		if list = list[len(part):]; len(list) == 0 {
			return t.request(ctx, part, len(b))
		}
		if !t.request(ctx, part, 0) {
			return false
		}
	}
}

// request delivers one request with the spans of n tasks and jobs, which are counted.
func (t *Tracer) request(ctx context.Context, list []spans.Span, n int) bool {
	begun, wait := time.Now(), t.pause.first
	for {
		r := t.to.send(ctx, list)
		if ctx.Err() != nil && r.err != nil {
			return false
		}
		t.say(r.err)
		over := r.err == nil || !r.again || time.Since(begun) >= t.pause.keep
		if over {
			t.count(r, n)
		}
		if r.err == nil || !r.again {
			return true
		}
		// The collector has asked for a pause, or is away: that holds for what comes next, too.
		if !sleep(ctx, max(r.after, wait/2+rand.N(wait/2+1))) || over {
			return over
		}
		wait = min(2*wait, t.pause.most)
	}
}

// sleep returns false if ctx was done before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// count counts tasks and jobs by what became of their request.
func (t *Tracer) count(r reply, n int) {
	t.Meters.Wait(len(t.queue))
	switch {
	case r.err == nil && r.rejected > 0:
		t.Meters.Traced(Partly, n)
		t.Log.Warn("the collector refused some spans", "to", t.to.place, "spans", r.rejected, "words",
			r.words)
	case r.err == nil:
		t.Meters.Traced(Sent, n)
	case r.again:
		t.Meters.Traced(Lost, n)
	default:
		t.Meters.Traced(Refused, n)
	}
}

// spansOf makes the spans of tasks and jobs. If history cannot be read, they are made without what
// only it knows.
func (t *Tracer) spansOf(ctx context.Context, b []item) (out []spans.Span) {
	ctx, cancel := context.WithTimeout(ctx, historyPatience)
	defer cancel()
	hosts := map[jobs.TaskID][]string{}
	for _, one := range b {
		if one.job != nil && one.settle.IsZero() {
			hosts[one.job.ID.Task()] = append(hosts[one.job.ID.Task()], one.job.Host)
		}
	}
	known := map[jobs.TaskID]map[string]api.Course{}
	for id, list := range hosts {
		found, err := t.Past.Courses(ctx, id, list)
		if err != nil {
			t.Log.Debug("traces without attempts: history cannot be read", "task", id, "error", err)
		}
		known[id] = found
	}
	for _, one := range b {
		switch {
		case one.task != nil:
			var err error
			if one.task.Committed, err = t.Past.Committed(ctx, one.task.Info.Task); err != nil {
				t.Log.Debug("a trace without the end of its submit: history cannot be read", "task",
					one.task.Info.Task, "error", err)
			}
			out = append(out, spans.OfTask(*one.task)...)
		case !one.settle.IsZero():
			out = append(out, spans.Settled(*one.job, one.settle))
		default:
			id := one.job.ID.Task()
			out = append(out, spans.OfJob(spans.Job{Past: *one.job, Course: known[id][one.job.Host],
				Submit: trace.Submit(id, parentOf(askedOf(*one.job)))})...)
		}
	}
	return out
}
