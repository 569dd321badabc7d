package queue

import (
	"context"
	"fmt"
	"time"

	"muster/internal/proc"
	"muster/jobs"
	"muster/jobs/queue/clock"
	"muster/jobs/queue/codec"
)

const (
	// stampTries bounds how often a call gets a new stamp: the clocks of a master and its child agree
	// within a round trip.
	stampTries = 100

	// jumpMin is the least jump of TIME that counts; scripts have the same bound, m.MINUTE.
	jumpMin = time.Minute

	// clockWidth bounds the uncertainty of a clock that may be said to have jumped.
	clockWidth = 10 * time.Second
)

// Stamped calls a script that must not run late: a copy of a call that the network delayed is
// recognized by its stamp, the estimate of TIME at the time of sending.
//
// A script that finds TIME far from the stamp does nothing and says so. Then TIME is read again: if
// that proves a jump, all locks may have ended at once, and the zone is frozen; otherwise some
// process slept, and the call is made once more.
func (q *Conn) Stamped(ctx context.Context, s *Script, name string,
	args func(stamp string) []any) (codec.Reader, error) {
	for try := range stampTries {
		r, err := q.Script(ctx, s, name, args(q.stamp(name).String())...)
		if err != nil || len(r.Left) == 0 {
			return r, err
		}
		switch r.Left[0] {
		case "stale":
			if try > 0 {
				continue
			}
		case "skewed":
		default:
			return r, nil
		}
		if err := q.reread(ctx, name); err != nil {
			return codec.Reader{}, err
		}
	}
	return codec.Reader{}, fmt.Errorf("%s in zone %s: a later call of this slot was answered", s.name,
		name)
}

// stamp returns an estimate of TIME, later than all stamps before, unless the clock was put back.
func (q *Conn) stamp(name string) jobs.Micros {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.zones[name].next(q.jumpMin)
}

// next is stamp for who holds the lock. A clock that goes back by more than jumpMin was put back.
func (z *zone) next(jumpMin time.Duration) jobs.Micros {
	now := z.clock.At(proc.Boot())
	if z.stamp < now.Add(jumpMin) {
		now = max(now, z.stamp+1)
	}
	z.stamp = now
	return now
}

// reread reads TIME alone, and freezes the zone if TIME has jumped.
func (q *Conn) reread(ctx context.Context, name string) error {
	c, err := q.enter(ctx, name)
	if err != nil {
		return err
	}
	sent := proc.Boot()
	now, err := c.Time(ctx).Result()
	if err != nil {
		return q.Say("time", err)
	}
	came := proc.Boot()
	seen := clock.Look(jobs.MicrosOf(now), sent, came)
	if seen.Width() > clockWidth {
		return fmt.Errorf("redis %s: time: the answer took %s, too long to tell whether the clock jumped",
			q.cfg.Where(), seen.Width())
	}
	q.mu.Lock()
	jump := q.zones[name].clock.Jump(seen)
	q.mu.Unlock()
	if jump.Abs() > q.jumpMin {
		return q.epoch(ctx, name, jump) // which also learns the new time
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	// One narrow look is better than bounds that a sleep has widened.
	q.zones[name].clock, q.zones[name].looked = seen, came
	return nil
}
