package queue_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
)

// mayFail returns a rule that allows so many failures.
func mayFail(n int) jobs.Rollout { return jobs.Rollout{Rule: jobs.Rule{MaxFailed: &n}} }

// rolling submits a task with a rule on hosts fw0000….
func rolling(t *testing.T, q *queuetest.Queue, r jobs.Rollout, hosts int) jobs.TaskID {
	t.Helper()
	s := spec()
	s.Rollout = &r
	return guarded(t, q, s, 0, hosts)
}

func rollout(t *testing.T, q *queuetest.Queue, id jobs.TaskID) (jobs.TaskInfo, jobs.RolloutInfo) {
	t.Helper()
	task, err := q.Task(t.Context(), id)
	if err != nil || task.Rollout == nil {
		t.Fatalf("%+v, %v: want a rollout", task, err)
	}
	return task, *task.Rollout
}

// A crew is many slots that end their jobs in any order.
type crew struct {
	q      *queuetest.Queue
	hands  []*jobs.Grant
	chance *rand.Rand
	fails  func(host string) bool
	failed int
}

func newCrew(q *queuetest.Queue, slots int, fails func(string) bool) *crew {
	return &crew{q: q, hands: make([]*jobs.Grant, slots), chance: rand.New(rand.NewPCG(1, 2)), fails: fails}
}

// work takes and ends jobs until no slot has any and nothing is due. most bounds the jobs that have
// failed or are in hand at any moment.
func (c *crew) work(t *testing.T, most int) {
	t.Helper()
	for idle := 0; idle < 3*len(c.hands); {
		i := c.chance.IntN(len(c.hands))
		var results []jobs.Result
		if g := c.hands[i]; g != nil {
			o := jobs.Succeeded
			if c.fails(g.Job.Host()) {
				o = jobs.Failed
				c.failed++
			}
			results, c.hands[i] = append(results, ended(*g, o)), nil
		}
		r := step(t, c.q, fmt.Sprint(i), 1, results...)
		idle++
		if len(r.Jobs) > 0 {
			c.hands[i], idle = &r.Jobs[0], 0
		} else if r.Status == jobs.StatusMore || results != nil {
			idle = 0
		}
		begun := 0
		for _, g := range c.hands {
			if g != nil {
				begun++
			}
		}
		if begun > 0 {
			idle = 0
		}
		if c.failed+begun > most {
			t.Fatalf("%d have failed and %d have begun: want at most %d together", c.failed, begun, most)
		}
	}
}

// everySeventh reports whether a host of fw0000… is to fail.
func everySeventh(host string) bool {
	var n int
	fmt.Sscanf(host, "fw%d", &n)
	return n%7 == 6
}

func TestABudgetIsNotOvershotByManySlots(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := rolling(t, q, mayFail(5), 200)
		c := newCrew(q, 64, everySeventh)
		c.work(t, 6)
		task, r := rollout(t, q, id)
		if c.failed != 6 || r.Failed != 6 || r.Begun != 0 || task.State != jobs.TaskStopped {
			t.Errorf("%d failed; %s, %+v: want 6, and that it stopped", c.failed, task.State, r)
		}
		if want := "max-failed 5 of 200: 6 failed: fw"; !strings.HasPrefix(r.Stopped, want) {
			t.Errorf("stopped: %q: want %q…", r.Stopped, want)
		}
		for _, n := range []*int{nil, new(int)} {
			if _, err := q.GoOn(t.Context(), id, n, "alice"); !errors.Is(err, queue.ErrSpent) {
				t.Errorf("it goes on: %v, want that its budget is spent", err)
			}
		}
		ten := 10
		if did, err := q.GoOn(t.Context(), id, &ten, "alice: they are old"); err != nil || did.Already ||
			did.Was != r.Stopped {
			t.Errorf("it goes on: %+v, %v", did, err)
		}
		c.work(t, 11)
		if task, r = rollout(t, q, id); r.Failed != 11 || task.State != jobs.TaskStopped || *r.MaxFailed != 10 {
			t.Errorf("%s, %+v: want 11 failed, and that it stopped", task.State, r)
		}
		if _, err := q.Cancel(t.Context(), id, "alice: enough"); err != nil {
			t.Fatal(err)
		}
		if task, _ = rollout(t, q, id); task.State != jobs.TaskEnded || task.Outcomes.Sum() != 200 {
			t.Errorf("after the cancel it is %s, %v", task.State, task.Outcomes)
		}
		if list, err := q.Rollouts(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("rollouts: %v, %v: want none", list, err)
		}
	})
}

