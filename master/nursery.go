package master

import (
	"math/rand/v2"
	"time"

	"muster/internal/proc"
)

const (
	// The pauses between children that die without having done anything.
	startPause    = 100 * time.Millisecond
	startPauseMax = 10 * time.Second
)

// nursery counts how the starts of children go.
type nursery struct {
	parent   *proc.Parent
	spawned  int           // since the master started
	failures int           // in a row
	failed   time.Duration // when the last one was counted
	begun    bool          // that one had begun to work
	paused   time.Duration // nothing is started before
	shared   time.Duration // when one was last told to make room for another zone
}

// A death is what is known of a child that is gone.
type death struct {
	ready  bool // it had said so
	done   int  // jobs that it had ended
	lived  time.Duration
	doomed bool // its master has killed it
	exit   proc.Exit
}

func (c *child) death(exit proc.Exit, now time.Duration) death {
	return death{c.ready, c.report.Done, now - c.started, c.doom != "", exit}
}

// fruitless tells that the next child may fare no better, and is to be started
// later. One that has ended a job has shown that children can work here, whoever
// killed it then; and one that lived for longer than the longest pause is no
// reason for one.
func (d death) fruitless() bool {
	switch {
	case !d.ready:
		return true
	case d.doomed, d.exit == proc.Exit{}, d.done > 0:
		return false
	}
	return d.lived < startPauseMax
}

// countDeath counts a child that ended without having done anything. Of those
// that were started before the last failure only the first counts, because they
// have learned nothing from its pause.
func (n *node) countDeath(c *child, why string) {
	if c.started < n.children.failed {
		return
	}
	if !c.ready {
		n.startFailed(why)
		return
	}
	n.pauseStarts(true)
	n.log.Warn("child has ended no job", "why", why, "failures", n.children.failures,
		"pause", n.children.paused-n.children.failed)
	if n.children.failures > 1 { // anybody may kill one
		n.note(&n.face.notes.start, "children die before they have ended a job: "+why)
	}
}

func (n *node) startFailed(why string) {
	n.pauseStarts(false)
	n.log.Error("child does not start", "why", why, "failures", n.children.failures,
		"pause", n.children.paused-n.children.failed)
	n.note(&n.face.notes.start, "children do not start: "+why)
}

func (n *node) pauseStarts(begun bool) {
	c := n.children
	wait := pause(c.failures, rand.Float64(), startPause, startPauseMax)
	c.failures++
	c.failed, c.begun = proc.Boot(), begun
	c.paused = c.failed + wait
}

// started goes on after a child has said that it is ready: children do start, but
// whether they live is not said with that.
func (n *node) started() {
	if !n.children.begun {
		n.note(&n.face.notes.start, "")
	}
}

// startWorked goes on after a child has ended its first job, or had nothing to do.
// Each child says that once, so the old ones that go on working do not hide that
// all new ones die.
func (n *node) startWorked() {
	n.children.failures, n.children.begun = 0, false
	n.note(&n.face.notes.start, "")
}
