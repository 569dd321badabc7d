package queue_test

import (
	"errors"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/testkit/queuetest"
	"muster/windows"
)

// lead asks for the duty of schedules.
func lead(t *testing.T, q *queuetest.Queue, who string, held int64) hub.Term {
	t.Helper()
	term, err := q.Lead(t.Context(), hub.DutySchedules, who, held)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func TestOneHasADuty(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		if list, err := q.Leaders(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("before anybody asked: %v, %v", list, err)
		}
		a := lead(t, q, "a one", 0)
		if !a.Mine || a.Who != "a one" || a.Number < time.Now().Add(-time.Hour).UnixMicro() {
			t.Fatalf("the first to ask gets %+v", a)
		}
		if b := lead(t, q, "b", 0); b.Mine || b.Number != a.Number || b.Who != "a one" {
			t.Errorf("the second to ask gets %+v, the first had %+v", b, a)
		}
		if again := lead(t, q, "a one", a.Number); again != a {
			t.Errorf("who has it keeps it as %+v, not as %+v", again, a)
		}
		// A server of the same name that started again is another one.
		if twin := lead(t, q, "a one", 0); twin.Mine {
			t.Errorf("a twin gets %+v", twin)
		}
		if err := q.Leave(t.Context(), hub.DutySchedules, a.Number-1); err != nil {
			t.Fatal(err)
		}
		if list, err := q.Leaders(t.Context()); err != nil || len(list) != 1 ||
			list[0] != (jobs.Duty{Duty: hub.DutySchedules, Server: "a one", Term: a.Number}) {
			t.Errorf("after a stranger gave it back: %v, %v", list, err)
		}
		if err := q.Leave(t.Context(), hub.DutySchedules, a.Number); err != nil {
			t.Fatal(err)
		}
		if list, err := q.Leaders(t.Context()); err != nil || len(list) != 1 || list[0].Server != "" {
			t.Errorf("after it was given back: %v, %v", list, err)
		}
		b := lead(t, q, "b", a.Number)
		if !b.Mine || b.Number <= a.Number {
			t.Errorf("the next term is %+v, after %+v", b, a)
		}
		other, err := q.Lead(t.Context(), "tend", "a one", 0)
		if err != nil || !other.Mine {
			t.Errorf("another duty: %+v, %v", other, err)
		}
	})
}

func TestALeaseEnds(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		if w.pass == nil {
			return
		}
		q := open(t, w, "")
		a := lead(t, q, "a", 0)
		w.pass(hub.Lease - time.Millisecond)
		if b := lead(t, q, "b", 0); b.Mine {
			t.Errorf("before the lease ends: %+v", b)
		}
		w.pass(2 * time.Millisecond)
		// A server that is late gets a new term.
		again := lead(t, q, "a", a.Number)
		if !again.Mine || again.Number <= a.Number {
			t.Errorf("the late one gets %+v, and had %+v", again, a)
		}
		if err := q.Leave(t.Context(), hub.DutySchedules, again.Number); err != nil {
			t.Fatal(err)
		}
		w.pass(-time.Hour)
		if b := lead(t, q, "b", 0); !b.Mine || b.Number <= again.Number {
			t.Errorf("after the clock went back: %+v after %+v", b, again)
		}
	})
}

func entry(name string) windows.Entry {
	return windows.Entry{Name: name, Cron: "@every 1s", Zone: "UTC", Enabled: true,
		Missed: windows.MissedAll, Request: windows.Request{Runbook: "exec", On: "all"}}
}

func at(seconds int64) jobs.Time { return jobs.Time{Time: time.Unix(1_800_000_000+seconds, 0).UTC()} }

// find reads a schedule that must be there.
func find(t *testing.T, q *queuetest.Queue, name string) hub.Schedule {
	t.Helper()
	s, err := q.Schedule(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchedulesAreChangedByOneAtATime(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		stamp0, now, err := q.ScheduleStamp(t.Context())
		if err != nil || stamp0 != "" || now.IsZero() {
			t.Fatalf("stamp %q, %s, %v", stamp0, now, err)
		}
		if _, err := q.Schedule(t.Context(), "x"); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("what is not there: %v", err)
		}
		def := jobs.Schedule{Entry: entry("x"), Version: 1, By: "alice", Since: at(0)}
		if err := q.ChangeSchedule(t.Context(), hub.Schedule{}, def); err != nil {
			t.Fatal(err)
		}
		if err := q.ChangeSchedule(t.Context(), hub.Schedule{}, def); !errors.Is(err, queue.ErrStale) {
			t.Errorf("adding it twice: %v", err)
		}
		was := find(t, q, "x")
		if was.By != "alice" || !was.Ticks.Last.Equal(at(0).Time) || was.Forgotten() {
			t.Errorf("it reads %+v", was)
		}
		def.By = "bob"
		if err := q.ChangeSchedule(t.Context(), was, def); err != nil {
			t.Fatal(err)
		}
		if err := q.ChangeSchedule(t.Context(), was, def); !errors.Is(err, queue.ErrStale) {
			t.Errorf("a change of what is no more: %v", err)
		}
		if err := q.RemoveSchedule(t.Context(), was); !errors.Is(err, queue.ErrStale) {
			t.Errorf("a removal of what is no more: %v", err)
		}
		stamp1, _, err := q.ScheduleStamp(t.Context())
		if err != nil || stamp1 != "2" {
			t.Errorf("stamp %q after two changes, %v", stamp1, err)
		}
		if list, err := q.Schedules(t.Context()); err != nil || len(list) != 1 || list[0].By != "bob" {
			t.Errorf("the list: %+v, %v", list, err)
		}
		if err := q.RemoveSchedule(t.Context(), find(t, q, "x")); err != nil {
			t.Fatal(err)
		}
		if list, err := q.Schedules(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("after the removal: %+v, %v", list, err)
		}
	})
}

