package queue

import (
	"context"
	"time"

	"muster/jobs"
	"muster/jobs/queue/codec"
)

// Follow calls epoch if the zone is in another than this handle knows: somebody
// else found that it was forgotten, and shall hear what is in hand here, and how
// long locks are.
func (q *Conn) Follow(ctx context.Context, name, epoch string) error {
	q.mu.Lock()
	z := q.zones[name]
	same := z == nil || z.epoch == "" || z.epoch == epoch
	q.mu.Unlock()
	if same {
		return nil
	}
	return q.epoch(ctx, name, 0)
}

// Learn notes how long a lock may be.
func (q *Conn) Learn(name string, lock time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if z := q.zones[name]; z != nil {
		z.longest = max(z.longest, lock)
	}
}

// GiveUp forgets jobs that are about to be given back, before the call: if its
// answer is lost, the next connection must not say that they are in hand.
func (q *Conn) GiveUp(name string, results []jobs.Result) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range results {
		if r.Kind == jobs.KindBack {
			delete(q.zones[name].held, r.Job)
		}
	}
}

// Note keeps what this process holds now, and when Redis' clock was seen.
func (q *Conn) Note(name string, s jobs.Step, reply jobs.Reply, sent time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	z := q.zones[name]
	z.see(reply.Now, sent)
	for _, g := range codec.Holding(reply.Jobs) {
		z.longest = max(z.longest, g.Timeout)
	}
	if s.Slot != q.cfg.Slot {
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
func (q *Conn) Extend(name string, id jobs.ID, sent time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h, ok := q.zones[name].held[id]; ok {
		h.until = max(h.until, sent+h.timeout)
		q.zones[name].held[id] = h
	}
}

// Hold tells the handle of a child which jobs its master took for it, so that it
// can say after a restart of Redis that it holds them. For before the first call.
func (q *Conn) Hold(h jobs.Handover) {
	q.mu.Lock()
	defer q.mu.Unlock()
	z := &zone{held: map[jobs.ID]held{}}
	for _, g := range codec.Holding(h.Reply.Jobs) {
		z.held[g.Job] = held{g.Token, g.Timeout, h.Sent + g.Timeout}
	}
	q.zones[h.Zone] = z
}

// Round counts the rounds in which a zone was tended, from 0 on. It is false for a zone that
// was never called.
func (q *Conn) Round(zone string) (n int, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	z := q.zones[zone]
	if z == nil {
		return 0, false
	}
	z.tended++
	return z.tended - 1, true
}