// A rule that is not broken holds no job up.
func TestABudgetThatSufficesLetsAllRun(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := rolling(t, q, mayFail(28), 200)
		newCrew(q, 64, everySeventh).work(t, 29)
		if task, r := rollout(t, q, id); task.State != jobs.TaskEnded || r.Failed != 28 || r.Stopped != "" {
			t.Errorf("%s, %+v: want all ended, 28 failed", task.State, r)
		}
	})
}

func TestWhatCountsAsAFailure(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		for _, c := range []struct {
			outcome jobs.Outcome
			lenient bool
			stops   bool
		}{
			{jobs.Failed, false, true}, {jobs.Timeout, false, true}, {jobs.RolledBack, false, true},
			{jobs.Unknown, true, true}, {jobs.Unreachable, false, true}, {jobs.Unreachable, true, false},
			{jobs.Skipped, false, false}, {jobs.Cancelled, false, false}, {jobs.Succeeded, false, false},
		} {
			r := mayFail(0)
			r.UnreachableOK = c.lenient
			id := rolling(t, q, r, 2)
			g := one(t, step(t, q, "1", 1))
			if next := step(t, q, "2", 1); len(next.Jobs) > 0 {
				t.Fatalf("%s: two have begun of which none may fail", c.outcome)
			}
			res := ended(g, c.outcome)
			step(t, q, "1", 0, res)
			task, roll := rollout(t, q, id)
			if (task.State == jobs.TaskStopped) != c.stops {
				t.Errorf("%s, lenient %t: %s, %+v", c.outcome, c.lenient, task.State, roll)
			}
			if _, err := q.Cancel(t.Context(), id, "x"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A job that was deferred to a window, or released untouched, makes room for the next one; a job
// that begins again, or waits for a host that restarts, does not.
func TestWhoMakesRoomInABudget(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		for _, c := range []struct {
			result jobs.Result
			room   bool
		}{
			{jobs.Result{Kind: jobs.KindDefer, Until: jobs.MicrosOf(time.Now().Add(time.Hour))}, true},
			{jobs.Result{Kind: jobs.KindBack}, true},
			{jobs.Result{Kind: jobs.KindRetry, Delay: time.Hour}, false},
			{jobs.Result{Kind: jobs.KindWait, Delay: time.Hour, Release: true}, false},
			{jobs.Result{Kind: jobs.KindVerify, Delay: time.Hour}, false},
		} {
			id := rolling(t, q, mayFail(0), 2)
			g := one(t, step(t, q, "1", 1))
			c.result.Job, c.result.Token = g.Job, g.Token
			step(t, q, "1", 0, c.result)
			next := step(t, q, "1", 1)
			if (len(next.Jobs) > 0) != c.room {
				t.Errorf("%s: then %d begin, want room: %t", c.result.Kind, len(next.Jobs), c.room)
			}
			if _, r := rollout(t, q, id); r.Begun != 1 || r.Failed != 0 {
				t.Errorf("%s: %+v: want one that has begun", c.result.Kind, r)
			}
			for _, g := range next.Jobs {
				step(t, q, "1", 0, ended(g, jobs.Succeeded))
			}
			if _, err := q.Cancel(t.Context(), id, "x"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestABreakerStops(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		if w.pass == nil {
			return
		}
		q := open(t, w, "1")
		r := jobs.Rollout{Rule: jobs.Rule{Breaker: jobs.Breaker{Failures: 2, Within: time.Minute}}}
		id := rolling(t, q, r, 9)
		fail := func(after time.Duration) string {
			w.pass(after)
			step(t, q, "1", 0, ended(one(t, step(t, q, "1", 1)), jobs.Failed))
			_, r := rollout(t, q, id)
			return r.Stopped
		}
		if why := fail(0) + fail(61*time.Second); why != "" {
			t.Fatalf("stopped: %q: want no stop by two in more than a minute", why)
		}
		if why, want := fail(50*time.Second), "breaker 2/1m0s: 2 failed in 50 s: fw"; !strings.HasPrefix(why, want) {
			t.Fatalf("stopped: %q, want %q…", why, want)
		}
		if r := step(t, q, "1", 1); len(r.Jobs) > 0 {
			t.Fatal("a job begins of a task that was stopped")
		}
		if _, err := q.GoOn(t.Context(), id, nil, "alice"); err != nil {
			t.Fatal(err)
		}
		if why := fail(0); why != "" {
			t.Fatalf("stopped: %q: want that it counts anew", why)
		}
	})
}

// A person stops the task: jobs that have begun continue, nothing else begins, nothing expires.
func TestATaskIsStoppedByHand(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := rolling(t, q, mayFail(3), 3)
		g := one(t, step(t, q, "1", 1))
		for i := range 2 {
			did, err := q.StopTask(t.Context(), id, "stopped by alice: odd")
			if err != nil || !did.Stopped || did.Already != (i == 1) || did.Note != "stopped by alice: odd" {
				t.Errorf("stop %d: %+v, %v", i, did, err)
			}
		}
		again := jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindRetry}
		if r := step(t, q, "1", 3, again); r.Status == jobs.StatusJobs && r.Jobs[0].Job != g.Job {
			t.Fatalf("%s begins", r.Jobs[0].Job)
		}
		g2 := drain(t, q, "1", 3)
		if len(g2) > 1 || len(g2) == 1 && g2[0].Job != g.Job {
			t.Fatalf("%v begin", g2)
		}
		wantState(t, q, jobs.NewID(id, "fw0002"), jobs.Paused, "")
		if did, err := q.GoOn(t.Context(), id, nil, "alice"); err != nil || did.Already || did.Moved != 2 {
			t.Errorf("it goes on: %+v, %v: want 2 brought back", did, err)
		}
		if did, err := q.GoOn(t.Context(), id, nil, "alice"); err != nil || !did.Already {
			t.Errorf("it goes on once more: %+v, %v", did, err)
		}
	})
}

// inWaves returns waves of so many hosts.
func inWaves(sizes ...int) jobs.Rollout { return jobs.Rollout{Waves: sizes} }

// begin takes the due jobs, and returns them and their hosts.
func begin(t *testing.T, q *queuetest.Queue) (list []jobs.Grant, hosts string) {
	t.Helper()
	list = drain(t, q, "1", 10)
	for _, g := range list {
		hosts += strings.TrimPrefix(g.Job.Host(), "fw") + " "
	}
	return list, hosts
}

func TestWavesAreOpenedOnceAndInTurn(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, other := open(t, w, "1"), open(t, w, "")
		id := rolling(t, q, inWaves(1, 3, 2), 6)
		look := func(over bool) {
			t.Helper()
			if at, err := q.LookAtWaves(t.Context(), id); err != nil || at.IsZero() == over {
				t.Fatalf("look: over at %s, %v: want over: %t", at, err, over)
			}
		}
		openWave := func(q *queuetest.Queue, n int, want bool) {
			t.Helper()
			if opened, err := q.OpenWave(t.Context(), id, n, "x"); err != nil || opened != want {
				t.Fatalf("wave %d is opened: %t, %v: want %t", n, opened, err, want)
			}
		}
		first, hosts := begin(t, q)
		if hosts != "0000 " {
			t.Fatalf("in wave 1: %s", hosts)
		}
		wantState(t, q, jobs.NewID(id, "fw0001"), jobs.Held, "")
		look(false)
		openWave(q, 2, false)
		step(t, q, "1", 0, ended(first[0], jobs.Succeeded))
		openWave(q, 2, false) // nobody has noted that the first is over
		look(true)
		openWave(q, 3, false) // it is not its turn yet
		if _, err := q.Pause(t.Context(), id, "alice"); err != nil {
			t.Fatal(err)
		}
		openWave(q, 2, false)
		if _, err := q.Resume(t.Context(), id, "alice"); err != nil {
			t.Fatal(err)
		}
		if list, hosts := begin(t, q); len(list) > 0 {
			t.Fatalf("a resume begins %s of a wave that is not open", hosts)
		}
		openWave(q, 2, true)
		openWave(other, 2, false)
		second, hosts := begin(t, q)
		if len(second) != 3 || strings.Contains(hosts, "0004") || strings.Contains(hosts, "0005") {
			t.Fatalf("in wave 2: %s", hosts)
		}
		if _, r := rollout(t, q, id); r.Wave != 2 || !r.Over.IsZero() || r.Begun != 3 {
			t.Errorf("%+v", r)
		}
		openWave(q, 3, false)
		for _, g := range second {
			step(t, q, "1", 0, ended(g, jobs.Failed))
		}
		look(true)
		openWave(other, 3, true)
		if _, r := rollout(t, q, id); r.Failed != 3 || r.Accepted != 3 {
			t.Errorf("%+v: want 3 accepted failures", r)
		}
		third, _ := begin(t, q)
		for _, g := range third {
			step(t, q, "1", 0, ended(g, jobs.Succeeded))
		}
		if task, _ := rollout(t, q, id); task.State != jobs.TaskEnded {
			t.Errorf("it is %s", task.State)
		}
	})
}

