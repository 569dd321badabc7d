package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/model"
)

// The walks of model_test.go, or a simulation, found these cases.

// calm prepares a twin with a task on each of some hosts, and a known child.
func calm(t *testing.T, w *twin, hosts ...string) {
	w.reset(t)
	w.epoch(t, model.Hello{Run: "run0", Who: "n1/1", Longest: time.Minute})
	for _, host := range hosts {
		w.submit(t, host)
	}
}

func (w *twin) submit(t *testing.T, hosts ...string) {
	spec := jobs.Spec{Action: []byte(`{}`), Inventory: "v1", Timeout: time.Minute, Expire: time.Hour}
	p := model.Put{Task: jobs.NewTaskID(w.now.Time(), uint16(taskCount.Add(1))), Print: "p",
		Hosts: hosts, Head: &model.Head{Spec: spec, Total: len(hosts), Chunks: 1}}
	w.put(t, p)
	w.move(t, model.Move{Task: p.Task, Verb: "commit", Limit: 500, Note: "x"})
}

// take makes a call of a child of node n1.
func (w *twin) take(t *testing.T, slot string, want int, results ...jobs.Result) jobs.Reply {
	w.now++
	r, _ := w.step(t, model.Step{Sent: w.now, Step: jobs.Step{Node: "n1", Slot: slot,
		Request: fmt.Sprint("r", request.Add(1)), Want: want, Results: results}})
	return r
}

// The last moments before a failover are lost, and with them a child's whole task. The child works
// all the same: no other child gets its host.
func TestAForgottenTaskKeepsItsHosts(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w, "fw9")
		w.take(t, "1", 1)
		w.copy(t, "muster:{default}:", "kept:")
		kept := w.zone.Clone()
		w.submit(t, "fw0")
		g := one(t, w.take(t, "2", 1))
		w.copy(t, "kept:", "muster:{default}:") // the failover
		w.zone = kept
		w.epoch(t, model.Hello{Run: "run1", Who: "n1/2", Longest: time.Minute, Knew: kept.Flags.Epoch,
			Jobs: []model.InHand{{Job: g.Job, Token: g.Token, Left: 50 * time.Second}}})
		w.submit(t, "fw0")
		w.control(t, model.Turn{Verb: "thaw", Note: "x"})
		w.now = w.now.Add(40 * time.Second)
		if r := w.take(t, "1", 1); len(r.Jobs) > 0 {
			t.Errorf("handed out %v while the forgotten job runs", r.Jobs)
		}
		w.now = w.now.Add(time.Minute)
		one(t, w.take(t, "1", 1))
	})
}

// Two jobs were handed out on one host, one of them in moments that Redis forgot, and both are
// reported again in one call, when no lock holds any more: the host gets one lock, not two in turn.
// The model gave it to the last one reported.
func TestOfTwoJobsOnAHostThatAreToldAgainTheFirstKeepsIt(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w, "fw0")
		w.copy(t, "muster:{default}:", "kept:")
		kept := w.zone.Clone()
		forgotten := one(t, w.take(t, "1", 1))
		w.copy(t, "kept:", "muster:{default}:") // the failover
		w.zone = kept
		w.move(t, model.Move{Task: forgotten.Job.Task(), Verb: "pause", Limit: 500, Note: "x"})
		w.now = w.now.Add(time.Second)
		w.submit(t, "fw0")
		other := one(t, w.take(t, "2", 1))
		h := model.Hello{Run: "run1", Who: "n1/1", Longest: time.Minute, Knew: kept.Flags.Epoch,
			Jobs: []model.InHand{{Job: forgotten.Job, Token: forgotten.Token, Left: time.Minute}}}
		w.epoch(t, h)
		w.now = w.now.Add(10 * time.Minute)
		h.Run = "run2"
		h.Jobs = append(h.Jobs, model.InHand{Job: other.Job, Token: other.Token, Left: time.Minute})
		w.epoch(t, h)
		if got := w.zone.Locks["fw0"].Job; got != forgotten.Job {
			t.Errorf("%s has the host, want %s, which was told first", got, forgotten.Job)
		}
	})
}