func TestSchedulesAreChangedTogetherOrNotAtAll(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		def := func(name string) *jobs.Schedule {
			return &jobs.Schedule{Entry: entry(name), Version: 1, Since: at(0)}
		}
		list := []hub.ScheduleChange{{To: def("a")}, {To: def("b")}}
		if err := q.ChangeSchedules(t.Context(), "", list); err != nil {
			t.Fatal(err)
		}
		late := []hub.ScheduleChange{{To: def("c")}}
		if err := q.ChangeSchedules(t.Context(), "", late); !errors.Is(err, queue.ErrStale) {
			t.Errorf("with a stamp of before: %v", err)
		}
		a := find(t, q, "a")
		// The second exists already, so the first is not removed.
		list = []hub.ScheduleChange{{Was: a}, {To: def("b")}, {To: def("d")}}
		if err := q.ChangeSchedules(t.Context(), "1", list); !errors.Is(err, queue.ErrStale) {
			t.Errorf("one of three is stale: %v", err)
		}
		if all, err := q.Schedules(t.Context()); err != nil || len(all) != 2 {
			t.Errorf("%v: there is %+v", err, all)
		}
		list[1] = hub.ScheduleChange{Was: find(t, q, "b"), To: def("b")}
		if err := q.ChangeSchedules(t.Context(), "1", list); err != nil {
			t.Error(err)
		}
		if all, err := q.Schedules(t.Context()); err != nil || len(all) != 2 || all[1].Name != "d" {
			t.Errorf("%v: there is %+v", err, all)
		}
	})
}

func TestOnlyTheLeaderTicks(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		def := jobs.Schedule{Entry: entry("x"), Since: at(0)}
		if err := q.ChangeSchedule(t.Context(), hub.Schedule{}, def); err != nil {
			t.Fatal(err)
		}
		was := find(t, q, "x")
		to := was.Ticks
		to.Pending = []jobs.Time{at(1)}
		tick := func(term int64, want error) hub.Schedule {
			t.Helper()
			s, err := q.Tick(t.Context(), term, was, to)
			if !errors.Is(err, want) {
				t.Errorf("a tick of term %d: %v, want %v", term, err, want)
			}
			return s
		}
		tick(1, queue.ErrDeposed)
		a := lead(t, q, "a", 0)
		tick(a.Number-1, queue.ErrDeposed)
		is := tick(a.Number, nil)
		tick(a.Number, queue.ErrStale)
		if read := find(t, q, "x"); len(read.Ticks.Pending) != 1 || read.Ticks.Term != a.Number {
			t.Errorf("it reads %+v", read.Ticks)
		}
		was = is
		tick(a.Number, nil)
		if err := q.Leave(t.Context(), hub.DutySchedules, a.Number); err != nil {
			t.Fatal(err)
		}
		b := lead(t, q, "b", 0)
		was = find(t, q, "x")
		tick(a.Number, queue.ErrDeposed)
		if err := q.RemoveSchedule(t.Context(), was); err != nil {
			t.Fatal(err)
		}
		tick(b.Number, queue.ErrNotFound)
	})
}

func TestATickThatWasSubmittedInPartIsGivenUp(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		s := spec()
		s.Schedule, s.Tick = "x", at(1)
		task, hosts := newTask(s, 3)
		cut := errors.New("cut")
		q.BeforeScript(string(task.ID), func(n int) error {
			if n > 1 { // the commit
				return cut
			}
			return nil
		})
		if err := q.Submit(t.Context(), task, hosts, nil); !errors.Is(err, cut) {
			t.Fatalf("the submit was not cut: %v", err)
		}
		q = open(t, w, "")
		of := s.Terms
		of.Tick = at(2)
		if done, err := q.Abandon(t.Context(), task.ID, of, "gone"); err != nil || done {
			t.Errorf("another tick's: %t, %v", done, err)
		}
		if done, err := q.Abandon(t.Context(), task.ID, s.Terms, "gone"); err != nil || !done {
			t.Errorf("it was given up: %t, %v", done, err)
		}
		if err := q.Submit(t.Context(), task, hosts, nil); !errors.Is(err, queue.ErrCancelled) {
			t.Errorf("whoever goes on with it: %v", err)
		}
		info, err := q.Task(t.Context(), task.ID)
		if err != nil || info.Cancelled == "" || info.Schedule != "x" || !info.Tick.Equal(at(1).Time) {
			t.Errorf("it reads %+v, %v", info, err)
		}

		whole, hosts := newTask(s, 3)
		if err := q.Submit(t.Context(), whole, hosts, nil); err != nil {
			t.Fatal(err)
		}
		if done, err := q.Abandon(t.Context(), whole.ID, s.Terms, "gone"); err != nil || done {
			t.Errorf("a whole one: %t, %v", done, err)
		}
	})
}
