package master

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/proc"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/master/errands"
	"muster/testkit/queuetest"
)

func TestPause(t *testing.T) {
	t.Parallel()
	const first, most = 100 * time.Millisecond, 10 * time.Second
	for _, test := range []struct {
		failures int
		chance   float64
		want     time.Duration
	}{
		{0, 0, first},
		{0, 1, 75 * time.Millisecond},
		{3, 0, 800 * time.Millisecond},
		{6, 0.5, 5600 * time.Millisecond},
		{7, 0, most},
		{15, 0, most},
		{math.MaxInt, 0, most},
	} {
		if got := errands.Pause(test.failures, test.chance, first, most); got != test.want {
			t.Errorf("pause(%d, %v) = %s, want %s", test.failures, test.chance, got, test.want)
		}
	}
}

func TestDeadlineOfAHandover(t *testing.T) {
	t.Parallel()
	h := jobs.Handover{Sent: 100 * time.Second}
	if got := deadlineOf(h); got != 0 {
		t.Errorf("no jobs: %s, want none", got)
	}
	h.Reply.Jobs = []jobs.Grant{{Timeout: time.Minute}, {Timeout: 1000 * time.Second}, {}}
	if got, want := deadlineOf(h), 1080*time.Second; got != want {
		t.Errorf("%s, want that of the longest, less its margin: %s", got, want)
	}
}

func TestChildEnd(t *testing.T) {
	t.Parallel()
	w := waits{ready: 30 * time.Second, overdue: time.Second}
	some := jobs.Report{Jobs: []jobs.ID{"t:h"}}
	for _, test := range []struct {
		name string
		c    child
		end  time.Duration
		why  string
	}{
		{"idle", child{ready: true, deadline: 50 * time.Second}, never, ""},
		{"no deadline", child{ready: true, report: some}, never, ""},
		{"at work", child{ready: true, report: some, deadline: 50 * time.Second}, 51 * time.Second, "past its deadline"},
		{"starting", child{started: time.Second, report: some}, 31 * time.Second, "not ready after 30s"},
		{"starting, with little time", child{report: some, deadline: time.Second}, 2 * time.Second, "past its deadline"},
	} {
		if end, why := test.c.end(w); end != test.end || why != test.why {
			t.Errorf("%s: %s, %q, want %s, %q", test.name, end, why, test.end, test.why)
		}
	}
}

// While the mark of a take stands in a slot's file, the next master believes that nobody
// has touched the jobs.
func TestNoChildStartsBesideTheMarkOfATake(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "slot-1")
	if err := os.WriteFile(path, []byte("1 default take R\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path) // cannot be written through
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := &node{log: silent(), face: newFace(nil)}
	n.files = lockFiles{dir: filepath.Dir(path), log: n.log, face: n.face}
	if p, err := n.start(&slot{name: "1", zone: "default", lock: proc.HeldLock(f)}); err == nil {
		t.Errorf("child %d was started", p.PID())
	}
	if !strings.HasPrefix(n.face.notes.dir, "node.dir cannot be written: ") {
		t.Errorf("note %q", n.face.notes.dir)
	}
}

func TestConfigTellsAllMistakes(t *testing.T) {
	t.Parallel()
	err := Config{Node: "a b", Zones: []string{"x", "x", ""}, Drain: -1}.Validate()
	if err == nil {
		t.Fatal("no mistake found")
	}
	for _, want := range []string{
		`node.name: name "a b" has ' '`, "node.dir is empty", "x is there twice", `master.zones: name is empty`,
		"master.children = 0: want 1",
		"master.slots = 0", "master.poll", "master.beat", "master.drain", "master.turn", "path of the binary",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	cfg := Default()
	cfg.Node, cfg.Dir, cfg.Path = "n1", "/run/muster", "/usr/bin/muster"
	if err := cfg.Validate(); err != nil {
		t.Errorf("the default, completed: %v", err)
	}
	cfg.Zones = nil
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "at least one zone") {
		t.Errorf("no zones: %v", err)
	}
}

// A name that the configuration accepts must not be refused by the queue later, at each of
// its calls.
func TestConfigRefusesTheNamesThatTheQueueRefuses(t *testing.T) {
	t.Parallel()
	q, err := queuetest.OpenLazy(queue.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no call reaches Redis: the queue checks the names first
	for r := range rune(0x250) {
		name := "a" + string(r)
		cfg := Default()
		cfg.Node, cfg.Zones, cfg.Dir, cfg.Path = name, []string{name}, "/run/muster", "/usr/bin/muster"
		err := cfg.Validate()
		_, refused := q.Step(ctx, "default", jobs.Step{Node: name, Slot: "1", Request: "r"})
		if strings.HasPrefix(refused.Error(), "step: node") && err == nil {
			t.Errorf("%q is let pass, but %v", name, refused)
		}
		if err == nil {
			continue
		}
		for _, want := range []string{"node.name: name ", "master.zones: name ", fmt.Sprintf(" has %q", r)} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in the error %v", want, err)
			}
		}
	}
}