// A child reports its job when it connects, and a copy of that report is delayed by the network until
// the child has given the job back. The job stays where it is: nobody has it.
func TestADelayedReportTakesNothingBack(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w, "fw0")
		g := one(t, w.take(t, "1", 1))
		h := model.Hello{Run: "run0", Who: "n1/1", Longest: time.Minute, Sent: jobs.Micros(g.Token),
			Jobs: []model.InHand{{Job: g.Job, Token: g.Token, Left: 50 * time.Second}}}
		w.epoch(t, h)
		w.now = w.now.Add(2 * time.Second)
		w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
		w.now = w.now.Add(time.Minute)
		w.epoch(t, h)
		if j := w.zone.Jobs[g.Job]; j != nil && j.State == jobs.Running {
			t.Errorf("%s runs, and no child has it", g.Job)
		}
		if lock := w.zone.Locks["fw0"]; lock.Job != "" {
			t.Errorf("its host is locked for %s", lock.Job)
		}
		one(t, w.take(t, "2", 1))
	})
}

// A failover forgets a take, and the clock of the new server is late: the token of the forgotten job
// is greater than the new epoch. The child's own clock is late, too, so its report looks older than
// its last call that Redis still knows. It is its first report in this epoch: the job is its own.
func TestAFirstReportIsNeverLate(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w, "fw0")
		w.take(t, "1", 0)
		w.copy(t, "muster:{default}:", "kept:")
		kept := w.zone.Clone()
		g := one(t, w.take(t, "1", 1))
		w.copy(t, "kept:", "muster:{default}:") // the failover
		w.zone = kept
		w.now = w.now.Add(-30 * time.Second)
		hello := w.epoch(t, model.Hello{Run: "run1", Who: "n1/1", Longest: time.Minute,
			Knew: kept.Flags.Epoch, Sent: w.now.Add(-time.Hour),
			Jobs: []model.InHand{{Job: g.Job, Token: g.Token, Left: 50 * time.Second}}})
		if jobs.Micros(g.Token) <= hello.Epoch {
			t.Fatalf("token %d is not above epoch %d: this test sees nothing", g.Token, hello.Epoch)
		}
		if j := w.zone.Jobs[g.Job]; j == nil || j.State != jobs.Running || j.Token != g.Token {
			t.Errorf("%s is %+v, want it running with token %d", g.Job, j, g.Token)
		}
		w.control(t, model.Turn{Verb: "thaw", Note: "x"})
		if r := w.take(t, "2", 1); len(r.Jobs) > 0 {
			t.Errorf("handed out %v, which n1/1 has", r.Jobs)
		}
	})
}

// A failover forgets that a step made the lock of its host longer. The child says how long it has the
// host, and until then nobody else gets it.
func TestALockLastsAsLongAsItsChildSays(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w, "fw0")
		g := one(t, w.take(t, "1", 1))
		w.copy(t, "muster:{default}:", "kept:")
		kept := w.zone.Clone()
		w.now = w.now.Add(50 * time.Second)
		if v := w.checkpoint(t, jobs.Checkpoint{Job: g.Job, Token: g.Token, Step: 1}); v != jobs.Go {
			t.Fatalf("the step: %s", v)
		}
		w.copy(t, "kept:", "muster:{default}:") // the failover
		w.zone = kept
		h := model.Hello{Run: "run1", Who: "n1/1", Longest: time.Minute, Knew: kept.Flags.Epoch,
			Jobs: []model.InHand{{Job: g.Job, Token: g.Token, Left: time.Minute}}}
		now := w.now
		w.epoch(t, h)
		if until := w.zone.Locks["fw0"].Until; until != now.Add(time.Minute) {
			t.Errorf("its host is locked until %s, want %s", until, now.Add(time.Minute))
		}
		w.now = w.now.Add(30 * time.Second)
		h.Jobs[0].Left = 10 * time.Second // a copy of an older report, or one of a clock that is wrong
		w.epoch(t, h)
		if until := w.zone.Locks["fw0"].Until; until != now.Add(time.Minute) {
			t.Errorf("afterwards it is locked until %s, want %s", until, now.Add(time.Minute))
		}
		w.control(t, model.Turn{Verb: "thaw", Note: "x"})
		w.submit(t, "fw0")
		if r := w.take(t, "2", 1); len(r.Jobs) > 0 {
			t.Errorf("handed out %v, while n1/1 has its host", r.Jobs)
		}
	})
}

