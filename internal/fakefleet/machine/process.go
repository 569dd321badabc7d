package machine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Status is how a process ended: with an exit Status, or by a signal.
type Status struct {
	Code   int
	Signal string // such as TERM; empty if it exited
}

// signals are those that a pretended process can die of.
var signals = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "PIPE": 13, "TERM": 15}

// seen is how a shell sees the status of a child.
func (s Status) seen() int {
	if s.Signal != "" {
		return 128 + signals[s.Signal]
	}
	return s.Code
}

// group is a process group: what TERM and KILL are sent to. KILL implies TERM,
// so whoever listens to TERM need not listen to both.
type group struct {
	id         int
	term, kill context.Context
}

// alarm is the bound that a timeout command put on a group of its own.
type alarm struct {
	soft, hard *time.Timer // hard is nil without -k
	signal     func(kill bool)
	free       func()
}

// bounded makes a group that gets a signal after some time and, if the grace is
// not 0, KILL after that. What its parent gets, it gets too.
func (g group) bounded(b bound, stuck bool) (group, *alarm) {
	killed, sendKill := context.WithCancel(g.kill)
	termed, sendTerm := context.WithCancel(killed)
	apart := context.AfterFunc(g.term, sendTerm)

	a := &alarm{free: func() { apart(); sendKill() }}
	a.signal = func(kill bool) {
		switch {
		case stuck:
		case kill:
			sendKill()
		default:
			sendTerm()
		}
	}
	a.soft = time.AfterFunc(b.after, func() { a.signal(b.kill) })
	if b.grace > 0 {
		a.hard = time.AfterFunc(b.after+b.grace, func() { a.signal(true) })
	}
	return group{term: termed, kill: killed}, a
}

// stop ends the bound and says what it did. Only if nothing is left that runs in
// the group can it be freed.
func (a *alarm) stop(empty bool) (fired, killed bool) {
	fired = !a.soft.Stop()
	killed = a.hard != nil && !a.hard.Stop()
	if empty {
		a.free()
	}
	return fired, killed
}

// stepsMax bounds the statements of one exec, and the blocks of 8 KiB that its
// floods print, 2 GB: what has no end costs a core for a moment only.
const stepsMax = 250_000

// family is what all processes of one exec have in common.
type family struct {
	stuck      bool
	root       group // of the first shell
	steps      atomic.Int64
	timedOut   atomic.Bool
	left       atomic.Bool  // a timeout has ended, and its group may not be empty
	asides     atomic.Int64 // how many run in the background
	background sync.WaitGroup
}

// aside runs something in the background. The exec ends when it has ended, too.
func (f *family) aside(run func()) {
	f.asides.Add(1)
	f.background.Go(func() {
		defer f.asides.Add(-1)
		run()
	})
}

// worn counts a step and says that they are used up.
func (f *family) worn() bool { return f.steps.Add(1) > stepsMax }

func (f *family) busy() bool { return f.asides.Load() > 0 }

// Pause waits and says whether the time has passed: false if it was cut short.
func Pause(done <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}
