package worker

import (
	"time"

	"muster/jobs"
)

const (
	// answerTime is what a host gets to report an end, beyond the step's bound
	// and its killing.
	answerTime = time.Second

	// goTime is how long a take is a go for the first step: who stops a zone may
	// count on no further start after it.
	goTime = 5 * time.Second

	// boundMin is the least time for which a step is worth being started.
	boundMin = 5 * time.Second
)

// deadline is when a job must be over, on the boot clock: sent is from before
// its lock was asked for, so the lock holds a margin longer whatever the clocks.
func deadline(sent, timeout time.Duration) time.Duration {
	return sent + timeout - jobs.Margin(timeout)
}

// room is how long a step may run on the host if so much of the lease is left.
func room(left time.Duration) time.Duration {
	return left - jobs.KillGrace - answerTime
}

// bound is how long a step may run on the host: its own timeout, cut to the
// room there is. Cut ones are whole seconds, because hosts round up.
func bound(timeout, left time.Duration) (d time.Duration, ok bool) {
	r := room(left)
	if r < boundMin {
		return 0, false
	}
	if timeout <= r {
		return timeout, true
	}
	return r.Truncate(time.Second), true
}
