package queue_test

import (
	"errors"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/model"
	"muster/jobs/queue"
	"muster/jobs/queue/care"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// debt returns what the zone owes to history.
func debt(t *testing.T, q *queuetest.Queue) care.Debt {
	t.Helper()
	list, err := q.Debts(t.Context(), []string{zone})
	if err != nil || len(list) != 1 {
		t.Fatalf("debts %+v, %v", list, err)
	}
	return list[0]
}

// A zone with a history waits after a restart of Redis until history was asked, even if no child
// must be waited for; and it adopts what only history knows.
func TestNothingStartsBeforeHistoryWasAsked(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t, "--appendfsync", "always")
	w := world{cfg: s.Config()}
	q := open(t, w, "")
	if err := q.KeepHistory(t.Context(), zone, ""); err != nil {
		t.Fatal(err)
	}
	id := submit(t, q, quick(), 3)
	if d := debt(t, q); !d.Recorded || d.Owed != "" {
		t.Fatalf("before the restart: %+v", d)
	}
	s.Kill()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	step(t, q, "1", 0)
	d := debt(t, q)
	if d.Owed == "" {
		t.Fatal("after a restart history need not be asked")
	}
	// The freeze itself seems over.
	s.Do(t, "HSET", "muster:{default}:zone", "frozen", "0")
	if r := step(t, q, "1", 3); r.Status != jobs.StatusFrozen || r.Next <= r.Now {
		t.Fatalf("status %s with %d jobs: want frozen", r.Status, len(r.Jobs))
	}
	if depth, err := q.Depth(t.Context(), zone); err != nil || !depth.Owes || depth.Frozen.IsZero() {
		t.Errorf("depth %+v, %v", depth, err)
	}
	open, err := q.Unsettled(t.Context(), zone)
	if err != nil || len(open) != 1 || open[0] != id {
		t.Fatalf("unsettled %v, %v", open, err)
	}
	code, at := 7, jobs.TimeOf(1_760_000_000_000_000)
	past := []jobs.JobInfo{
		{ID: jobs.NewID(id, "fw0000"), Host: "fw0000", State: jobs.Ended, Outcome: jobs.Failed, ExitCode: &code,
			Class: jobs.ClassOperator, Error: "no such\nfile", Attempt: 2, Node: "n1/1", Started: at, Finished: at},
		{ID: jobs.NewID(id, "fw0001"), Host: "fw0001", State: jobs.Lost, Attempt: 1, Node: "n1/1", Started: at},
		{ID: jobs.NewID(id, "strange"), Host: "strange", State: jobs.Ended, Outcome: jobs.Failed},
	}
	for _, want := range []jobs.Recalled{{Ended: 1, Lost: 1}, {}} { // twice does the same as once
		if did, err := q.Recall(t.Context(), d, care.Past{Task: id, Jobs: past}); err != nil || did != want {
			t.Errorf("recalled %+v, %v, want %+v", did, err, want)
		}
	}
	j := wantState(t, q, past[0].ID, jobs.Ended, jobs.Failed)
	if *j.ExitCode != 7 || j.Attempt != 2 || !j.Finished.Equal(at.Time) || j.Error != "no such file" {
		t.Errorf("the end is %+v", j)
	}
	wantState(t, q, past[1].ID, jobs.Lost, "")
	other := d
	other.Owed = "1 another reason"
	if err := q.Settle(t.Context(), other); !errors.Is(err, queue.ErrStale) {
		t.Errorf("settled for another reason: %v", err)
	}
	if err := q.Settle(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	modes := map[jobs.ID]jobs.Mode{}
	for _, g := range step(t, q, "1", 3).Jobs {
		modes[g.Job] = g.Mode
	}
	if len(modes) != 2 || modes[past[1].ID] != jobs.ModeLost ||
		modes[jobs.NewID(id, "fw0002")] != jobs.ModeFresh {
		t.Errorf("handed out %v", modes)
	}
	redistest.Check(t, s.Config().URL, zone)
}

// A person may start a zone without asking history.
func TestAThawEndsTheWaitForHistory(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		submit(t, q, spec(), 1)
		if err := q.KeepHistory(t.Context(), zone, "the stream is shorter"); err != nil {
			t.Fatal(err)
		}
		if r := step(t, q, "1", 1); r.Status != jobs.StatusFrozen {
			t.Fatalf("status %s", r.Status)
		}
		if _, err := q.Thaw(t.Context(), zone, "bob: history is gone"); err != nil {
			t.Fatal(err)
		}
		one(t, step(t, q, "1", 1))
		if d := debt(t, q); d.Owed != "" || !d.Recorded {
			t.Errorf("owes %+v", d)
		}
	})
}

