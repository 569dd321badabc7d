package election

import (
	"time"

	"muster/jobs/queue/hub"
)

// leaseMargin is the time by which a leader takes its lease for ended earlier than Redis does:
// clocks run at different speeds, and a request that was begun must still be sent.
const leaseMargin = 500 * time.Millisecond

// elector has the knowledge of one server about one duty. It is pure: times are those of
// the boot clock, and arguments.
type elector struct {
	held  int64         // number of our last term; 0: there was none
	until time.Duration // the end of the time in which we trust our term; 0: we stand down
}

// leads reports whether this server has the duty at now.
func (e elector) leads(now time.Duration) bool { return now < e.until }

// heard takes the answer to a request that was sent at the time sent. The lease began at the
// earliest then, so its end is counted from there.
func (e *elector) heard(t hub.Term, sent time.Duration) {
	if !t.Mine {
		*e = elector{} // another server has a term: ours does not come back
		return
	}
	e.held, e.until = t.Number, sent+hub.Lease-leaseMargin
}

// doubt takes note of a request without an answer: the request may have failed, or its answer.
// The term may still be ours, and the next answer says so if it is.
func (e *elector) doubt() { e.until = 0 }
