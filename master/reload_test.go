package master

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"muster/internal/proc"
)

func TestReloadRefusesABadConfiguration(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	bad := r.cfg
	bad.Children, bad.Node, bad.Dir = 0, "n2", "/elsewhere"
	r.m.Reload(bad)
	r.until(t, "the node says so", func() bool { return r.beat.Note != "" })
	r.mu.Lock()
	for _, want := range []string{"the old configuration stays", "master.children = 0", "node.name", "node.dir"} {
		if !strings.Contains(r.beat.Note, want) {
			t.Errorf("note %q lacks %q", r.beat.Note, want)
		}
	}
	if strings.Contains(r.beat.Note, "\n") {
		t.Errorf("note %q has several lines", r.beat.Note)
	}
	r.mu.Unlock()
	r.ends(t, r.put("default", "ok")...)

	good := r.cfg
	good.Slots = 5
	r.m.Reload(good)
	r.until(t, "the note is gone", func() bool { return r.beat.Note == "" && r.beat.Slots == 5 })
}

func TestReloadChangesZones(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.cfg.Zones = []string{"a", "b"} })
	old := r.put("a", "hold-1", "ok-2")
	r.works(t, old[0])
	r.ends(t, old[1])
	r.until(t, "one child is left", func() bool { return len(r.beat.Children) == 1 })
	next := r.cfg
	next.Zones = []string{"b", "c"}
	r.m.Reload(next)
	r.ends(t, r.put("c", "ok-3")...)
	r.ends(t, r.put("b", "ok-4")...)
	left := r.put("a", "ok-5")
	r.until(t, "the child of the old zone was told to drain", func() bool { return r.drains == 1 })
	r.release(old[0])
	r.ends(t, old[0])
	r.m.Drain()
	if err := r.wait(t); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due["a"]) != 1 || r.ended[left[0]] > 0 {
		t.Errorf("a job of a zone was taken that the node does not work for any more")
	}
}

func TestStateThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"not JSON":       {"{", "unexpected end"},
		"another format": {`{"format":99}`, "format 99, want 1"},
		"another pid":    {`{"format":1,"pid":1}`, "it is of pid 1"},
		"a wrong file":   {stateOf(t, slotState{Name: "1", Child: &childState{PID: 1, Conn: 9}}), "slot 1"},
		"an empty slot":  {stateOf(t, slotState{Name: "1"}), "neither a child nor a call"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := proc.Memory([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			cfg := testConfig(os.Args[0], t.TempDir(), "")
			lock, err := proc.Lock(cfg.Dir + "/master.lock")
			if err != nil {
				t.Fatal(err)
			}
			cfg.Kept = []*os.File{f, lock.File()}
			m, err := New(cfg, w, w, silent())
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("run: %v, want %q", err, test.want)
			}
		})
	}
}

func stateOf(t *testing.T, s slotState) string {
	t.Helper()
	text, err := json.Marshal(state{Format: StateFormat, PID: os.Getpid(), Slots: []slotState{s}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
