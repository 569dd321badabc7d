package queue_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"muster/internal/proc"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

func TestALostChildsJobIsHandedOutAsLost(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, other := open(t, w, "1"), open(t, w, "2")
		submit(t, q, spec(), 2)
		g := one(t, step(t, q, "1", 1))
		loss := jobs.Loss{Node: "n1", Slot: "1", Why: `killed by "signal 9"`}
		ids, err := other.Lose(t.Context(), zone, loss)
		if err != nil || len(ids) != 1 || ids[0] != g.Job {
			t.Fatalf("lost %v, %v", ids, err)
		}
		wantState(t, q, g.Job, jobs.Lost, "")
		if ids, err := other.Lose(t.Context(), zone, loss); err != nil || len(ids) != 0 {
			t.Errorf("a second loss lost %v, %v", ids, err)
		}
		at, err := q.Committed(t.Context(), zone, g.Job.Task())
		if err != nil || at == 0 || at > jobs.Micros(g.Token) || at < jobs.Micros(g.Token)-60_000_000 {
			t.Errorf("committed at %d, %v; its first token is %d", at, err, g.Token)
		}
		l := one(t, step(t, other, "2", 1))
		if l.Job != g.Job || l.Mode != jobs.ModeLost || l.Crashes != 1 || l.LostNode != "n1/1" ||
			l.Bound <= 50*time.Second || l.Bound > time.Minute+10*time.Millisecond {
			t.Fatalf("grant is %+v", l)
		}
		// The spawn failed: the job must be lost again, not fresh.
		step(t, other, "2", 0, jobs.Result{Job: l.Job, Token: l.Token, Kind: jobs.KindBack})
		l = one(t, step(t, other, "2", 1))
		if l.Mode != jobs.ModeLost {
			t.Fatalf("given back, it comes as %s", l.Mode)
		}
		res := ended(l, jobs.Unknown)
		res.KeepLock = true
		step(t, other, "2", 0, res)
		wantState(t, q, g.Job, jobs.Ended, jobs.Unknown)
		// The host stays locked as long as the old attempt may act on it.
		third := jobs.NewID(submit(t, q, spec(), 1), "fw0000")
		r := step(t, other, "2", 5)
		for _, x := range r.Jobs {
			if x.Job == third {
				t.Error("a job started on a host where a lost attempt may still act")
			}
		}
		if w.pass != nil {
			w.pass(61 * time.Second)
			if r := step(t, other, "2", 5); len(r.Jobs) == 0 || r.Jobs[0].Job != third {
				t.Errorf("after the bound: %v", r)
			}
		}
	})
}

// The network delayed a copy of a child's call, or the call itself. Meanwhile the child died, and
// its master reported that.
func TestADelayedCallOfALostChildTakesNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		for _, before := range []int{0, 1} { // calls of the child that were answered
			master := open(t, w, "")
			submit(t, master, spec(), 3)
			stamp := time.Now().Add(-time.Minute / 2).UnixMicro()
			for range before {
				step(t, master, "1", 1)
			}
			if _, err := master.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1"}); err != nil {
				t.Fatal(err)
			}
			late := jobs.Step{Node: "n1", Slot: "1", Request: "late", Want: 2}
			args := queue.StepArgs(late, "", strconv.FormatInt(stamp, 10))
			v, err := queue.ScriptBehind("", "step").Call(t.Context(), w.raw(t), zone, nil, args...)
			if err != nil || len(v) == 0 || v[0] != "stale" {
				t.Errorf("after %d calls: %v, %v, want stale", before, v, err)
			}
			held, err := master.Held(t.Context(), zone, "n1")
			if err != nil || len(held) > 0 {
				t.Errorf("an empty slot is listed: %v, %v", held, err)
			}
			// Another child in the slot gets jobs.
			step(t, master, "1", 1)
			if _, err := master.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A master took a job for a child. The network delays a copy of the child's first call until the
