package master

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/jobs"
)

func TestDrainWaitsForTheJobsInHand(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	ids := r.put("default", "hold-1", "hold-2", "ok-3")
	r.works(t, ids[:2]...)
	r.m.Drain()
	r.until(t, "the node says so", func() bool { return r.beat.State == "draining" && r.drains == 2 })
	r.release(ids...)
	if err := r.wait(t); err != nil {
		t.Error(err)
	}
	r.ends(t, ids[:2]...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due["default"]) != 1 || len(r.lost) > 0 || !r.gone {
		t.Errorf("due %v, lost %v, gone %v, want the third job to be due", r.due, r.lost, r.gone)
	}
}

func TestDrainEndsInTime(t *testing.T) {
	t.Parallel()
	for host, why := range map[string]string{
		"hold":     "killed by signal 15",
		"stubborn": "stopped: killed by signal 9",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			r := start(t, func(r *rig) {
				r.cfg.Drain = 10 * time.Millisecond
				if host == "stubborn" {
					r.waits.term = 50 * time.Millisecond
				}
			})
			id := r.put("default", host)[0]
			r.works(t, id)
			r.m.Drain()
			if err := r.wait(t); err != nil {
				t.Error(err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if !slices.Equal(r.lost, []jobs.ID{id}) || r.losses[0].Why != why {
				t.Errorf("lost %v, %+v, want %q", r.lost, r.losses, why)
			}
		})
	}
}

func TestStopKillsNow(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	ids := r.put("default", "hold", "stubborn")
	r.works(t, ids...)
	r.m.Drain()
	r.m.Stop()
	if err := r.wait(t); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lost) != 2 || !r.gone {
		t.Errorf("lost %v, gone %v, want both lost", r.lost, r.gone)
	}
	for _, l := range r.losses {
		if l.Why != "stopped: killed by signal 9" {
			t.Errorf("why %q", l.Why)
		}
	}
}

// Jobs of a take that is answered after the drain has begun are returned.
func TestDrainGivesBackWhatComesTooLate(t *testing.T) {
	t.Parallel()
	stalled := make(chan struct{})
	r := start(t, func(r *rig) {
		r.stalled = stalled
		r.put("default", "ok")
	})
	r.until(t, "the take is under way", func() bool { return len(r.takes) > 0 })
	r.m.Drain()
	r.until(t, "the node says so", func() bool { return r.beat.State == "draining" })
	close(stalled)
	if err := r.wait(t); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.backs) != 1 || len(r.lost)+len(r.ended) > 0 {
		t.Errorf("given back %v, lost %v, ended %v", r.backs, r.lost, r.ended)
	}
}

func TestStopWithoutRedisSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) {
		r.cfg.Children = 1
		r.waits.last = 50 * time.Millisecond
	})
	id := r.put("default", "hold")[0]
	r.works(t, id)
	r.update(func() { r.down = errors.New("connection refused") })
	r.m.Stop()
	err := r.wait(t)
	if err == nil || !strings.Contains(err.Error(), "jobs of slots 1 are not told to be lost") {
		t.Errorf("run: %v, want to be told of slot 1", err)
	}
}
