package queue_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
)

// retryOf returns a task that does jobs of another again, and its hosts.
func retryOf(of jobs.TaskID, who string, hosts ...string) (jobs.Task, map[string][]string) {
	s := spec()
	s.RetryOf, s.Operator = of, who
	task, _ := newTask(s, len(hosts))
	return task, map[string][]string{zone: hosts}
}

// failing submits a task of so many hosts whose jobs all fail.
func failing(t *testing.T, q *queuetest.Queue, hosts int) jobs.TaskID {
	t.Helper()
	id := submit(t, q, spec(), hosts)
	for range hosts {
		step(t, q, "1", 0, ended(one(t, step(t, q, "1", 1)), jobs.Failed))
	}
	return id
}

// retries lists, in words, the tasks that do hosts of a task again.
func retries(t *testing.T, q *queuetest.Queue, of jobs.TaskID, hosts ...string) string {
	t.Helper()
	list, err := q.Retries(t.Context(), of, "", hosts)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, a := range list {
		text += fmt.Sprint(a.Operator, a.Hosts, " open ", a.Open)
		for _, o := range jobs.Outcomes() {
			if n := a.Outcomes[o]; n > 0 {
				text += fmt.Sprint(" ", o, " ", n)
			}
		}
		if a.Coming {
			text += " coming"
		}
		text += "; "
	}
	return text
}

func TestAJobIsDoneAgainByOneTask(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		ctx := t.Context()
		of := failing(t, q, 4)
		wants := func(want string) {
			t.Helper()
			if got := retries(t, q, of, "fw0000", "fw0001", "fw0002", "fw0003"); got != want {
				t.Errorf("retries are %q, want %q", got, want)
			}
		}
		wants("")
		try := func(want error, task jobs.Task, hosts map[string][]string) {
			t.Helper()
			if err := q.Submit(ctx, task, hosts, nil); !errors.Is(err, want) {
				t.Errorf("a retry by %s of %v: %v, want %v", task.Spec.Operator, hosts, err, want)
			}
		}
		first, two := retryOf(of, "alice", "fw0000", "fw0001")
		try(nil, first, two)
		try(nil, first, two) // the same submit again
		wants("alice[fw0000 fw0001] open 2; ")
		late, three := retryOf(of, "bob", "fw0001", "fw0002", "fw0003")
		try(queue.ErrRetried, late, three)
		if got, err := q.Task(ctx, late.ID); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("something of it was put: %+v, %v", got, err)
		}
		wants("alice[fw0000 fw0001] open 2; ")
		// Its other hosts are free.
		other, rest := retryOf(of, "bob", "fw0002")
		try(nil, other, rest)
		step(t, q, "1", 0, ended(one(t, step(t, q, "1", 1)), jobs.Unreachable))
		wants("alice[fw0000 fw0001] open 1 unreachable 1; bob[fw0002] open 1; ")
		late.Again = true
		try(nil, late, three)
		wants("alice[fw0000] open 0 unreachable 1; bob[fw0001 fw0002 fw0003] open 3; ")
		// A retry of the retry is another matter.
		next, same := retryOf(first.ID, "carol", "fw0000")
		try(nil, next, same)
	})
}

