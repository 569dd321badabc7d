package queue_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/redistest"
)

// A job that was cancelled while it ran says so until it has been stopped.
func TestAJobSaysThatItIsBeingStopped(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 2)
		a, b := one(t, step(t, q, "1", 1)), one(t, step(t, q, "2", 1))
		says := func(g jobs.Grant, want string) {
			t.Helper()
			if j := info(t, q, g.Job); j.State != jobs.Running || j.Why != want {
				t.Errorf("the %s job says %q, want %q", j.State, j.Why, want)
			}
		}
		if _, err := q.CancelJobs(t.Context(), []jobs.ID{a.Job}, "cancelled by bob: oops"); err != nil {
			t.Fatal(err)
		}
		says(a, "it is being stopped: cancelled by bob: oops")
		says(b, "")
		if _, err := q.Cancel(t.Context(), id, "cancelled by alice"); err != nil {
			t.Fatal(err)
		}
		says(a, "it is being stopped: cancelled by bob: oops")
		says(b, "it is being stopped: cancelled by alice")
	})
}

// sinceWhen matches an instant in the words of a job.
var sinceWhen = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

// A job that does not run says why, in words.
func TestAJobSaysWhyItDoesNotRun(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 8, 1)
		why := func(id jobs.ID, s jobs.State, want string) {
			t.Helper()
			if j := info(t, q, id); j.State != s || sinceWhen.ReplaceAllString(j.Why, "SINCE") != want {
				t.Errorf("the %s job says %q, want %s, %q", j.State, j.Why, s, want)
			}
		}
		order := func(f func() (jobs.Switched, error)) {
			t.Helper()
			if _, err := f(); err != nil {
				t.Fatal(err)
			}
		}
		s := disruptive("v1")
		first := guarded(t, q, s, 0, 1)
		a := one(t, step(t, q, "1", 1))
		pair, site := jobs.NewID(guarded(t, q, s, 1, 1), "fw0001"), guarded(t, q, s, 3, 1)
		host := jobs.NewID(submit(t, q, spec(), 1), "fw0000")
		drain(t, q, "2", 8)
		why(a.Job, jobs.Running, "")
		why(pair, jobs.Blocked, "group pair-0 is held by job "+string(a.Job)+" since SINCE")
		why(jobs.NewID(site, "fw0003"), jobs.Blocked, "limit site/zrh1: 1 of 1 places are taken")
		why(host, jobs.Blocked, "its host is held by job "+string(a.Job)+" since SINCE")

		// A person who frees the group must learn that the job would not begin then either.
		order(func() (jobs.Switched, error) { return q.Halt(t.Context(), "dan: stop") })
		why(pair, jobs.Blocked, "all is halted: dan: stop; group pair-0 is held by job "+string(a.Job)+" since SINCE")
		order(func() (jobs.Switched, error) { return q.Lift(t.Context(), "dan: go on") })

		step(t, q, "1", 0, jobs.Result{Job: a.Job, Token: a.Token, Kind: jobs.KindDefer, Release: true,
			Until: jobs.MicrosOf(time.Now().Add(time.Hour)), Error: "outside its window: it opens at 02:00"})
		why(a.Job, jobs.Deferred, "outside its window: it opens at 02:00")
		order(func() (jobs.Switched, error) { return q.Pause(t.Context(), first, "alice: wait") })

		s.Disruptive, s.Inventory = false, "v1"
		task, hosts := newTask(s, 1)
		task.At = jobs.MicrosOf(time.Now().Add(time.Hour))
		if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
			t.Fatal(err)
		}
		later := jobs.NewID(task.ID, "fw0000")
		why(later, jobs.Queued, "")
		order(func() (jobs.Switched, error) { return q.PauseZone(t.Context(), zone, "bob: works") })
		order(func() (jobs.Switched, error) { return q.PauseCustomer(t.Context(), "acme", "carol: no") })
		order(func() (jobs.Switched, error) { return q.Halt(t.Context(), "dan: stop") })
		why(later, jobs.Queued, "all is halted: dan: stop; its zone is paused: bob: works; its customer is paused: carol: no")
		order(func() (jobs.Switched, error) { return q.Pause(t.Context(), task.ID, "erin: mine") })
		why(a.Job, jobs.Deferred, "all is halted: dan: stop; its zone is paused: bob: works; "+
			"its task is paused: alice: wait; its customer is paused: carol: no; outside its window: it opens at 02:00")
		why(later, jobs.Paused, "all is halted: dan: stop; its zone is paused: bob: works; its task is paused: erin: mine; "+
			"its customer is paused: carol: no")
	})
}

