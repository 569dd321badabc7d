package master

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/jobs"
)

func TestWorkIsDoneByAFewChildren(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.cfg.Children = 3 })
	ids := r.put("default", hosts("hold", 6)...)
	r.until(t, "three run", func() bool { return len(r.running) == 3 })
	r.until(t, "the node shows them", func() bool { return len(r.beat.Children) == 3 })
	r.release(ids...)
	r.ends(t, ids...)
	r.until(t, "the children are gone", func() bool { return len(r.beat.Children) == 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most != 3 || r.beat.Spawned < 3 || len(r.lost) > 0 {
		t.Errorf("%d at a time, %d spawned, lost %v, want 3 at a time and nothing lost", r.most, r.beat.Spawned, r.lost)
	}
	want := jobs.Node{
		ID: "n1", PID: os.Getpid(), State: "running", Zones: []string{"default"}, Children: []jobs.Child{},
		Limit: 3, Slots: 1, Version: "1", Started: r.beat.Started, Seen: r.beat.Seen, Spawned: r.beat.Spawned,
		Clock: r.beat.Clock,
	}
	if diff := cmp.Diff(want, r.beat); diff != "" {
		t.Error(diff)
	}
}

func TestChildTakesSeveralAtOnce(t *testing.T) {
	t.Parallel()
	var ids []jobs.ID
	r := start(t, func(r *rig) {
		r.cfg.Children, r.cfg.Slots = 1, 3
		ids = r.put("default", "hold-1", "hold-2", "hold-3", "hold-4")
	})
	r.works(t, ids[0])
	r.until(t, "the child shows three", func() bool {
		return len(r.beat.Children) == 1 && slices.Equal(r.beat.Children[0].Jobs, ids[:3])
	})
	r.release(ids...)
	r.ends(t, ids...)
}

func TestDeathsAreToldWithTheirReason(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		host string
		kill bool
		why  string
	}{
		{"hold", true, "killed by signal 9"},
		{"exit", false, "exit 3"},
		{"late", false, "past its deadline: killed by signal 9"},
		{"brief", false, "past its deadline: killed by signal 9"}, // the deadline of the hand-over
		{"nonsense", false, "it talks nonsense: receive *jobs.Report: json: cannot unmarshal string " +
			"into Go value of type jobs.Report: killed by signal 9"},
	} {
		t.Run(test.host, func(t *testing.T) {
			t.Parallel()
			r := start(t, nil)
			id := r.put("default", test.host)[0]
			if test.kill {
				r.works(t, id)
				if err := syscall.Kill(r.pidOf(t, id), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			r.until(t, "the job is lost", func() bool { return len(r.lost) > 0 })
			r.mu.Lock()
			defer r.mu.Unlock()
			if diff := cmp.Diff(jobs.Loss{Node: "n1", Slot: "1", Why: test.why}, r.losses[0]); diff != "" {
				t.Error(diff)
			}
			if r.lost[0] != id || len(r.backs) > 0 {
				t.Errorf("lost %v, given back %v, want %s lost", r.lost, r.backs, id)
			}
		})
	}
}

func TestSlotIsUsedAgainAfterADeath(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.cfg.Children = 1 })
	r.put("default", "exit")
	r.until(t, "the job is lost", func() bool { return len(r.lost) > 0 })
	r.ends(t, r.put("default", "ok")...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.takes, func(s jobs.Step) bool { return s.Slot != "1" }) {
		t.Errorf("another slot than the only one: %v", r.takes)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*rig){
		"no such binary":    func(r *rig) { r.cfg.Image = r.cfg.Dir + "/none" },
		"dies at its start": func(r *rig) { r.cfg.Args = []string{asDying} },
		"is never ready":    func(r *rig) { r.cfg.Args, r.waits.ready = []string{asSilent}, time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, func(r *rig) {
				r.cfg.Children = 1 // or a second take is under way before the first failure
				set(r)
			})
			id := r.put("default", "ok")[0]
			r.until(t, "it was given back four times", func() bool { return len(r.backs) >= 4 })
			r.until(t, "the node says so", func() bool {
				return strings.HasPrefix(r.beat.Note, "children do not start: ")
			})
			r.mu.Lock()
			for i := range 3 {
				least := startPause << i * 3 / 4
				if got := r.grants[i+1].Sub(r.grants[i]); got < least {
					t.Errorf("%s between takes %d and %d, want at least %s", got, i, i+1, least)
				}
			}
			if len(r.lost) > 0 {
				t.Errorf("%v lost, but nobody has touched them", r.lost)
			}
			r.mu.Unlock()

			if r.waits.ready == time.Millisecond {
				return // not even a good child is ready by then
			}
			good := r.cfg
			good.Image, good.Args = os.Args[0], []string{asChild}
			r.m.Reload(good)
			r.ends(t, id)
			r.until(t, "the note is gone", func() bool { return r.beat.Note == "" })
		})
	}
}

func TestSecondMasterNamesTheFirst(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	r.until(t, "the first is up", func() bool { return r.beats > 0 })
	second, err := New(r.cfg, r.world, r.world, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	err = second.Run(t.Context())
	var locked *proc.LockedError
	if !errors.As(err, &locked) || locked.Holder != (proc.Holder{PID: os.Getpid(), Text: "master of n1"}) {
		t.Errorf("second master: %v, want a LockedError with this pid", err)
	}
	second.Drain() // does nothing and does not block
}
