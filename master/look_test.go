package master

import (
	"testing"
	"time"

	"muster/jobs"
)

// hint tells the master that a job may be due.
func (w *world) hint() { w.hints <- struct{}{} }

// idles waits until a child of the node has no job.
func (w *world) idles(t *testing.T) {
	t.Helper()
	w.until(t, "a child is idle", func() bool {
		for _, c := range w.beat.Children {
			if c.Job == "" {
				return true
			}
		}
		return false
	})
}

func TestAnIdleChildIsWokenInPlaceOfANewOne(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.cfg.Poll, r.cfg.Children = time.Minute, 1 })
	for _, host := range hosts("stay", 9) {
		ids := r.put("default", host)
		r.hint()
		r.ends(t, ids...)
	}
	spawned := 0
	r.until(t, "the node shows its children", func() bool {
		spawned = r.beat.Spawned
		return spawned > 0
	})
	if spawned != 1 {
		t.Errorf("%d children were started", spawned)
	}
}

// A look finds one job of several: there may be more, for other children.
func TestAnIdleChildIsNotTheOnlyOneThatLooks(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.cfg.Poll = time.Minute })
	first := r.put("default", "stay-0")
	r.hint()
	r.ends(t, first...)
	r.idles(t)
	ids := r.put("default", hosts("hold", 2)...)
	r.hint()
	r.works(t, ids...)
	r.release(ids...)
	r.ends(t, ids...)
}

// The order to look may reach a child that ends, dies, or does not listen.
func TestAJobIsTakenAlthoughTheIdleChildDoesNotLook(t *testing.T) {
	t.Parallel()
	for kind, poll := range map[string]time.Duration{"leave": time.Minute, "die": time.Minute,
		"deaf": 20 * time.Millisecond} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := start(t, func(r *rig) { r.cfg.Poll = poll })
			first := r.put("default", kind+"-0")
			r.hint()
			r.ends(t, first...)
			r.idles(t)
			next := r.put("default", "ok-1")
			r.hint()
			r.ends(t, next...)
		})
	}
}

// A child that does not obey has no deadline of a job: its slot must not be lost for ever.
func TestAnIdleChildThatDoesNotLookIsKilled(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) {
		r.cfg.Children, r.cfg.Poll = 1, 20*time.Millisecond
		r.waits.look = 50 * time.Millisecond
	})
	first := r.put("default", "deaf-0")
	r.ends(t, first...)
	next := r.put("default", "ok-1")
	r.hint()
	r.ends(t, next...)
}

func TestALowerLimitEndsIdleChildren(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	ids := r.put("default", hosts("rest", 2)...)
	r.works(t, ids...)
	r.release(ids...)
	r.ends(t, ids...)
	r.m.Allow(Allowance{Governor: &jobs.Governor{Children: 1}})
	r.until(t, "one child is told to end", func() bool { return r.drains == 1 })
}

func TestAnIdleChildMakesRoomForAnotherZoneAtOnce(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) {
		r.cfg.Zones, r.cfg.Children = []string{"a", "b"}, 1
		r.cfg.Poll, r.cfg.Turn = time.Minute, time.Minute
	})
	first := r.put("a", "stay-0")
	r.hint()
	r.ends(t, first...)
	other := r.put("b", "ok-1")
	r.hint()
	r.ends(t, other...)
	r.until(t, "one child was told to end", func() bool { return r.drains == 1 })
}

func TestIdleChildrenEndWhenTheNodeTakesNothing(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(*rig){
		"a pause": func(r *rig) { r.m.Allow(Allowance{Paused: &jobs.Pause{Note: "alice"}}) },
		"a drain": func(r *rig) { r.m.Drain() },
		"a reload": func(r *rig) {
			r.cfg.Version = "2"
			r.m.Reload(r.cfg)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, nil)
			first := r.put("default", "stay-0")
			r.ends(t, first...)
			r.idles(t)
			order(r)
			r.until(t, "the child is told to end", func() bool { return r.drains == 1 })
		})
	}
}
