package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
)

// foreseeIn asks when a task on some hosts would be done that waits in the lane of rules/acme.
func (w *world) foreseeIn(on, mode string) (f api.Foresight) {
	w.t.Helper()
	path := "/v1/plan?lane=rules/acme&lane_mode=" + mode
	if res := w.call("POST", path, run(on), &f); res.StatusCode != http.StatusOK {
		w.t.Fatalf("plan of mode %q: %s", mode, res.Status)
	}
	return f
}

// after says when a planned task would be done.
func after(f api.Foresight) time.Duration { return f.Done.Sub(f.At.Time) }

// notes are the assumptions of a plan, in one text.
func notes(f api.Foresight) string { return strings.Join(f.Notes, "\n") }

// A task of a lane is planned behind those that were there before, whichever hosts it has.
func TestAPlanKnowsTheTurnsOfALane(t *testing.T) {
	t.Parallel()
	const job, turn = 7 * time.Second, time.Second / 2 // until a server has seen that it is its turn
	w := start(t, setup{inventory: fixed(acme(10))})
	w.estimated(job, job, 3)
	w.beat(10)
	if f := w.foreseeIn("h0009", "gate"); after(f) != job {
		t.Errorf("first in its lane it is done after %s", after(f))
	}
	first := w.inLane("h0000", "")
	second := w.inLane("h[0001-0002]", "")
	w.inTurn("running", "waiting")
	for _, c := range []struct {
		name string
		f    api.Foresight
		want time.Duration
	}{
		{"in no lane", w.foresee(run("h0009")), job},
		{"serial", w.foreseeIn("h0009", ""), 3*job + 2*turn},
		{"gate, and none fails", w.foreseeIn("h0009", "gate"), 3*job + 2*turn},
		{"beside one other", w.foreseeIn("h0009", "parallel=2"), 2*job + 2*turn},
		{"beside two, which overtake none", w.foreseeIn("h0009", "parallel=3"), 2*job + 2*turn},
	} {
		if after(c.f) != c.want || c.f.Never != 0 {
			t.Errorf("%s: done after %s, want %s; %d never", c.name, after(c.f), c.want, c.f.Never)
		}
		if n := len(c.f.Others); n != 2 {
			t.Fatalf("%s: the plan has %d other tasks", c.name, n)
		}
		for _, o := range c.f.Others {
			if o.Task == second.Task && (o.Waiting != 2 || o.Done.Sub(c.f.At.Time) != 2*job+turn) {
				t.Errorf("%s: the plan says of the task that waits %+v", c.name, o)
			}
		}
	}
	w.call("POST", "/v1/tasks/"+string(first.Task)+"/pause", why("not now"), nil)
	f := w.foreseeIn("h0009", "")
	if f.Never != 1 || !strings.Contains(f.Left[0].Why, "before it in its lane is paused, stopped or away") {
		t.Errorf("behind a task that is paused: %+v", f)
	}
	if f := w.foreseeIn("h0009", "parallel=3"); f.Never != 1 {
		t.Errorf("behind a task that waits for one that is paused: %+v", f)
	}
}

// Of mode latest only the newest task is left, also if that is the planned one.
func TestAPlanKnowsWhichTasksOfALaneAreReplaced(t *testing.T) {
	t.Parallel()
	const job, turn = 7 * time.Second, time.Second / 2
	w := start(t, setup{inventory: fixed(acme(10))})
	w.estimated(job, job, 3)
	w.beat(10)
	w.inLane("h0000", "latest")
	w.inTurn("running")
	second := w.inLane("h0001", "latest")
	f := w.foreseeIn("h0009", "latest")
	if after(f) != 2*job+turn || !strings.Contains(notes(f), "replaces tasks in its lane: "+string(second.Task)) {
		t.Errorf("the newest is done after %s; notes %q", after(f), f.Notes)
	}
	if f = w.foreseeIn("h0009", ""); after(f) != 3*job+2*turn || strings.Contains(notes(f), "replaces") {
		t.Errorf("behind the newest it is done after %s; notes %q", after(f), f.Notes)
	}
}

// Behind a failure a task of mode gate waits for a person, and those behind it wait, too.
func TestAPlanKnowsThatAGateWaitsForAPerson(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(10))})
	w.estimated(7*time.Second, 7*time.Second, 3)
	w.beat(10)
	w.inLane("h0000", "gate")
	w.inLane("h0001", "gate")
	w.inTurn("running", "waiting")
	for _, g := range w.take("default") {
		w.end("default", g, jobs.Failed)
	}
	w.inTurn("failed", "waiting")
	for _, mode := range []string{"gate", ""} {
		f := w.foreseeIn("h0009", mode)
		if f.Never != 1 || !strings.Contains(f.Left[0].Why, "failed, and a person decides") {
			t.Errorf("mode %q: %+v", mode, f)
		}
	}
}

// A plan refuses the lanes that a submit would refuse.
func TestAPlanRefusesWhatIsWrongWithALane(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for query, words := range map[string]string{
		"lane_mode=gate":            "query.lane: a lane needs a key",
		"lane=a%20b":                "query.lane: ",
		"lane=a&lane_mode=soon":     "\"soon\" is no mode of a lane",
		"lane=a&lane_mode=pipeline": "query.lane_mode: ",
	} {
		var p problem
		res := w.call("POST", "/v1/plan?"+query, run("fw001"), &p)
		if res.StatusCode != 422 || !strings.Contains(p.words(), words) {
			t.Errorf("%s: %s %s", query, res.Status, p.words())
		}
	}
}
