package master

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/jobs"
)

// A reply that is lost on its way must not lose the jobs in it.
func TestTakeIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) {
		r.forget = 2
		r.cfg.Children = 1
		r.put("default", "ok")
	})
	r.until(t, "the job has ended", func() bool { return len(r.ended) == 1 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff([]jobs.Step{r.takes[0], r.takes[0]}, r.takes[1:3]); diff != "" {
		t.Error("another call instead of the same one:", diff)
	}
	if n := strings.Count(r.log.String(), "no answer, asking again"); n != 1 {
		t.Errorf("said %d times that there is no answer, want once", n)
	}
}

func TestRedisIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.down = errors.New("connection refused") })
	id := r.put("default", "ok")[0]
	r.update(func() { r.down = nil })
	r.ends(t, id)
	r.until(t, "the node is shown", func() bool { return r.beats > 0 })
}

func TestGivingBackIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) {
		r.cfg.Image = r.cfg.Dir + "/none"
		r.forget = 3 // both answers of the take, and that of the return
		r.put("default", "ok")
	})
	r.until(t, "it was given back", func() bool { return len(r.backs) > 0 && r.forget == 0 })
	r.m.Drain()
	if err := r.wait(t); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due["default"]) != 1 || len(r.lost) > 0 {
		t.Errorf("due %v, lost %v, want the job to be due again", r.due, r.lost)
	}
}

// Jobs that Redis counts to this node, and that no process has, are lost.
func TestMasterFindsWhatIsHeldByNobody(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) {
		r.cfg.Zones = []string{"a", "b"}
		for key, id := range map[string]jobs.ID{"a 1": "t:x", "a 7": "t:y", "b 1": "t:z"} {
			r.hold[key] = &hand{node: "n1", request: "q", jobs: []jobs.Grant{{Job: id}}}
		}
		r.hold["a 2"] = &hand{node: "n1", request: "q"}
		r.hold["a 3"] = &hand{node: "other", request: "q", jobs: []jobs.Grant{{Job: "t:other"}}}
	})
	r.until(t, "three are lost", func() bool { return len(r.lost) >= 3 })
	ids := append(r.put("a", "ok-a"), r.put("b", "ok-b")...)
	r.ends(t, ids...)
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.lost)
	if diff := cmp.Diff([]jobs.ID{"t:x", "t:y", "t:z"}, r.lost); diff != "" {
		t.Error(diff)
	}
	for _, l := range r.losses[:3] {
		if l.Why != vanished {
			t.Errorf("why %q, want %q", l.Why, vanished)
		}
	}
}

func TestHintAndNextInstantWakeTheMaster(t *testing.T) {
	t.Parallel()
	for name, wake := range map[string]func(*rig){
		"a hint": func(r *rig) { r.hints <- struct{}{} },
		"next":   func(*rig) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, func(r *rig) {
				r.cfg.Poll = time.Hour
				if name == "next" {
					r.next = 50 * time.Millisecond
				}
			})
			r.until(t, "it has looked once", func() bool { return len(r.takes) > 0 })
			id := r.put("default", "ok")[0]
			wake(r)
			r.ends(t, id)
		})
	}
}

func TestIdleNodeOnlyPolls(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.cfg.Poll, r.cfg.Beat = time.Hour, 7*time.Second })
	r.until(t, "it has looked once", func() bool { return len(r.takes) > 0 })
	ids := r.put("default", "ok")
	r.hints <- struct{}{}
	r.ends(t, ids...)
	r.until(t, "the child is gone", func() bool { return len(r.losses) == 1 })
	r.m.Drain()
	if err := r.wait(t); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// The takes: the first, one for the hint, one more while the child works, the child's
	// own, one after the child's last report, and one after its loss was reported.
	if len(r.takes) > 6 || r.beats > 3 {
		t.Errorf("%d takes and %d beats, want a few", len(r.takes), r.beats)
	}
}

func TestZoneWithoutChildrenGetsItsTurn(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) {
		r.cfg.Zones = []string{"a", "b"}
		r.cfg.Children = 1
		r.cfg.Turn = 10 * time.Millisecond
	})
	first := r.put("a", "hold-1", "hold-2", "hold-3")
	r.works(t, first[0])
	other := r.put("b", "ok")
	r.until(t, "the child is told to make room", func() bool { return r.drains == 1 })
	r.release(first[0])
	r.ends(t, other...)
	r.release(first...)
	r.ends(t, first...)
}

// The master reports a freeze with its reason, its end and the time left, and reports the
// end of the freeze too.
func TestAFrozenZoneIsSaid(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) {
		r.frozen = "Redis was started anew"
		r.put("default", "ok")
	})
	r.until(t, "the note of the node says it", func() bool {
		return strings.Contains(r.beat.Note, "zone default frozen until 2") &&
			strings.Contains(r.beat.Note, "started anew")
	})
	for _, part := range []string{"nothing starts", "zone=default", "started anew", "left=1m0s"} {
		if !strings.Contains(r.log.String(), part) {
			t.Errorf("the log lacks %q:\n%s", part, r.log)
		}
	}
	r.mu.Lock()
	r.frozen = ""
	r.mu.Unlock()
	r.until(t, "it is over", func() bool { return len(r.ended) == 1 && r.beat.Note == "" })
	if !strings.Contains(r.log.String(), "work goes on") {
		t.Errorf("the log does not say the end:\n%s", r.log)
	}
}
