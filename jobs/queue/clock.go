package queue

import (
	"time"

	"muster/jobs"
)

// A clock is what is known of a server's clock: TIME less our boot clock, in µs,
// lies between lo and hi. An answer cannot say it better, because TIME was read at
// some moment between the sending of the call and the coming of its answer.
//
// So a server or a caller that slept in between is not mistaken for a clock that
// jumped: the sleep makes the bounds wide, and wide bounds contradict nothing.
type clock struct {
	lo, hi int64
	known  bool
}

// look is the clock as one call shows it.
func look(now jobs.Micros, sent, came time.Duration) clock {
	at := int64(now)
	return clock{lo: at - came.Microseconds(), hi: at - sent.Microseconds(), known: true}
}

// with is what is known after another look: what both allow, or, if they
// contradict each other, the new one.
func (c clock) with(next clock) clock {
	if !c.known || c.jump(next) != 0 {
		return next
	}
	return clock{lo: max(c.lo, next.lo), hi: min(c.hi, next.hi), known: true}
}

// jump is by how much the clock has jumped between two looks, at least; 0 if it
// need not have.
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

// width is how little is known.
func (c clock) width() time.Duration { return time.Duration(c.hi-c.lo) * time.Microsecond }

// at is the earliest that TIME can be when the boot clock shows boot.
func (c clock) at(boot time.Duration) jobs.Micros { return jobs.Micros(c.lo + boot.Microseconds()) }
