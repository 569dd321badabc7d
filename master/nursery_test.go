package master

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/proc"
)

func TestFruitlessDeaths(t *testing.T) {
	t.Parallel()
	killed, crashed := proc.Exit{Signal: syscall.SIGKILL}, proc.Exit{Code: 2}
	for _, test := range []struct {
		name string
		d    death
		want bool
	}{
		{"never ready", death{exit: crashed}, true},
		{"never ready, and killed for it", death{doomed: true, exit: killed, lived: time.Hour}, true},
		{"never ready, without an error", death{}, true},
		{"crashed at its first job", death{ready: true, exit: crashed}, true},
		{"killed at its first job", death{ready: true, exit: killed, lived: startPauseMax - 1}, true},
		{"out of memory at its first job", death{ready: true, exit: proc.Exit{Signal: syscall.SIGKILL, OOM: true}}, true},
		{"vanished at its first job", death{ready: true, exit: proc.Exit{Gone: true}}, true},
		{"killed in the middle of a long job", death{ready: true, exit: killed, lived: startPauseMax}, false},
		{"killed after it has worked", death{ready: true, done: 1, exit: killed}, false},
		{"crashed after it has worked", death{ready: true, done: 1, exit: crashed}, false},
		{"nothing to do", death{ready: true}, false},
		{"killed by its master", death{ready: true, doomed: true, exit: killed}, false},
	} {
		if got := test.d.fruitless(); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// A child that dies of its first job was ready before, and its jobs are lost. The master
// must not repeat that as fast as it can start children.
func TestChildrenThatDieAtTheirFirstJobAreStartedEverLater(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.cfg.Children = 1 })
	r.put("default", hosts("exit", 4)...)
	r.until(t, "all are lost", func() bool { return len(r.lost) == 4 })
	r.until(t, "the node says so", func() bool {
		return r.beat.Note == "children die before they have ended a job: exit 3"
	})
	r.mu.Lock()
	for i := range 3 {
		least := startPause << i * 3 / 4
		if got := r.grants[i+1].Sub(r.grants[i]); got < least {
			t.Errorf("%s between takes %d and %d, want at least %s", got, i, i+1, least)
		}
	}
	r.mu.Unlock()
	r.ends(t, r.put("default", "ok")...)
	r.until(t, "the note is gone", func() bool { return r.beat.Note == "" })
}

// Old children that still work prove nothing about new ones.
func TestOldChildrenDoNotHideThatNewOnesDie(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.cfg.Children = 2 })
	ids := r.put("default", "ok-first", "hold")
	r.works(t, ids[1])
	bad := r.put("default", hosts("exit", 3)...)
	r.until(t, "all are lost", func() bool { return len(r.lost) == len(bad) })
	r.until(t, "the node says so", func() bool { return strings.HasPrefix(r.beat.Note, "children die") })
	r.release(ids[1])
	r.ends(t, ids...)
}

// Kills of children that have done work do not slow the node down.
func TestAKillOfAChildThatHasWorkedIsNoReasonToWait(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.cfg.Children = 1 })
	// Another host each time: the name of the job names the file of its child.
	for i := range 3 {
		ids := r.put("default", fmt.Sprintf("ok-%d", i), fmt.Sprintf("hold-%d", i))
		r.works(t, ids[1])
		if err := syscall.Kill(r.pidOf(t, ids[1]), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r.until(t, "it is lost", func() bool { return slices.Contains(r.lost, ids[1]) })
	}
	r.ends(t, r.put("default", "ok")...)
	if said := r.log.String(); strings.Contains(said, "pause=") {
		t.Errorf("a pause: %s", said)
	}
}