// The next token is above all tokens that children report, whatever the order of their reports.
func TestTokensGrowAfterARestart(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w, "fw0", "fw1", "fw2")
		w.copy(t, "muster:{default}:", "kept:")
		kept := w.zone.Clone()
		grants := w.take(t, "1", 2).Jobs
		slices.Reverse(grants)
		w.copy(t, "kept:", "muster:{default}:")
		w.zone = kept
		w.now = w.now.Add(-30 * time.Second) // the new server's clock is late
		h := model.Hello{Run: "run1", Who: "n1/1", Longest: time.Minute, Knew: kept.Flags.Epoch}
		for _, g := range grants {
			h.Jobs = append(h.Jobs, model.InHand{Job: g.Job, Token: g.Token, Left: time.Minute})
		}
		w.epoch(t, h)
		w.control(t, model.Turn{Verb: "thaw", Note: "x"})
		if g := one(t, w.take(t, "1", 1)); g.Token <= grants[0].Token || g.Token <= grants[1].Token {
			t.Errorf("token %d after %d and %d", g.Token, grants[0].Token, grants[1].Token)
		}
	})
}

// A job that was cancelled before its task was committed stays cancelled when the submit is
// repeated; the rest of the task runs.
func TestASubmitDoesNotReviveWhatWasCancelled(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w)
		spec := jobs.Spec{Action: []byte(`{}`), Inventory: "v1", Timeout: time.Minute, Expire: time.Hour}
		p := model.Put{Task: "0bjya00001", Print: "p", Hosts: []string{"fw0", "fw1"},
			Head: &model.Head{Spec: spec, Total: 2, Chunks: 1}}
		w.put(t, p)
		w.end(t, model.Ending{Task: p.Task, Note: "carol: no", Hosts: []string{"fw0"}})
		w.put(t, p)
		w.move(t, model.Move{Task: p.Task, Verb: "commit", Limit: 500, Note: "x"})
		if g := one(t, w.take(t, "1", 2)); g.Job.Host() != "fw1" {
			t.Errorf("handed out %s", g.Job)
		}
	})
}

// A take that broke off after its first writes has left the semaphores to a job that was never
// handed out. They must not keep that job itself waiting.
func TestAJobDoesNotWaitForItself(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w)
		w.control(t, model.Turn{Verb: "limit", Object: "lab", Number: 1})
		for stop := 1; stop < 25; stop++ {
			spec := jobs.Spec{Action: []byte(`{}`), Inventory: "v1", Timeout: time.Minute, Expire: time.Hour,
				Needs: []string{"lab"}, Terms: jobs.Terms{Disruptive: true}}
			p := model.Put{Task: jobs.NewTaskID(w.now.Time(), uint16(stop)), Print: "p",
				Hosts: []string{"fw0"}, Head: &model.Head{Spec: spec, Total: 1, Chunks: 1, Guarded: true}}
			w.put(t, p)
			w.move(t, model.Move{Task: p.Task, Verb: "commit", Limit: 500, Note: "x"})
			w.stop = stop
			r := w.take(t, "1", 1)
			for range 5 {
				if len(r.Jobs) > 0 {
					break
				}
				w.now = w.now.Add(61 * time.Second)
				r = w.take(t, "1", 1)
			}
			w.take(t, "1", 0, ended(one(t, r), jobs.Succeeded))
		}
	})
}

// disturb submits a disruptive task that may run twice, on a pair of hosts, and
// takes one of its jobs.
func disturb(t *testing.T, w *twin) jobs.Grant {
	calm(t, w)
	spec := jobs.Spec{Action: []byte(`{}`), Inventory: "v1", Timeout: time.Minute, Expire: time.Hour,
		Repeatable: true, Terms: jobs.Terms{Disruptive: true}}
	p := model.Put{Task: "0bjya00001", Print: "p", Hosts: []string{"fw0", "fw1"},
		Head: &model.Head{Spec: spec, Total: 2, Chunks: 1, Guarded: true}}
	w.put(t, p)
	w.move(t, model.Move{Task: p.Task, Verb: "commit", Limit: 500, Note: "x"})
	return one(t, w.take(t, "1", 2))
}

