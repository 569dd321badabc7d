package master

import (
	"math/rand/v2"
	"time"

	"muster/internal/proc"
)

const (
	// The least and the longest pause after a child that died without any work done.
	startPause    = 100 * time.Millisecond
	startPauseMax = 10 * time.Second
)

// A nursery counts the starts and the early deaths of children.
type nursery struct {
	parent   *proc.Parent
	spawned  int           // since the master started
	failures int           // fruitless deaths in a row
	failed   time.Duration // when the last of them was counted
	begun    bool          // the child of the last one had begun to work
	paused   time.Duration // no child is started before this instant
	shared   time.Duration // when a child was last asked to make room for another zone
}

// A death holds what is known of the end of a child.
type death struct {
	ready  bool // the child had reported that it was ready
	done   int  // jobs that the child had ended
	lived  time.Duration
	doomed bool // the master itself had killed the child
	exit   proc.Exit
}

func (c *child) death(exit proc.Exit, now time.Duration) death {
	return death{c.ready, c.report.Done, now - c.started, c.doom != "", exit}
}

// fruitless reports whether the next child may fail in the same way, so that its start must
// wait. A child that has ended a job has shown that children can work here, whoever killed
// it later. A child that lived longer than the longest pause gives no reason for a pause.
func (d death) fruitless() bool {
	switch {
	case !d.ready:
		return true
	case d.doomed, d.exit == proc.Exit{}, d.done > 0:
		return false
	}
	return d.lived < startPauseMax
}

// countDeath counts a child that died without any work done. Of the children that were
// started before the last counted death only the first counts, because the others started
// before the pause after it could help.
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
	if n.children.failures > 1 { // one death alone may have any cause
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

// started notes that a child is ready. That shows that children can start, but not yet that
// they survive their first job.
func (n *node) started() {
	if !n.children.begun {
		n.note(&n.face.notes.start, "")
	}
}

// startWorked notes that a child has ended its first job, or found no job. Each child
// reports that once, so old children that work on do not hide that all new ones die.
func (n *node) startWorked() {
	n.children.failures, n.children.begun = 0, false
	n.note(&n.face.notes.start, "")
}
