package master

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/master/errands"
)

const (
	// The least and the longest pause after a child that died without any work done.
	startPause    = 100 * time.Millisecond
	startPauseMax = 10 * time.Second
)

// A nursery counts the starts and the early deaths of children.
type nursery struct {
	log  hclog.Logger
	note func(string) // tells people what keeps children from starting; empty: nothing

	machine  Machine
	spawned  int           // since the master started
	failures int           // fruitless deaths in a row
	failed   time.Duration // when the last of them was counted
	begun    bool          // the child of the last one had begun to work
	paused   time.Duration // no child is started before this instant
	shared   time.Duration // when a child was last asked to make room for another zone
	allowed  Allowance
	round    time.Duration // when the last take began
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

// died counts a child that died without any work done. Of the children that were
// started before the last counted death only the first counts, because the others started
// before the pause after it could help.
func (n *nursery) died(c *child, why string) {
	if c.started < n.failed {
		return
	}
	if !c.ready {
		n.startFailed(why)
		return
	}
	n.pauseStarts(true)
	n.log.Warn("child has ended no job", "why", why, "failures", n.failures,
		"pause", n.paused-n.failed)
	if n.failures > 1 { // one death alone may have any cause
		n.note("children die before they have ended a job: " + why)
	}
}

// startFailed counts a child that could not be started, or never was ready.
func (n *nursery) startFailed(why string) {
	n.pauseStarts(false)
	n.log.Error("child does not start", "why", why, "failures", n.failures,
		"pause", n.paused-n.failed)
	n.note("children do not start: " + why)
}

// pauseStarts makes the next start wait, longer after each failure.
func (n *nursery) pauseStarts(begun bool) {
	wait := errands.Pause(n.failures, n.machine.Chance(), startPause, startPauseMax)
	n.failures++
	n.failed, n.begun = n.machine.Boot(), begun
	n.paused = n.failed + wait
}

// started notes that a child is ready. That shows that children can start, but not yet that
// they survive their first job.
func (n *nursery) started() {
	if !n.begun {
		n.note("")
	}
}

// worked notes that a child has ended its first job, or found no job. Each child
// reports that once, so old children that work on do not hide that all new ones die.
func (n *nursery) worked() {
	n.failures, n.begun = 0, false
	n.note("")
}
