package queue_test

import (
	"slices"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/model"
)

// A job waits between two steps and keeps its group; Redis has forgotten the commit of its task. A
// pause put it aside for good: a resume returned no job of such a task, so all other jobs of the
// group waited with it.
func TestAResumeBringsBackWhatBeganBeforeItsCommitWasForgotten(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		for _, verb := range []string{"resume", "release"} {
			calm(t, w)
			own := []jobs.Micros{0, 0, w.now.Add(time.Second / 2)} // a time of its own does not show a beginning
			p := model.Put{Task: "0bjya00001", Print: "p", Hosts: []string{"fw0", "fw2", "fw4"}, Own: own,
				Head: &model.Head{Spec: jobs.Spec{Action: []byte(`{}`), Inventory: "v1", Timeout: time.Minute,
					Expire: time.Hour, Terms: jobs.Terms{Disruptive: true}}, Total: 3, Chunks: 1, Guarded: true}}
			w.put(t, p)
			w.copy(t, "muster:{default}:", "kept:")
			kept := w.zone.Clone()
			w.move(t, model.Move{Task: p.Task, Verb: "commit", Limit: 500, Note: "x"})
			w.now = w.now.Add(time.Second)
			grants := w.take(t, "1", 3).Jobs
			g := grants[slices.IndexFunc(grants, func(g jobs.Grant) bool { return g.Job.Host() == "fw0" })]
			w.copy(t, "kept:", "muster:{default}:") // the failover
			w.zone = kept
			w.epoch(t, model.Hello{Run: "run1", Who: "n1/1", Longest: time.Minute, Knew: kept.Flags.Epoch,
				Jobs: []model.InHand{{Job: g.Job, Token: g.Token, Left: 50 * time.Second}}})
			w.control(t, model.Turn{Verb: "thaw", Note: "x"})
			w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindWait, Step: 1})
			stop := func(on bool) {
				switch {
				case verb == "resume" && on:
					w.move(t, model.Move{Task: p.Task, Verb: "pause", Limit: 500, Note: "x"})
				case verb == "release":
					w.control(t, model.Turn{Verb: map[bool]string{true: "pause", false: "resume"}[on] + "-customer",
						Object: "acme", Note: "x", Number: -1})
				}
			}
			stop(true)
			w.now = w.now.Add(time.Second)
			if r := w.take(t, "1", 1); len(r.Jobs) > 0 && r.Jobs[0].Job.Task() == p.Task {
				t.Fatalf("handed out %s", r.Jobs[0].Job)
			}
			if _, aside := w.zone.Held[p.Task].Score(g.Job); !aside {
				t.Fatalf("%s was not laid aside", g.Job)
			}
			stop(false)
			w.move(t, model.Move{Task: p.Task, Verb: verb, Limit: 500, Note: "x"})
			w.now = w.now.Add(time.Second)
			if r := w.take(t, "1", 3); !slices.ContainsFunc(r.Jobs, func(x jobs.Grant) bool { return x.Job == g.Job }) {
				t.Errorf("after %s handed out %v, want %s", verb, r.Jobs, g.Job)
			}
			if n := w.zone.Held[p.Task].Len(); n != 2 {
				t.Errorf("after %s %d jobs are held, want the two that never began", verb, n)
			}
		}
	})
}