// A job that its master releases continues where it was: the master does not know the step.
func TestAJobThatIsGivenBackGoesOnWhereItWas(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		g := disturb(t, w)
		w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindWait, Step: 1})
		g = one(t, w.take(t, "1", 1))
		w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
		if g = one(t, w.take(t, "1", 1)); g.Step != 1 {
			t.Errorf("it goes on at step %d, want 1", g.Step)
		}
		// Nor is it cancelled as if no part of it had run.
		w.end(t, model.Ending{Task: g.Job.Task(), Note: "carol: no"})
		w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
		if why := w.zone.Jobs[g.Job].End.Error; why != "cancelled after step 1: carol: no" {
			t.Errorf("it ended with %q", why)
		}
	})
}

// A job that is verified between two attempts, for instance because its host reboots, keeps its
// host and its group when it is released, as by a worker that drains; and a cancel then does not
// call it harmless.
func TestAJobThatIsGivenBackStillHasItsHost(t *testing.T) {
	for kind, state := range map[jobs.Kind]jobs.State{jobs.KindVerify: jobs.Verify, jobs.KindWait: jobs.Waiting} {
		twins(t, func(t *testing.T, w *twin) {
			g := disturb(t, w)
			w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: kind, Step: 1})
			g = one(t, w.take(t, "1", 1))
			for range 2 {
				w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
				if j, l := w.zone.Jobs[g.Job], w.zone.Locks[g.Job.Host()]; j.State != state || l.Job != g.Job {
					t.Fatalf("given back it is %s, its host is held by %q", j.State, l.Job)
				}
				g = one(t, w.take(t, "1", 1))
			}
			w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindRetry, Step: 1})
			g = one(t, w.take(t, "1", 1))
			w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
			if j := w.zone.Jobs[g.Job]; j.State != jobs.Retry {
				t.Errorf("tried again and given back it is %s", j.State)
			}
		})
	}
	for _, first := range []string{"cancel", "back"} {
		twins(t, func(t *testing.T, w *twin) {
			g := disturb(t, w)
			w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindVerify, Step: 1})
			g = one(t, w.take(t, "1", 1))
			back := jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack}
			if first == "back" {
				w.take(t, "1", 0, back)
			}
			w.end(t, model.Ending{Task: g.Job.Task(), Hosts: []string{g.Job.Host()}, Note: "carol: no"})
			if first == "cancel" {
				w.take(t, "1", 0, back)
			}
			end := w.zone.Jobs[g.Job].End
			frozen := w.zone.Semaphores.Holders["group/pair-0"]["frozen"]
			if end.Outcome != jobs.Unknown || frozen == "" {
				t.Errorf("first the %s: it ended %s (%s), its group is frozen by %q", first, end.Outcome,
					end.Error, frozen)
			}
		})
	}
}

// The same if it was deferred before its second step in its first attempt: with that attempt
// released it looked like a job that never began. The next release dropped its record, and it
// expired.
func TestAJobThatWasDeferredHalfWayGoesOnWhereItWas(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		g := disturb(t, w)
		w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindDefer, Step: 1})
		for range 2 {
			g = one(t, w.take(t, "1", 1))
			if g.Step != 1 || g.Mode != jobs.ModeContinue {
				t.Fatalf("it goes on at step %d, as %s", g.Step, g.Mode)
			}
			w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
		}
		g = one(t, w.take(t, "1", 1))
		w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindDefer, Step: 1})
		w.now = w.now.Add(2 * time.Hour) // an hour past its expiry
		if g = one(t, w.take(t, "1", 1)); g.Step != 1 {
			t.Errorf("after its expiry it goes on at step %d", g.Step)
		}
	})
}

// A job that is cancelled between two tries of a step has run: it says so, even after the first
// try. Data that a step saved is no try, whatever its name.
func TestACancelBetweenTwoTriesSaysSo(t *testing.T) {
	for saved, want := range map[string]string{
		`{"again":1}`:                 "cancelled between two tries of step 1: carol: no",
		`{"saved":{"again":"1"}}`:     "carol: no",
		`{"saved":{"a":"again\":1"}}`: "carol: no",
	} {
		for _, runs := range []bool{false, true} { // cancelled before the step failed, or after it
			twins(t, func(t *testing.T, w *twin) {
				g := disturb(t, w)
				cancel := model.Ending{Task: g.Job.Task(), Note: "carol: no"}
				if runs {
					w.end(t, cancel)
				}
				w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindWait,
					Delay: time.Minute, Saved: saved})
				w.end(t, cancel)
				if why := w.zone.Jobs[g.Job].End.Error; why != want {
					t.Errorf("with %s kept it ended with %q, want %q", saved, why, want)
				}
			})
		}
	}
}

