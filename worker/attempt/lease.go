package attempt

import (
	"context"
	"sync"
	"time"

	"muster/worker/verdict"
)

// clockCheck bounds the time between two looks of a lease at the boot clock. Timers of Go stand
// still while a machine sleeps, the boot clock does not: after a sleep the lease stops its job at
// most so much later.
const clockCheck = 5 * time.Second

// A lease is the time in which an attempt may act. At its end the lease cancels the context of the
// attempt with verdict.ErrOverdue. A go at a checkpoint extends it.
type lease struct {
	clock  func() time.Duration
	cancel context.CancelCauseFunc
	moved  chan<- struct{} // gets a value when the lease is extended; nil: nobody waits for it

	mu      sync.Mutex
	end     time.Duration // on the boot clock; guarded by mu
	expired time.Duration // when the context was cancelled; 0: not yet; guarded by mu
	timer   *time.Timer   // nil once the attempt is over; guarded by mu
}

// newLease derives a context that ends with the lease. The caller must call
// stop when the attempt is over.
func newLease(ctx context.Context, clock func() time.Duration, end time.Duration) (
	context.Context, *lease,
) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &lease{clock: clock, cancel: cancel, end: end}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(l.nap(), l.look)
	return ctx, l
}

// look ends the attempt if its lease is over, and else sets the timer again.
func (l *lease) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timer == nil:
	case l.end > l.clock():
		l.timer.Reset(l.nap())
	default:
		l.expire()
	}
}

// expire cancels the context of the attempt. The caller holds mu.
func (l *lease) expire() {
	if l.expired == 0 {
		l.expired = l.clock()
	}
	l.cancel(verdict.ErrOverdue)
}

// expireNow cancels the context of the attempt, and reports whether this was the first time. In a
// process that was stopped for a while, the clerk may call it before the timers fire.
func (l *lease) expireNow() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = l.expired == 0
	l.expire()
	return first
}

// expiredAt returns when the lease cancelled the context of the attempt; 0: not yet.
func (l *lease) expiredAt() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expired
}

// nap returns the time to the next look. The caller holds mu.
func (l *lease) nap() time.Duration { return min(max(l.end-l.clock(), 0), clockCheck) }

// until returns the end of the lease on the boot clock.
func (l *lease) until() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// left returns the rest of the lease; it is negative once the lease is over.
func (l *lease) left() time.Duration { return l.until() - l.clock() }

// extend moves the end of the lease. It reports whether the lease was still good: one that is over
// stays over, and ends the attempt.
func (l *lease) extend(end time.Duration) (good bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expired != 0 || l.end <= l.clock() {
		l.expire()
		return false
	}
	l.end = end
	return true
}

// stop ends the lease and frees its timer.
func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.timer = nil
	l.cancel(context.Canceled)
}
