// Package clock bounds what a process knows of the clock of a server. It is pure.
//
// Floor 2: may import no other room of the queue.
package clock

import (
	"time"

	"muster/jobs"
)

// A Clock bounds a server's clock: TIME less our boot clock, in µs, lies between Lo and Hi. An
// answer cannot say it more exactly, because the server read TIME at some moment between the
// sending of the call and the arrival of its answer.
//
// So a server or a caller that slept in between is not taken for a clock that jumped: the sleep
// makes the bounds wide, and wide bounds contradict nothing.
type Clock struct {
	Lo, Hi int64 // µs
	Known  bool  // whether there was a look
}

// Look returns the bounds that one call shows.
func Look(now jobs.Micros, sent, came time.Duration) Clock {
	at := int64(now)
	return Clock{Lo: at - came.Microseconds(), Hi: at - sent.Microseconds(), Known: true}
}

// With returns the bounds after another look: the overlap of both or, if they contradict each
// other, the new ones.
func (c Clock) With(next Clock) Clock {
	if !c.Known || c.Jump(next) != 0 {
		return next
	}
	return Clock{Lo: max(c.Lo, next.Lo), Hi: min(c.Hi, next.Hi), Known: true}
}

// Jump returns by how much at least the clock has jumped between two looks; 0 if it need not have
// jumped.
func (c Clock) Jump(next Clock) time.Duration {
	switch {
	case !c.Known || !next.Known:
		return 0
	case next.Lo > c.Hi:
		return time.Duration(next.Lo-c.Hi) * time.Microsecond
	case next.Hi < c.Lo:
		return time.Duration(next.Hi-c.Lo) * time.Microsecond
	}
	return 0
}

// Width returns the uncertainty of the clock.
func (c Clock) Width() time.Duration { return time.Duration(c.Hi-c.Lo) * time.Microsecond }

// At returns the earliest possible TIME at the moment when the boot clock shows boot.
func (c Clock) At(boot time.Duration) jobs.Micros { return jobs.Micros(c.Lo + boot.Microseconds()) }
