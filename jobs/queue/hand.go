package queue

import (
	"time"

	"muster/jobs"
	"muster/jobs/queue/codec"
)

// A Hand holds the state of a connection in the zones that it has called: the jobs in hand, and how
// long a lock may be.
type Hand struct{ q *Conn }

// Learn notes that a lock may last this long.
func (h Hand) Learn(name string, lock time.Duration) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	if z := h.q.zones[name]; z != nil {
		z.longest = max(z.longest, lock)
	}
}

// GiveUp forgets jobs before the call that releases them: if the answer of that call is lost, the
// next connection must not report that they are in hand.
func (h Hand) GiveUp(name string, results []jobs.Result) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	for _, r := range results {
		if r.Kind == jobs.KindBack {
			h.q.zones[name].drop(r)
		}
	}
}

// Note stores which jobs this process holds now, and when it saw the clock of Redis.
func (h Hand) Note(name string, s jobs.Step, reply jobs.Reply, sent time.Duration) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	z := h.q.zones[name]
	z.see(reply.Now, sent)
	for _, g := range codec.Holding(reply.Jobs) {
		z.longest = max(z.longest, g.Timeout)
	}
	if s.Slot != h.q.cfg.Slot {
		return // a master takes for a child, which itself reports what it holds
	}
	for _, r := range s.Results {
		z.drop(r)
	}
	for _, g := range codec.Holding(reply.Jobs) {
		z.held[g.Job] = held{g.Token, g.Timeout, sent + g.Timeout}
	}
}

// drop forgets the attempt of a result. A process may take a job again after it was lost, and then
// report the end of its older attempt: the newer one stays in hand.
func (z *zone) drop(r jobs.Result) {
	if z.held[r.Job].token == r.Token {
		delete(z.held, r.Job)
	}
}

// Extend notes that the lock of a job in hand lasts longer, counted from the time of the request.
func (h Hand) Extend(name string, id jobs.ID, sent time.Duration) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	if job, ok := h.q.zones[name].held[id]; ok {
		job.until = max(job.until, sent+job.timeout)
		h.q.zones[name].held[id] = job
	}
}

// Epoch returns the epoch of a zone that this process knows; empty: none.
func (h Hand) Epoch(name string) string {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	if z := h.q.zones[name]; z != nil {
		return z.epoch
	}
	return ""
}

// Hold tells the handle of a child which jobs its master took for it, so that after a restart of
// Redis it can report that it holds them. Call it before the first call.
//
// The child also inherits the epoch that its master knew before it took them. In that epoch Redis
// has forgotten nothing that the child could report. So a copy of the child's first report that the
// network delays past the end of its jobs takes none of them again.
func (h Hand) Hold(o jobs.Handover) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	z := &zone{epoch: o.Reply.Epoch, held: map[jobs.ID]held{}}
	for _, g := range codec.Holding(o.Reply.Jobs) {
		z.held[g.Job] = held{g.Token, g.Timeout, o.Sent + g.Timeout}
	}
	h.q.zones[o.Zone] = z
}

// Round counts the rounds in which a zone was tended, from 0. It returns false for a zone that was
// never called.
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