// child has given the job back and its master has reported that it is gone. Nobody has the job, so
// it stays in the queue, and its host is free.
func TestADelayedFirstCallOfAChildThatIsGoneTakesNothingBack(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		master, child := open(t, w, ""), open(t, w, "1")
		submit(t, master, spec(), 1)
		reply := step(t, master, "1", 1)
		g := one(t, reply)
		child.Hand.Hold(jobs.Handover{Node: "n1", Slot: "1", Zone: zone, Sent: proc.Boot(), Reply: reply})
		run, err := w.raw(t).HGet(t.Context(), keys.Zone(zone, "zone", ""), "run").Result()
		if err != nil {
			t.Fatal(err)
		}
		delayed := child.EpochArgs(zone, run)
		step(t, child, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
		if _, err := master.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1"}); err != nil {
			t.Fatal(err)
		}
		_, err = queue.ScriptBehind("", "epoch").Call(t.Context(), w.raw(t), zone, nil, delayed...)
		if err != nil {
			t.Fatal(err)
		}
		if again := one(t, step(t, master, "2", 1)); again.Job != g.Job {
			t.Errorf("got %s, want %s, which nobody has", again.Job, g.Job)
		}
	})
}

// A child slept past its lock, took its lost job again, and reported the end of its first attempt
// after that. A restart of Redis must still hear that the second one is in hand.
func TestTheEndOfAnOlderAttemptLeavesTheNewerOneInHand(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		if w.pass == nil {
			return
		}
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		first := one(t, step(t, q, "1", 1))
		w.pass(66 * time.Second)
		second := one(t, step(t, q, "1", 1))
		if second.Job != first.Job || second.Token == first.Token {
			t.Fatalf("got %+v after %+v, want the same job again", second, first)
		}
		for _, r := range []jobs.Result{ended(first, jobs.Succeeded),
			{Job: first.Job, Token: first.Token, Kind: jobs.KindBack}} {
			step(t, q, "1", 0, r)
			q.Hand.GiveUp(zone, []jobs.Result{r})
			if got := q.TokensInHand(zone)[second.Job]; got != second.Token {
				t.Fatalf("after %s of the first attempt token %d is in hand, want %d", r.Kind, got, second.Token)
			}
		}
		step(t, q, "1", 0, ended(second, jobs.Succeeded))
		if got := q.TokensInHand(zone); len(got) > 0 {
			t.Errorf("still in hand: %v", got)
		}
	})
}

func TestASilentWorkersJobIsLostAfterItsLock(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		if w.pass == nil {
			return
		}
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		w.pass(64 * time.Second) // the lock has ended, the delay has not
		if r := step(t, q, "2", 1); len(r.Jobs) != 0 {
			t.Fatalf("handed out before its lock delay: %v", r)
		}
		w.pass(2 * time.Second)
		if _, err := q.Step(t.Context(), zone, jobs.Step{}); err != nil { // the sweep
			t.Fatal(err)
		}
		wantState(t, q, g.Job, jobs.Lost, "")
		w.pass(61 * time.Second)
		l := one(t, step(t, q, "2", 1))
		if l.Mode != jobs.ModeLost || l.Bound != 0 || l.Token <= g.Token {
			t.Errorf("grant is %+v", l)
		}
		if r := step(t, q, "1", 0, ended(g, jobs.Succeeded)); len(r.Late) != 1 {
			t.Errorf("the silent worker's result counted: %v", r)
		}
	})
}

func TestAJobThatKillsThreeWorkersEnds(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		var g jobs.Grant
		for range 3 {
			g = one(t, step(t, q, "1", 1))
			if _, err := q.Lose(t.Context(), zone,
				jobs.Loss{Node: "n1", Slot: "1", Why: "exit 2"}); err != nil {
				t.Fatal(err)
			}
		}
		j := wantState(t, q, g.Job, jobs.Ended, jobs.Unknown)
		if j.Class != jobs.ClassOperator {
			t.Errorf("job is %+v", j)
		}
	})
}

// The order in which the jobs of a child are lost is visible: the job that stopped its task is
// named. It must not depend on the order in which Lua stores them.
func TestJobsOfAChildAreLostInTheirOrder(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 12)
		if r := step(t, q, "1", 12); len(r.Jobs) != 12 {
			t.Fatalf("handed out %d jobs, want 12", len(r.Jobs))
		}
		ids, err := q.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1", Why: "exit 2"})
		if err != nil || len(ids) != 12 || !slices.IsSorted(ids) {
			t.Errorf("lost %v, %v: want all 12, sorted", ids, err)
		}
	})
}