// A retry without a job that began does nothing again.
func TestARetryThatNeverBeganIsNone(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		ctx := t.Context()
		of := failing(t, q, 2)
		both := []string{"fw0000", "fw0001"}
		cancelled := func(who string) {
			t.Helper()
			task, hosts := retryOf(of, who, both...)
			if err := q.Submit(ctx, task, hosts, nil); err != nil {
				t.Fatal(err)
			}
			var begun []jobs.Result
			if who == "bob" {
				begun = append(begun, ended(one(t, step(t, q, "1", 1)), jobs.Cancelled))
			}
			if _, err := q.Cancel(ctx, task.ID, "no"); err != nil {
				t.Fatal(err)
			}
			step(t, q, "1", 0, begun...)
		}
		cancelled("alice")
		if got := retries(t, q, of, both...); got != "" {
			t.Errorf("of a task that was cancelled before it began: %q", got)
		}
		cancelled("bob")
		if got := retries(t, q, of, both...); got != "bob[fw0000] open 0 cancelled 1; " {
			t.Errorf("of a task that was cancelled: %q", got)
		}
		third, rest := retryOf(of, "carol", "fw0001")
		if err := q.Submit(ctx, third, rest, nil); err != nil {
			t.Fatal(err)
		}
		step(t, q, "1", 0, ended(one(t, step(t, q, "1", 1)), jobs.Succeeded))
		for _, where := range []string{zone, ""} {
			if got := retries(t, q, of, "fw0001"); where == zone && got != "carol[fw0001] open 0 succeeded 1; " ||
				where == "" && got != "" {
				t.Errorf("before Redis forgets it in %q: %q", where, got)
			}
			if err := q.ForgetTask(ctx, where, third.ID); err != nil {
				t.Fatal(err)
			}
		}
		fourth, rest := retryOf(of, "dave", "fw0001")
		if err := q.Submit(ctx, fourth, rest, nil); err != nil {
			t.Errorf("after Redis has forgotten the other: %v", err)
		}
	})
}

// Jobs that ended a day ago are forgotten. The retry counts all the same.
func TestARetryOfTwoDaysAgoIsOne(t *testing.T) {
	t.Parallel()
	q, now, pass := timed(t)
	old := spec()
	old.Created, old.Expire = jobs.MicrosOf(*now), 1000*time.Hour
	task, hosts := newTask(old, 2)
	if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
		t.Fatal(err)
	}
	step(t, q, "1", 0, ended(one(t, step(t, q, "1", 1)), jobs.Failed))
	again, first := retryOf(task.ID, "alice", "fw0000")
	again.Spec.Created = jobs.MicrosOf(*now)
	if err := q.Submit(t.Context(), again, first, nil); err != nil {
		t.Fatal(err)
	}
	var left []jobs.Grant
	for range 2 {
		if g := one(t, step(t, q, "1", 1)); g.Job.Task() == again.ID {
			step(t, q, "1", 0, ended(g, jobs.Succeeded))
		} else {
			left = append(left, g)
		}
	}
	step(t, q, "1", 0, jobs.Result{Job: left[0].Job, Token: left[0].Token, Kind: jobs.KindBack})
	pass(48 * time.Hour)
	if got := retries(t, q, task.ID, "fw0000"); got != "alice[fw0000] open 0; " {
		t.Errorf("two days later: %q", got)
	}
}

// A server may die at any moment of a submit. Its claims are free again after a while, unless the
// task is certain to be committed.
func TestAServerThatDiesInARetry(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		ctx := t.Context()
		of := failing(t, q, 3)
		dies := errors.New("it died")
		// dying submits a retry with a server that dies before the n-th script.
		dying := func(n int, who, host string) (jobs.Task, map[string][]string) {
			t.Helper()
			server := open(t, w, "")
			task, hosts := retryOf(of, who, host)
			server.BeforeScript(string(task.ID), func(i int) error {
				if i >= n {
					return dies
				}
				return nil
			})
			if err := server.Submit(ctx, task, hosts, nil); !errors.Is(err, dies) {
				t.Fatalf("before script %d: %v", n, err)
			}
			return task, hosts
		}
		submits := func(want error, task jobs.Task, hosts map[string][]string) {
			t.Helper()
			if err := q.Submit(ctx, task, hosts, nil); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", task.Spec.Operator, err, want)
			}
		}
		claimed, first := dying(1, "alice", "fw0000") // no job is put
		if got := retries(t, q, of, "fw0000"); got != "alice[fw0000] open 1 coming; " {
			t.Errorf("after its claim: %q", got)
		}
		other, _ := retryOf(of, "bob", "fw0000")
		submits(queue.ErrRetried, other, first)
		other.Again = true
		submits(queue.ErrRetried, other, first)
		other.Again = false
		if err := q.AgeClaims(ctx, of, time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := retries(t, q, of, "fw0000"); got != "" {
			t.Errorf("a minute later: %q", got)
		}
		submits(nil, other, first)
		submits(queue.ErrRetried, claimed, first)

		sealed, second := dying(2, "carol", "fw0001") // all jobs are put, and nothing is committed
		if err := q.AgeClaims(ctx, of, time.Hour); err != nil {
			t.Fatal(err)
		}
		later, _ := retryOf(of, "dave", "fw0001")
		submits(queue.ErrRetried, later, second)
		if err := q.Tend(ctx, zone); err != nil {
			t.Fatal(err)
		}
		if got, err := q.Task(ctx, sealed.ID); err != nil || got.State != jobs.TaskQueued {
			t.Errorf("nobody went on with it: %+v, %v", got, err)
		}

		completed, third := dying(1, "erin", "fw0002")
		submits(nil, completed, third) // the client repeats it at another server
		if got := retries(t, q, of, "fw0002"); got != "erin[fw0002] open 1; " {
			t.Errorf("completed: %q", got)
		}
	})
}

