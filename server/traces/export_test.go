package traces

import "time"

// Hurry makes the pauses of a tracer short.
func (t *Tracer) Hurry(first, keep time.Duration) {
	t.pause = pauses{first: first, most: first, keep: keep, linger: time.Millisecond}
}

// The bounds, and what reads answers, for tests.
const QueueMax = queueMax

var (
	AfterOf = afterOf
	Partial = partly
)