// History may be asked before a child has reported its jobs in hand: its job is not lost then.
func TestAJobInHandIsNotLostBecauseHistoryWasAskedFirst(t *testing.T) {
	t.Parallel()
	twins(t, func(t *testing.T, w *twin) {
		w.reset(t)
		before := w.epoch(t, model.Hello{Run: "r1"})
		w.submit(t, host(0))
		w.recall(t, model.Recall{Verb: "keep"})
		var id jobs.ID
		for of := range w.zone.Tasks {
			id = jobs.NewID(of, host(0))
		}
		w.now++
		token := jobs.Token(w.now) // of a take that Redis has forgotten
		w.now++
		w.epoch(t, model.Hello{Run: "r2", Knew: before.Epoch})
		w.recall(t, model.Recall{Verb: "jobs", Owed: w.zone.Flags.Owed, Task: id.Task(),
			Jobs: []model.Past{{Host: host(0), Attempt: 1, Node: "n1/1", Began: w.now}}})
		if j := w.zone.Jobs[id]; j.State != jobs.Lost {
			t.Fatalf("it is %s", j.State)
		}
		w.epoch(t, model.Hello{Run: "r2", Knew: before.Epoch, Who: "n1/1",
			Jobs: []model.InHand{{Job: id, Token: token, Left: time.Minute}}})
		if j := w.zone.Jobs[id]; j.State != jobs.Running || j.Token != token {
			t.Errorf("the job of a child that has it is %s with token %d", j.State, j.Token)
		}
	})
}

// A job that was in hand when its zone was shut may be deferred, or released, before history reads
// of it. Redis has forgotten nothing of that job: it is not lost, and the zone waits for history.
func TestAJobOfWhichHistoryHasNotHeardAllIsNotLost(t *testing.T) {
	t.Parallel()
	twins(t, func(t *testing.T, w *twin) {
		for _, kind := range []jobs.Kind{jobs.KindDefer, jobs.KindBack} {
			w.reset(t)
			w.epoch(t, model.Hello{Run: "r1"})
			w.submit(t, host(0))
			w.now++
			child := model.Step{Step: jobs.Step{Node: "n1", Slot: "1", Request: "a", Want: 1}}
			r, _ := w.step(t, child)
			if len(r.Jobs) != 1 {
				t.Fatalf("%+v", r)
			}
			id := r.Jobs[0].Job
			w.recall(t, model.Recall{Verb: "keep", Owed: "history knows this zone"})
			child.Request, child.Want = "b", 0
			child.Results = []jobs.Result{{Job: id, Token: r.Jobs[0].Token, Kind: kind}}
			w.now++
			w.step(t, child)
			past := model.Recall{Verb: "jobs", Owed: w.zone.Flags.Owed, Task: id.Task(), Unheard: []jobs.ID{id},
				Jobs: []model.Past{{Host: host(0), Attempt: 1, Node: "n1/1", Began: w.now}}}
			if out := w.recall(t, past); out.Status != "behind" {
				t.Errorf("%s, and history heard the take only: %+v", kind, out)
			}
			past.Unheard = []jobs.ID{"0wftpykpcq:fw0"} // another job's
			if out := w.recall(t, past); out.Lost != 1 {
				t.Errorf("%s, and Redis has forgotten a later attempt: %+v", kind, out)
			}
		}
	})
}

// A job of a group that history knows as unknown freezes the group, as it did at its end.
func TestAnUnknownEndThatIsRecalledFreezesItsGroup(t *testing.T) {
	t.Parallel()
	twins(t, func(t *testing.T, w *twin) {
		w.reset(t)
		w.epoch(t, model.Hello{Run: "r1"})
		id := jobs.TaskID("0bjya00001")
		w.put(t, model.Put{Task: id, Print: "p", Hosts: []string{host(0), host(1)}, At: w.now,
			Head: &model.Head{Total: 2, Chunks: 1, At: w.now, Guarded: true, Spec: jobs.Spec{Runbook: "reload",
				Operator: "alice", Inventory: "v1", Action: []byte("{}"), Timeout: time.Minute, Expire: time.Hour,
				Terms: jobs.Terms{Disruptive: true}}}})
		w.move(t, model.Move{Task: id, Verb: "commit", Limit: 500})
		w.recall(t, model.Recall{Verb: "keep", Owed: "it went back"})
		w.recall(t, model.Recall{Verb: "jobs", Owed: w.zone.Flags.Owed, Task: id, Jobs: []model.Past{{
			Host: host(0), End: model.End{At: w.now - 9, Outcome: jobs.Unknown, Error: "it was killed"},
			Attempt: 1, Node: "n1/1", Began: w.now - 99}}})
		w.recall(t, model.Recall{Verb: "done", Owed: w.zone.Flags.Owed})
		if why := w.zone.Semaphores.Holders["group/pair-0"]["frozen"]; why == "" {
			t.Error("the group is not frozen")
		}
		if r := w.take(t, "1", 2); len(r.Jobs) != 0 {
			t.Errorf("the other member is disturbed: %+v", r.Jobs)
		}
	})
}
