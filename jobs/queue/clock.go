package queue

import (
	"time"

	"muster/jobs"
)

// A clock bounds a server's clock: TIME less our boot clock, in µs, lies between lo and hi. An
// answer cannot say it more exactly, because the server read TIME at some moment between the
// sending of the call and the arrival of its answer.
//
// So a server or a caller that slept in between is not taken for a clock that jumped: the sleep
// makes the bounds wide, and wide bounds contradict nothing.
type clock struct {
	lo, hi int64
	known  bool
}

// look returns the bounds that one call shows.
func look(now jobs.Micros, sent, came time.Duration) clock {
	at := int64(now)
	return clock{lo: at - came.Microseconds(), hi: at - sent.Microseconds(), known: true}
}

// with returns the bounds after another look: the overlap of both or, if they contradict each
// other, the new ones.
func (c clock) with(next clock) clock {
	if !c.known || c.jump(next) != 0 {
		return next
	}
	return clock{lo: max(c.lo, next.lo), hi: min(c.hi, next.hi), known: true}
}

// jump returns by how much at least the clock has jumped between two looks; 0 if it need not have
// jumped.
func (c clock) jump(next clock) time.Duration {
	switch {
	case !c.known || !next.known:
		return 0
	case next.lo > c.hi:
		return time.Duration(next.lo-c.hi) * time.Microsecond
	case next.hi < c.lo:
		return time.Duration(next.hi-c.lo) * time.Microsecond
	}
	return 0
}

// width returns the uncertainty of the clock.
func (c clock) width() time.Duration { return time.Duration(c.hi-c.lo) * time.Microsecond }

// at returns the earliest possible TIME at the moment when the boot clock shows boot.
func (c clock) at(boot time.Duration) jobs.Micros { return jobs.Micros(c.lo + boot.Microseconds()) }