// A submit that takes longer than its claim holds loses its hosts, and then none of its jobs runs.
func TestASlowRetryLosesItsHosts(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, ctx := open(t, w, "1"), t.Context()
		of := failing(t, q, 2)
		slow, both := retryOf(of, "alice", "fw0000", "fw0001")
		fast, one := retryOf(of, "bob", "fw0001")
		err := q.Submit(ctx, slow, both, func(int) {
			if err := q.AgeClaims(ctx, of, time.Minute); err != nil {
				t.Error(err)
			}
			if err := q.Submit(ctx, fast, one, nil); err != nil {
				t.Error(err)
			}
		})
		if !errors.Is(err, queue.ErrRetried) {
			t.Errorf("the slow one: %v", err)
		}
		if got, err := q.Task(ctx, slow.ID); err != nil || got.State != jobs.TaskSubmitting {
			t.Errorf("the slow one is %+v, %v", got, err)
		}
		if got := retries(t, q, of, "fw0000", "fw0001"); got != "bob[fw0001] open 1; " {
			t.Errorf("retries: %q", got)
		}
	})
}

// A clock of Redis that goes back does not prolong a claim.
func TestAClaimOfAnotherTimeKeepsNobodyOut(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, ctx := open(t, w, "1"), t.Context()
		of := failing(t, q, 1)
		task, hosts := retryOf(of, "alice", "fw0000")
		err := q.Submit(ctx, task, hosts, func(int) {
			if got := retries(t, q, of, "fw0000"); got != "alice[fw0000] open 1 coming; " {
				t.Errorf("while it is submitted: %q", got)
			}
			if err := q.AgeClaims(ctx, of, -time.Hour); err != nil {
				t.Error(err)
			}
			if got := retries(t, q, of, "fw0000"); got != "" {
				t.Errorf("when the clock went back by an hour: %q", got)
			}
		})
		if got := retries(t, q, of, "fw0000"); err != nil || got != "alice[fw0000] open 1; " {
			t.Errorf("submitted, %v: %q", err, got)
		}
	})
}

// Many retry parts of one task at once. Each host is done again once.
func TestRetriesAtTheSameMoment(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		const hosts, people = 12, 6
		of := failing(t, q, hosts)
		servers := []*queuetest.Queue{open(t, w, ""), open(t, w, "")}
		var all sync.WaitGroup
		for i := range people {
			task, names := retryOf(of, fmt.Sprint("p", i), "x")
			names[zone] = nil
			for n := range hosts {
				if (n+i)%3 != 0 { // any two of them have some in common
					names[zone] = append(names[zone], fmt.Sprintf("fw%04d", n))
				}
			}
			task.Total = len(names[zone])
			all.Go(func() {
				err := servers[i%2].Submit(t.Context(), task, names, nil)
				if err != nil && !errors.Is(err, queue.ErrRetried) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		did, tasks := map[string]int{}, map[jobs.TaskID]bool{}
		for r := step(t, q, "1", 1); len(r.Jobs) > 0; {
			g := one(t, r)
			did[g.Job.Host()]++
			tasks[g.Job.Task()] = true
			r = step(t, q, "1", 1, ended(g, jobs.Succeeded))
		}
		for host, n := range did {
			if n != 1 {
				t.Errorf("%s was done again %d times", host, n)
			}
		}
		if len(did) < hosts/2 {
			t.Errorf("%d hosts were done again, by %d tasks", len(did), len(tasks))
		}
	})
}
