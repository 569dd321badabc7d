package queue

import (
	"time"

	"muster/jobs"
	"muster/jobs/queue/codec"
)

// A Hand knows what a connection holds of zones that it has called: the jobs in hand, and how
// long a lock may be.
type Hand struct{ q *Conn }

// Learn notes how long a lock may be.
func (h Hand) Learn(name string, lock time.Duration) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	if z := h.q.zones[name]; z != nil {
		z.longest = max(z.longest, lock)
	}
}

// GiveUp forgets jobs that are about to be given back, before the call: if its
// answer is lost, the next connection must not say that they are in hand.
func (h Hand) GiveUp(name string, results []jobs.Result) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	for _, r := range results {
		if r.Kind == jobs.KindBack {
			delete(h.q.zones[name].held, r.Job)
		}
	}
}

// Note keeps what this process holds now, and when Redis' clock was seen.
func (h Hand) Note(name string, s jobs.Step, reply jobs.Reply, sent time.Duration) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	z := h.q.zones[name]
	z.see(reply.Now, sent)
	for _, g := range codec.Holding(reply.Jobs) {
		z.longest = max(z.longest, g.Timeout)
	}
	if s.Slot != h.q.cfg.Slot {
		return // a master takes for a child, which says itself what it holds
	}
	for _, r := range s.Results {
		delete(z.held, r.Job)
	}
	for _, g := range codec.Holding(reply.Jobs) {
		z.held[g.Job] = held{g.Token, g.Timeout, sent + g.Timeout}
	}
}

// Extend notes that the lock of a job in hand lasts anew, from when that was asked for.
func (h Hand) Extend(name string, id jobs.ID, sent time.Duration) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	if job, ok := h.q.zones[name].held[id]; ok {
		job.until = max(job.until, sent+job.timeout)
		h.q.zones[name].held[id] = job
	}
}

// Hold tells the handle of a child which jobs its master took for it, so that it
// can say after a restart of Redis that it holds them. For before the first call.
func (h Hand) Hold(o jobs.Handover) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	z := &zone{held: map[jobs.ID]held{}}
	for _, g := range codec.Holding(o.Reply.Jobs) {
		z.held[g.Job] = held{g.Token, g.Timeout, o.Sent + g.Timeout}
	}
	h.q.zones[o.Zone] = z
}

// Round counts the rounds in which a zone was tended, from 0 on. It is false for a zone that
// was never called.
func (h Hand) Round(zone string) (n int, known bool) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	z := h.q.zones[zone]
	if z == nil {
		return 0, false
	}
	z.tended++
	return z.tended - 1, true
}
