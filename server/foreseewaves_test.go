package server_test

import (
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
)

// rolls submits a rollout on all hosts.
func (w *world) rolls(s jobs.Stages) api.Submitted {
	w.t.Helper()
	body := run("all")
	body.Rollout = &jobs.RolloutAsk{Stages: s}
	return w.submit(body)
}

// other returns what a plan for one host says about a task of the queue, and how long after the plan
// it is done.
func (w *world) other(id jobs.TaskID) (api.OtherTask, time.Duration, api.Foresight) {
	w.t.Helper()
	f := w.foresee(run("h0000"))
	for _, o := range f.Others {
		if o.Task == id {
			return o, o.Done.Sub(f.At.Time), f
		}
	}
	w.t.Fatalf("the plan does not know %s: %+v", id, f.Others)
	return api.OtherTask{}, 0, f
}

// A plan counts the waves that are still to come of the rollouts in the queue, with their pauses.
func TestAPlanKnowsTheWavesThatAreStillToCome(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(10))})
	w.estimated(7*time.Second, 7*time.Second, 3)
	w.beat(10)
	id := w.rolls(jobs.Stages{Waves: []string{"2", "6", "100%"}, Soak: "1m", Gate: true}).Task
	const wave, pause = 7 * time.Second, time.Minute + time.Second // until a server has seen that it is over
	o, done, f := w.other(id)
	if want := 3*wave + 2*pause; done != want || o.Waiting != 10 || o.Left != 0 {
		t.Errorf("before it begins it is done after %s, want %s: %+v", done, want, o)
	}
	if !strings.Contains(strings.Join(f.Notes, "\n"), "open rollouts ("+string(id)+"): each wave is taken to be opened") {
		t.Errorf("notes %q", f.Notes)
	}
	w.work("default", succeed) // the first wave
	o, done, _ = w.other(id)
	if want := 2*wave + 2*pause; done > want || done < want-time.Minute || o.Waiting != 8 {
		t.Errorf("after its first wave it is done after %s, want at most %s: %+v", done, want, o)
	}
}

// Without a budget one failure keeps the later waves closed, and a plan says so.
func TestAPlanKnowsThatAWaveDoesNotOpen(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(10))})
	w.estimated(7*time.Second, 7*time.Second, 3)
	w.beat(10)
	id := w.rolls(jobs.Stages{Waves: []string{"2", "100%"}, Soak: "1h"}).Task
	w.end("default", w.take("default")[0], jobs.Failed)
	o, done, f := w.other(id)
	if done <= 0 || done > 7*time.Second || o.Waiting != 9 || o.Left != 8 {
		t.Errorf("one host of the first wave is left: done after %s, %+v", done, o)
	}
	if !strings.Contains(strings.Join(f.Notes, "\n"), "hosts failed, so no further wave is taken to open") {
		t.Errorf("notes %q", f.Notes)
	}
}

// A rollout in the queue ends when a plan said it would, in a house whose server opens the waves.
func TestARolloutEndsWhenAPlanSaid(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(4))})
	w.estimated(10*time.Millisecond, 10*time.Millisecond, 3)
	w.beat(10)
	id := w.rolls(jobs.Stages{Waves: []string{"1", "100%"}, Soak: "1s"}).Task
	_, done, f := w.other(id)
	foretold := f.At.Add(done)
	var info jobs.TaskInfo
	waitFor(t, "the end of the rollout", func() bool {
		w.work("default", succeed)
		w.call("GET", "/v1/tasks/"+string(id), nil, &info)
		return info.State == jobs.TaskEnded
	})
	late := info.Finished.Sub(foretold)
	t.Logf("foretold %s after the plan, happened %s later", done, late)
	// A server that looks at once opens the wave a second sooner than the plan assumes.
	if late < -1200*time.Millisecond || late > time.Minute {
		t.Errorf("it was done %s after the plan said", late)
	}
}