// A job that waits for something that a job with a doubtful end left behind says since when, and
// what to do.
func TestAJobSaysWhatALostCancelLeftBehind(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 2, -1)
		guarded(t, q, disruptive("v-1"), 0, 1)
		g := one(t, step(t, q, "1", 1))
		end := ended(g, jobs.Unknown)
		end.Error, end.KeepLock = "cancel requested, still running: bob: no", true
		step(t, q, "1", 0, end)
		host := jobs.NewID(submit(t, q, spec(), 1), "fw0000")
		pair := jobs.NewID(guarded(t, q, disruptive("v-1"), 1, 1), "fw0001")
		drain(t, q, "2", 8)
		for id, want := range map[jobs.ID]string{
			host: "its host stays locked until SINCE: job " + string(g.Job) + " ended unknown at SINCE, and " +
				"something of it may still act there (" + end.Error + "); look at the host; once nothing runs there, " +
				"`muster hosts release HOST --reason …` gives it back",
			pair: "group pair-0 is frozen since SINCE by job " + string(g.Job) + ": " + end.Error +
				"; look at its hosts, then `muster group clear pair-0 --reason '…'`",
		} {
			if j := info(t, q, id); sinceWhen.ReplaceAllString(j.Why, "SINCE") != want {
				t.Errorf("the %s job says %q, want %q", j.State, j.Why, want)
			}
		}
	})
}

// A job that gave its worker up says what it waits for, in the words of its worker: for instance
// that its host was cut off in the middle of a step, and will be asked. Those words are gone once
// the job runs again.
func TestAJobSaysWhyItsHostWillBeAsked(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 2)
		for kind, state := range map[jobs.Kind]jobs.State{jobs.KindWait: jobs.Waiting, jobs.KindVerify: jobs.Verify} {
			g := one(t, step(t, q, "1", 1))
			const cut = "step cmd: the connection ended; it may be at work, the host will be asked"
			wait := jobs.Result{Job: g.Job, Token: g.Token, Kind: kind, Step: 1, Error: cut}
			step(t, q, "1", 0, wait)
			if j := info(t, q, g.Job); j.State != state || j.Why != cut {
				t.Errorf("the %s job says %q, want %s, %q", j.State, j.Why, state, cut)
			}
			for _, again := range step(t, q, "1", 8).Jobs {
				if j := info(t, q, again.Job); j.Why != "" {
					t.Errorf("the %s job still says %q", j.State, j.Why)
				}
				end := ended(again, jobs.Succeeded)
				step(t, q, "1", 0, end)
				if again.Job != g.Job {
					submit(t, q, spec(), 1)
				}
			}
		}
	})
}

// A zone that waits for history names no end of its freeze, neither before the nominal one nor
// after it; and it says so if history is away.
func TestAFreezeThatWaitsForHistoryNamesNoEnd(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	q := open(t, world{cfg: s.Config()}, "")
	id := jobs.NewID(submit(t, q, spec(), 1), "fw0000")
	says := func(want string) {
		t.Helper()
		if j := info(t, q, id); !strings.HasPrefix(j.Why, want) {
			t.Errorf("the job says %q, want %q", j.Why, want)
		}
	}
	const at, asked = "muster:{default}:zone", "its zone is frozen until history was asked: it was " +
		"started anew; history is asked first what has ended since"
	s.Do(t, "HSET", at, "why", "it was started anew", "owed", "1760000000000000 it was started anew")
	says(asked)
	s.Do(t, "HSET", at, "frozen", "4000000000000000")
	says(asked)
	away := jobs.HistoryAway{Since: jobs.TimeOf(1_760_000_000_000_000), Note: "no such host"}
	if err := q.BeginHistoryAway(t.Context(), away); err != nil {
		t.Fatal(err)
	}
	says(asked + "; history is away since " + away.Since.String() + " (no such host); `muster nodes thaw")
	s.Do(t, "HDEL", at, "owed")
	says("its zone is frozen until 2096-")
}