// A server dies between the mark that a wave is open and the move of its jobs, and another
// completes it.
func TestAWaveThatWasOpenedHalfWayIsOpened(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, dying := open(t, w, "1"), open(t, w, "")
		id := rolling(t, q, inWaves(1, 5), 6)
		first, _ := begin(t, q)
		step(t, q, "1", 0, ended(first[0], jobs.Succeeded))
		if _, err := q.LookAtWaves(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		n := 0
		dying.BeforeScript(string(id), func(int) error {
			if n++; n == 2 {
				return errors.New("killed")
			}
			return nil
		})
		if opened, err := dying.OpenWave(t.Context(), id, 2, "x"); !opened || err == nil {
			t.Fatalf("it is opened: %t, %v: want that it breaks off", opened, err)
		}
		if list, _ := begin(t, q); len(list) > 0 {
			t.Fatalf("%d begin, and nobody has moved them", len(list))
		}
		if over, err := q.LookAtWaves(t.Context(), id); err != nil || !over.IsZero() {
			t.Fatalf("look: %s, %v", over, err)
		}
		if list, hosts := begin(t, q); len(list) != 5 {
			t.Errorf("then %s begin, want all five", hosts)
		}
	})
}

// A job expires so long after its wave was opened, not after the submit; and a stop costs it no
// time.
func TestWaitingForAWaveLetsNothingExpire(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		if w.pass == nil {
			return
		}
		q := open(t, w, "1")
		id := rolling(t, q, inWaves(1, 2), 3)
		first, _ := begin(t, q)
		step(t, q, "1", 0, ended(first[0], jobs.Succeeded))
		w.pass(9 * time.Hour)
		if _, err := q.LookAtWaves(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		w.pass(9 * time.Hour)
		if opened, err := q.OpenWave(t.Context(), id, 2, "x"); err != nil || !opened {
			t.Fatal(opened, err)
		}
		w.pass(7 * time.Hour)
		if _, err := q.StopTask(t.Context(), id, "alice"); err != nil {
			t.Fatal(err)
		}
		w.pass(3 * time.Hour)
		step(t, q, "1", 2) // puts them aside
		if _, err := q.GoOn(t.Context(), id, nil, "alice"); err != nil {
			t.Fatal(err)
		}
		if list, hosts := begin(t, q); len(list) != 2 {
			t.Errorf("%s begin, want two", hosts)
		}
	})
}

func TestACancelEndsTheWavesAhead(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := rolling(t, q, inWaves(1, 450), 451)
		if c, err := q.Cancel(t.Context(), id, "alice"); err != nil || c.Ended != 451 {
			t.Errorf("cancel: %+v, %v", c, err)
		}
		if task, _ := rollout(t, q, id); task.State != jobs.TaskEnded {
			t.Errorf("it is %s", task.State)
		}
	})
}
