package master

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/jobs"
)

// childEnv is the environment of a child. Without this setting the race detector waits a
// second at each exit.
var childEnv = []string{"GORACE=atexit_sleep_ms=0"}

// rig is a master in the process of the test, with its world.
type rig struct {
	*world
	cfg   Config
	waits waits
	m     *Master
	log   *buffer
	end   chan error
}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// testConfig returns the configuration of a master that reacts at once. path names the test
// binary, dir the folder of the locks, address the world.
func testConfig(path, dir, address string) Config {
	cfg := Default()
	cfg.Node = "n1"
	cfg.Dir = dir
	cfg.Children = 2
	cfg.Poll = 20 * time.Millisecond
	cfg.Beat = 10 * time.Millisecond
	cfg.Path = path
	cfg.Args = []string{asChild}
	cfg.Env = childEnv
	cfg.Version = "1"
	cfg.Worker = []byte(strconv.Quote(address))
	return cfg
}

// start runs a master with the configuration that set has changed.
func start(t *testing.T, set func(*rig)) *rig {
	t.Helper()
	r := &rig{world: newWorld(t), log: &buffer{}, end: make(chan error, 1), waits: defaultWaits()}
	r.cfg = testConfig(os.Args[0], t.TempDir(), r.serve(t))
	r.waits.overdue = 10 * time.Millisecond
	if set != nil {
		set(r)
	}
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: r.log})
	m, err := New(r.cfg, r.world, r.world, log)
	if err != nil {
		t.Fatal(err)
	}
	r.m, m.waits = m, r.waits
	go func() { r.end <- m.Run(context.Background()) }()
	t.Cleanup(func() {
		m.Stop()
		r.wait(t)
		if t.Failed() {
			t.Log(r.log)
		}
	})
	return r
}

// wait waits for the end of Run.
func (r *rig) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.end:
		r.end <- err
		return err
	case <-time.After(patience):
		t.Fatal("the master does not end\n" + r.log.String())
		return nil
	}
}

// works waits until these jobs are at work.
func (w *world) works(t *testing.T, ids ...jobs.ID) {
	t.Helper()
	w.until(t, fmt.Sprint(ids, " run"), func() bool {
		return !slices.ContainsFunc(ids, func(id jobs.ID) bool { return !w.running[id] })
	})
}

// ends waits until these jobs have ended, and checks that each ended once.
func (w *world) ends(t *testing.T, ids ...jobs.ID) {
	t.Helper()
	w.until(t, fmt.Sprint(ids, " have ended"), func() bool {
		return !slices.ContainsFunc(ids, func(id jobs.ID) bool { return w.ended[id] == 0 })
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if w.ended[id] != 1 {
			t.Errorf("%s has ended %d times", id, w.ended[id])
		}
	}
}

// pidOf returns the process id of the child that has a job, as the node's record shows it.
func (w *world) pidOf(t *testing.T, id jobs.ID) (pid int) {
	t.Helper()
	w.until(t, fmt.Sprint("a child shows ", id), func() bool {
		for _, c := range w.beat.Children {
			if c.Job == id {
				pid = c.PID
			}
		}
		return pid > 0
	})
	return pid
}

func hosts(kind string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint(kind, "-", i))
	}
	return names
}

func silent() hclog.Logger { return hclog.NewNullLogger() }