func TestCheckpointRenewsAndRefuses(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		ask := func(token jobs.Token) jobs.Verdict {
			t.Helper()
			v, err := q.Checkpoint(t.Context(), zone, jobs.Checkpoint{Job: g.Job, Token: token,
				Step: 1, Saved: `{"a":1}`})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		if w.pass != nil {
			w.pass(50 * time.Second)
		}
		if v := ask(g.Token); v != jobs.Go {
			t.Fatalf("verdict %s", v)
		}
		if w.pass != nil {
			w.pass(50 * time.Second) // longer than the first lock
			if v := ask(g.Token); v != jobs.Go {
				t.Fatalf("verdict %s", v)
			}
		}
		if v := ask(g.Token - 1); v != jobs.Stale {
			t.Errorf("verdict %s for an old token", v)
		}
		if j := info(t, q, g.Job); j.Step != 1 {
			t.Errorf("job is at step %d", j.Step)
		}
		c, err := q.Cancel(t.Context(), id, "alice: changed my mind")
		if err != nil || c.Running != 1 || c.Ended != 0 {
			t.Errorf("cancel did %+v, %v", c, err)
		}
		if v := ask(g.Token); v != jobs.Stop {
			t.Errorf("verdict %s after cancel", v)
		}
	})
}

func TestCancelEndsWhatIsNotRunning(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 700)
		g := one(t, step(t, q, "1", 1))
		want := jobs.Cancel{Task: id, Ended: 699, Running: 1}
		for range 2 {
			c, err := q.Cancel(t.Context(), id, "alice: no \"reason\"")
			if err != nil || c != want {
				t.Fatalf("cancel did %+v, %v, want %+v", c, err, want)
			}
			want = jobs.Cancel{Task: id, Running: 1, Already: 699}
		}
		r := step(t, q, "1", 1, ended(g, jobs.Succeeded))
		if r.Status != jobs.StatusNext {
			t.Errorf("status %s", r.Status)
		}
		got, err := q.Task(t.Context(), id)
		if err != nil || got.State != jobs.TaskEnded || got.Outcomes[jobs.Cancelled] != 699 ||
			got.Outcomes[jobs.Succeeded] != 1 {
			t.Errorf("task is %+v, %v", got, err)
		}
		if j := info(t, q, jobs.NewID(id, "fw0001")); j.Error != `alice: no "reason"` {
			t.Errorf("job says %q", j.Error)
		}
	})
}

func TestWhatDoesNotStartInTimeExpires(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		s := spec()
		s.Expire = time.Hour
		if w.pass == nil {
			s.Expire = time.Microsecond
		}
		id := submit(t, q, s, 100)
		if w.pass != nil {
			w.pass(time.Hour)
		}
		r := step(t, q, "1", 1)
		for r.Status == jobs.StatusMore {
			r = step(t, q, "1", 1)
		}
		if r.Status != jobs.StatusNext {
			t.Errorf("status %s", r.Status)
		}
		got, _ := q.Task(t.Context(), id)
		if got.Outcomes[jobs.Expired] != 100 {
			t.Errorf("task is %+v", got)
		}
	})
}

// A sweep of a zone with a backlog once asked for more calls, and so repeated itself, and pushed
// each lost job a minute away from the masters each time.
func TestASweepLeavesDueAndLostJobsToTheMasters(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 100)
		g := one(t, step(t, q, "1", 1))
		if _, err := q.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1", Why: "exit 2"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r, err := q.Step(t.Context(), zone, jobs.Step{})
			if err != nil || r.Status != jobs.StatusNext {
				t.Fatalf("sweep: %s, %v", r.Status, err)
			}
		}
		if l := one(t, step(t, q, "1", 1)); l.Job != g.Job || l.Mode != jobs.ModeLost {
			t.Errorf("after the sweep the first grant is %+v", l)
		}
	})
}
