package master

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// trial is a binary whose trial lasts until the test decides its result.
type trial struct {
	began chan struct{}
	ends  chan error
	cut   chan struct{} // closed if the trial was cut off
}

func newTrial() *trial {
	return &trial{make(chan struct{}, 9), make(chan error, 1), make(chan struct{})}
}

func (tr *trial) try(ctx context.Context) error {
	tr.began <- struct{}{}
	select {
	case err := <-tr.ends:
		return err
	case <-ctx.Done():
		close(tr.cut)
		return ctx.Err()
	}
}

func (tr *trial) await(t *testing.T, what chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case <-time.After(patience):
		t.Fatal("waited in vain for the trial")
	}
}

func TestTheNodeWorksWhileABinaryIsTried(t *testing.T) {
	t.Parallel()
	tr := newTrial()
	execs := make(chan struct{}, 9)
	r := start(t, func(r *rig) {
		r.cfg.Try = tr.try
		r.cfg.Exec = func([]*os.File) error {
			execs <- struct{}{}
			return errors.New("exec format error")
		}
	})
	r.m.Upgrade()
	tr.await(t, tr.began)
	r.m.Upgrade() // while a trial is under way
	r.ends(t, r.put("default", hosts("ok", 5)...)...)
	tr.ends <- errors.New("configuration:\nmuster.yaml:3: unknown key")
	const want = "upgrade refused: the new binary cannot take over: configuration:; muster.yaml:3: unknown key"
	r.until(t, "the node says so", func() bool { return r.beat.Note == want })
	if len(execs) > 0 {
		t.Error("the binary that failed its trial was put in place")
	}
	r.ends(t, r.put("default", "ok-a")...)

	tr.ends <- nil
	r.m.Upgrade()
	r.until(t, "the exec has failed", func() bool { return strings.HasSuffix(r.beat.Note, "exec format error") })
	if len(tr.began) != 1 || len(execs) != 1 {
		t.Errorf("%d more trials, %d execs, want one of each", len(tr.began), len(execs))
	}
}

func TestTermDuringTheTrialDrains(t *testing.T) {
	t.Parallel()
	tr := newTrial()
	r := start(t, func(r *rig) {
		r.cfg.Try = tr.try
		r.cfg.Exec = func([]*os.File) error {
			t.Error("upgraded, but the next binary does not know that it shall end")
			return nil
		}
	})
	ids := r.put("default", "hold-1", "hold-2", "ok-3")
	r.works(t, ids[:2]...)
	r.m.Upgrade()
	tr.await(t, tr.began)
	r.m.Drain()
	r.until(t, "it drains", func() bool { return r.beat.State == "draining" && r.drains == 2 })
	r.release(ids...)
	if err := r.wait(t); err != nil {
		t.Error(err)
	}
	tr.await(t, tr.cut)
	r.ends(t, ids[:2]...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lost) > 0 || !r.gone {
		t.Errorf("lost %v, gone %v, want all ended", r.lost, r.gone)
	}
}