// A job whose worker was lost may have run. If the next worker releases it without a look and it
// was cancelled meanwhile, it stays lost, with its host, until a worker has verified it.
func TestACancelDoesNotEndALostJobThatIsGivenBack(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		g := disturb(t, w)
		w.now++
		w.lose(t, model.Loss{Loss: jobs.Loss{Node: "n1", Slot: "1", Why: "killed"}, Sent: w.now})
		for range 2 {
			g = one(t, w.take(t, "1", 1))
			w.end(t, model.Ending{Task: g.Job.Task(), Note: "carol: no"})
			w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
			j, l := w.zone.Jobs[g.Job], w.zone.Locks[g.Job.Host()]
			if g.Mode != jobs.ModeLost || j.State != jobs.Lost || l.Job != g.Job {
				t.Fatalf("handed out as %s and given back it is %s (%s), its host is held by %q", g.Mode,
					j.State, j.End.Outcome, l.Job)
			}
		}
	})
}

// A job that has begun to disturb its host keeps the group until it ends, even while it waits for
// another attempt; a job that has not leaves the group to others.
func TestTheGroupIsKeptBetweenAttempts(t *testing.T) {
	for saved, want := range map[string]int{`{"may_have_run":true}`: 0, "": 1} {
		twins(t, func(t *testing.T, w *twin) {
			g := disturb(t, w)
			w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindRetry,
				Delay: time.Minute, Saved: saved})
			w.now = w.now.Add(10 * time.Second)
			if r := w.take(t, "1", 2); len(r.Jobs) != want {
				t.Errorf("saved %q: handed out %v", saved, r.Jobs)
			}
		})
	}
}

// A job during which three workers died may still act on its host: its group waits for a person,
// whatever the outcome.
func TestAPoisonedJobFreezesItsGroup(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		g := disturb(t, w)
		for range 3 {
			w.now++
			w.lose(t, model.Loss{Loss: jobs.Loss{Node: "n1", Slot: "1", Why: "killed"}, Sent: w.now})
			w.take(t, "1", 1)
		}
		if j := w.zone.Jobs[g.Job]; j.End.Outcome != jobs.Failed {
			t.Fatalf("it is %+v", j)
		}
		w.now = w.now.Add(70 * time.Second)
		if r := w.take(t, "2", 2); len(r.Jobs) > 0 {
			t.Errorf("handed out %v of a group in doubt", r.Jobs)
		}
	})
}

// A zone that a person has thawed stays thawed, whoever reports later and wherever the clock goes.
// Only a new event, a restart or another loss, freezes it again.
func TestAThawStands(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w, "fw0")
		old := w.zone.Flags.Epoch
		late := model.Hello{Run: "run0", Who: "n1/2", Longest: time.Hour, Knew: old,
			Jobs: []model.InHand{{Job: "0bjya00001:fw1", Token: jobs.Token(old), Left: time.Minute}}}
		frozen := func(a model.Welcome) bool { return a.Frozen > a.Now }
		for _, first := range []string{"n1/1", ""} { // a child, a server
			later := w.now.Add(time.Minute)
			w.reset(t) // as FLUSHALL does
			w.now = later
			h := model.Hello{Run: "run0", Who: first, Longest: time.Minute, Knew: old}
			if a := w.epoch(t, h); !frozen(a) {
				t.Fatalf("a zone that was forgotten is open: %+v", a)
			}
			w.now = w.now.Add(20 * time.Second)
			w.control(t, model.Turn{Verb: "thaw", Note: "alice: I looked"})
			w.now = w.now.Add(-10 * time.Second)
			w.submit(t, "fw0")
			if a := w.epoch(t, late); frozen(a) {
				t.Errorf("frozen again for %s by who spoke late", a.Frozen.Sub(a.Now))
			}
			one(t, w.take(t, "3", 1))
		}
		w.now = w.now.Add(time.Minute)
		late.Run, late.Knew = "run1", w.zone.Flags.Epoch
		if a := w.epoch(t, late); !frozen(a) {
			t.Errorf("a restart of Redis does not freeze it again: %+v", a)
		}
	})
}

