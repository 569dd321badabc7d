package remote

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"muster/internal/proc"
)

// newNodeDoors are the doors of one process of a node. Waits end when waited has been called
// so often, as if their limit was reached.
func newNodeDoors(dir string, waits int) *nodeDoors {
	n := &nodeDoors{dir: dir, first: 2, most: 8, limit: time.Hour}
	n.pause = func(context.Context, time.Duration) error {
		if waits--; waits < 0 {
			return context.DeadlineExceeded
		}
		return nil
	}
	return n
}

func (n *nodeDoors) mustEnter(t *testing.T) *nodePlace {
	t.Helper()
	p, err := n.enter(t.Context(), "door")
	if err != nil || p.lock == nil {
		t.Fatalf("got %+v, %v, want a place", p, err)
	}
	return p
}

// Two processes of a node have as many places together as one alone, and what one learns the
// other knows.
func TestProcessesOfANodePaceTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := newNodeDoors(dir, 3), newNodeDoors(dir, 3)
	first, second := a.mustEnter(t), b.mustEnter(t)
	if third, err := a.enter(t.Context(), "door"); err != nil || third.lock != nil {
		t.Errorf("a third one: %+v, %v, want that it waits in vain", third, err)
	}
	if other, err := a.enter(t.Context(), "another door"); err != nil || other.lock == nil {
		t.Errorf("at another door: %+v, %v", other, err)
	}
	first.leave("")
	third := newNodeDoors(dir, 3).mustEnter(t)
	fourth := newNodeDoors(dir, 3).mustEnter(t) // one came through: three may be there
	second.leave(KindThrottled)
	third.leave(KindThrottled)
	fourth.leave(KindUnreachable) // that is not the door's fault
	last := b.mustEnter(t)
	if d, err := last.learn(nil); err != nil || d != (pace{width: 1, ceiling: 1, calm: 1}) {
		t.Errorf("the door is known as %+v, %v", d, err)
	}
	if p, err := newNodeDoors(dir, 3).enter(t.Context(), "door"); err != nil || p.lock != nil {
		t.Errorf("beside the only one: %+v, %v", p, err)
	}
}

// Nobody is kept from a host because of what the doors are made of.
func TestNodeDoorsThatCannotBeLocked(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", "/proc/none", filepath.Join(t.TempDir(), "none")} {
		p, err := newNodeDoors(dir, 0).enter(t.Context(), "door")
		if err != nil || p.lock != nil {
			t.Errorf("folder %q: %+v, %v", dir, p, err)
		}
		p.leave("")
	}
	dir := t.TempDir()
	n := newNodeDoors(dir, 0)
	for _, text := range []string{"", "9 of 8, calm 0", "0 of 8, calm 0", "3 of 2, calm 0", "-1 of x", "4"} {
		state, err := proc.Lock(n.path("door"))
		if err == nil {
			err = errors.Join(state.Sign(proc.Holder{Text: text}), state.Free())
		}
		if err != nil {
			t.Fatal(err)
		}
		n.mustEnter(t).leave("")
	}
	ctx, cancel := context.WithCancel(t.Context())
	n.pause = func(context.Context, time.Duration) error { cancel(); return context.Canceled }
	state, err := proc.Lock(n.path("door"))
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	if _, err := n.enter(ctx, "door"); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}
