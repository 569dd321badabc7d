package verdict

import (
	"time"

	"muster/jobs"
)

const (
	// AnswerTime is the time of a host to report an end, beyond the bound of the step and its
	// killing.
	AnswerTime = time.Second

	// GoTime is the time for which a take is a go for the first step: an operator who stops a zone
	// may count on no further start after it.
	GoTime = 5 * time.Second

	// BoundMin is the least time with which a step is started.
	BoundMin = 5 * time.Second
)

// Deadline returns the time by which a job must be over, on the boot clock. sent is a time before
// the worker asked for the lock, so the lock holds a margin longer than the job, whatever the
// clocks.
func Deadline(sent, timeout time.Duration) time.Duration {
	return sent + timeout - jobs.Margin(timeout)
}

// Room returns the time that a step may take on the host, by the rest of the lease.
func Room(left time.Duration) time.Duration {
	return left - jobs.KillGrace - AnswerTime
}

// Bound returns the time that a step may take on the host: its own timeout, or the room if that is
// less. The room is cut to whole seconds, because hosts round up.
func Bound(timeout, left time.Duration) (d time.Duration, ok bool) {
	r := Room(left)
	if r < BoundMin {
		return 0, false
	}
	if timeout <= r {
		return timeout, true
	}
	return r.Truncate(time.Second), true
}

// The pauses between two tries of a call to the queue.
const (
	pauseMin = 50 * time.Millisecond
	pauseMax = 2 * time.Second
)

// Pause returns the pause after so many failed tries of a call to the queue: twice as long each
// time. chance, from 0 to 1, takes away up to a quarter, so that the many children that saw Redis
// go do not come back in one moment.
func Pause(tries int, chance float64) time.Duration {
	d := pauseMax
	if tries < 7 { // 50 ms << 6 is above pauseMax
		d = min(pauseMin<<(tries-1), pauseMax)
	}
	return d - time.Duration(chance*float64(d)/4)
}
