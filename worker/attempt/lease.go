package attempt

import (
	"context"
	"sync"
	"time"

	"muster/worker/verdict"
)

// clockCheck is how often a lease looks at the boot clock at least. Timers of Go
// stand still while a machine sleeps, the boot clock does not: after a sleep a
// job is stopped at most so much later.
const clockCheck = 5 * time.Second

// A lease is the time in which an attempt may act. At its end it cancels the
// context of the attempt with errOverdue. A checkpoint can move it on.
type lease struct {
	clock  func() time.Duration
	cancel context.CancelCauseFunc
	moved  chan<- struct{} // hears that the lease was moved on; nil: nobody wants to know

	mu    sync.Mutex
	end   time.Duration // on the boot clock; guarded by mu
	told  time.Duration // when the attempt was told that it is over; 0: not yet; guarded by mu
	timer *time.Timer   // nil once the attempt is over; guarded by mu
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

// look cancels what is overdue, and else comes back.
func (l *lease) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timer == nil:
	case l.end > l.clock():
		l.timer.Reset(l.nap())
	default:
		l.tell()
	}
}

// tell ends the attempt. The caller holds mu.
func (l *lease) tell() {
	if l.told == 0 {
		l.told = l.clock()
	}
	l.cancel(verdict.ErrOverdue)
}

// tellNow ends the attempt, and tells whether nobody had told it before: in a process that
// was stopped for a while others may look before its timers fire.
func (l *lease) tellNow() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = l.told == 0
	l.tell()
	return first
}

// toldAt is when the attempt was told that its lease is over; 0: not yet.
func (l *lease) toldAt() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told
}

// nap is the time to the next look. The caller holds mu.
func (l *lease) nap() time.Duration { return min(max(l.end-l.clock(), 0), clockCheck) }

// until is the end of the lease on the boot clock.
func (l *lease) until() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// left is how much of the lease is left; negative once it is over.
func (l *lease) left() time.Duration { return l.until() - l.clock() }

// extend moves the end on.
func (l *lease) extend(end time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = end
}

// stop ends the lease and frees its timer.
func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.timer = nil
	l.cancel(context.Canceled)
}
