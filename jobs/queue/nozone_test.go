package queue_test

import (
	"testing"

	"muster/jobs"
	"muster/testkit/queuetest"
)

// paired are an order and its end.
type paired struct {
	on, off func(q *queuetest.Queue, note string) (jobs.Switched, error)
}

// pairs returns the orders that concern all zones.
func pairs(t *testing.T) map[string]paired {
	ctx := t.Context()
	return map[string]paired{
		"halt": {func(q *queuetest.Queue, note string) (jobs.Switched, error) { return q.Halt(ctx, note) },
			func(q *queuetest.Queue, note string) (jobs.Switched, error) { return q.Lift(ctx, note) }},
		"customer": {func(q *queuetest.Queue, note string) (jobs.Switched, error) {
			return q.PauseCustomer(ctx, "acme", note)
		}, func(q *queuetest.Queue, note string) (jobs.Switched, error) {
			return q.ResumeCustomer(ctx, "acme", note)
		}},
	}
}

// After a FLUSHALL no zone is known until a node reports. An order counts all the same, because the
// hub stores it, and its answer says whether it changed something.
func TestAnOrderWithoutAZoneSaysWhatItChanged(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		for name, p := range pairs(t) {
			for i, c := range []struct {
				do       func(*queuetest.Queue, string) (jobs.Switched, error)
				by, note string
				already  bool
			}{
				{p.off, "alice: nothing to end", "alice: nothing to end", true},
				{p.on, "alice: h1", "alice: h1", false},
				{p.on, "bob: h2", "alice: h1", true},
				{p.off, "alice: r1", "alice: r1", false},
				{p.off, "bob: r2", "bob: r2", true},
				{p.on, "bob: h3", "bob: h3", false},
			} {
				did, err := c.do(q, c.by)
				if err != nil || did.Already != c.already || did.Note != c.note || len(did.Zones) > 0 {
					t.Errorf("%s, order %d: %+v, %v, want already %v, note %q", name, i, did, err, c.already,
						c.note)
				}
			}
		}
	})
}

// A halt and a pause that a restore has put back have not reached a zone that comes later. Their
// end changes something.
func TestTheEndOfAnOrderThatReachedNoZoneChangesIt(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		for _, p := range pairs(t) {
			if _, err := p.on(q, "alice: h1"); err != nil {
				t.Fatal(err)
			}
		}
		submit(t, q, spec(), 1) // makes the zone, which nobody has tended
		for name, p := range pairs(t) {
			did, err := p.off(q, "alice: r1")
			if err != nil || did.Already || did.Paused {
				t.Errorf("%s: %+v, %v, want that something changed", name, did, err)
			}
			if did, err = p.off(q, "alice: r2"); err != nil || !did.Already {
				t.Errorf("%s: %+v, %v, want that nothing changed", name, did, err)
			}
		}
	})
}