// A job that has begun, or may have, can still fail while it waits for the next opening of its
// window: it keeps its place in the budget of its task. A job that has not begun leaves its place.
func TestWhoWaitsHalfWayKeepsItsPlaceInTheBudget(t *testing.T) {
	for name, r := range map[string]jobs.Result{
		"stopped behind its first step": {Step: 1},
		"its worker was lost":           {Saved: `{"may_have_run":true}`},
		"not begun":                     {Release: true},
	} {
		t.Run(name, func(t *testing.T) {
			twins(t, func(t *testing.T, w *twin) {
				calm(t, w)
				none := 0
				spec := jobs.Spec{Action: []byte(`{}`), Inventory: "v1", Timeout: time.Minute,
					Expire: time.Hour, Rollout: &jobs.Rollout{Rule: jobs.Rule{MaxFailed: &none}}}
				p := model.Put{Task: "0bjya00001", Print: "p", Hosts: []string{"fw0", "fw2"},
					Head: &model.Head{Spec: spec, Total: 2, Chunks: 1, Guarded: true}}
				w.put(t, p)
				w.move(t, model.Move{Task: p.Task, Verb: "commit", Limit: 500, Note: "x"})
				g := one(t, w.take(t, "1", 1))
				r := r // its own: the twins run beside each other
				r.Job, r.Token, r.Kind = g.Job, g.Token, jobs.KindDefer
				r.Until = w.now.Add(10 * time.Minute)
				w.take(t, "1", 0, r)
				w.now = w.now.Add(2 * time.Minute)
				if got := w.take(t, "2", 2).Jobs; len(got) > 0 != r.Release {
					t.Errorf("handed out %v beside one that was deferred %s", got, name)
				}
			})
		})
	}
}

// A person clears a frozen group, the answer is lost, and the order is repeated or a copy arrives
// late: a job that froze the group since is not the one that the person had looked at. The bug
// cleared it, and the other member was disturbed beside a command whose end nobody knew.
func TestARepeatedClearLeavesALaterFreeze(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w)
		spec := jobs.Spec{Action: []byte(`{}`), Inventory: "v1", Timeout: time.Minute,
			Expire: time.Hour, Terms: jobs.Terms{Disruptive: true}}
		p := model.Put{Task: "0bjya00001", Print: "p", Hosts: []string{"fw0", "fw1"},
			Head: &model.Head{Spec: spec, Total: 2, Chunks: 1, Guarded: true}}
		w.put(t, p)
		w.move(t, model.Move{Task: p.Task, Verb: "commit", Limit: 500, Note: "x"})
		unknown := func() {
			g := one(t, w.take(t, "1", 1))
			w.take(t, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd,
				Outcome: jobs.Unknown, Error: "its worker died with it"})
		}
		frozen := func() bool { return w.zone.Semaphores.Holders["group/pair-0"]["frozen"] != "" }
		unknown()
		clear := model.Turn{Verb: "clear", Object: "pair-0", Note: "looked", Number: int64(w.now)}
		if w.control(t, clear); frozen() {
			t.Fatal("the group is not cleared")
		}
		w.now = w.now.Add(time.Second)
		unknown()
		if w.control(t, clear); !frozen() {
			t.Error("who looked at the first freeze has cleared the second one")
		}
	})
}

// Two epochs never have the same name, even while TIME is behind the last token.
func TestEpochsDiffer(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w, "fw0")
		w.take(t, "1", 1)
		w.now = w.now.Add(-time.Hour)
		seen := map[jobs.Micros]bool{w.zone.Flags.Epoch: true}
		for run := range 3 {
			h := model.Hello{Run: fmt.Sprint("run", run+1), Knew: w.zone.Flags.Epoch, Who: "n1/1"}
			if a := w.epoch(t, h); seen[a.Epoch] {
				t.Errorf("epoch %d comes a second time", a.Epoch)
			}
			seen[w.zone.Flags.Epoch] = true
		}
	})
}
