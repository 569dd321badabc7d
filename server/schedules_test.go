package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/scripts"
	"muster/server"
	"muster/server/duties"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/windows"
)

// clocked is a queue whose schedules have a clock of their own.
type clocked struct {
	*queuetest.Queue
	now time.Time
}

func (c *clocked) ScheduleStamp(ctx context.Context) (string, time.Time, error) {
	stamp, _, err := c.Queue.ScheduleStamp(ctx)
	return stamp, c.now, err
}

// fired is one schedule and its leader.
type fired struct {
	*clocked
	t      testing.TB
	cfg    queue.Config
	server *server.Server
	firing *duties.Schedules
	term   int64 // its number
	log    *logBook
}

// newFired makes a schedule that is due each second from now on.
func newFired(t testing.TB, change func(*windows.Entry)) *fired {
	t.Helper()
	_, cfg := redistest.StartMini(t)
	q, err := queuetest.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	f := &fired{clocked: &clocked{q, time.Now().UTC().Truncate(time.Second)}, t: t, cfg: cfg, log: &logBook{}}
	e := windows.Entry{Name: "x", Cron: "@every 1s", Zone: "UTC", Enabled: true, Missed: windows.MissedAll,
		Overlap: windows.OverlapQueue,
		Request: windows.Request{Runbook: "exec", On: "all", Args: map[string]string{"cmd": "true"}}}
	if change != nil {
		change(&e)
	}
	err = q.ChangeSchedule(t.Context(), hub.Schedule{},
		jobs.Schedule{Entry: e, By: "alice", Since: jobs.Time{Time: f.now}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := scripts.NewCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.DefaultConfig(), server.Deps{Queue: stores(f), Catalog: c,
		Inventory: given(fixed(hosts())), Log: hclog.New(&hclog.LoggerOptions{Output: f.log})})
	if err == nil {
		err = srv.Stock().Reload(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	term, err := q.Lead(t.Context(), hub.DutySchedules, "me", 0)
	if err != nil || !term.Mine {
		t.Fatal(term, err)
	}
	f.server, f.firing, f.term = srv, server.NewSchedules(srv, term.Number), term.Number
	return f
}

// after lets time pass and has a look at what is due then.
func (f *fired) after(d time.Duration) jobs.Ticking {
	f.t.Helper()
	f.now = f.now.Add(d)
	// The lease goes by the clock of Redis, and setting up took its time.
	if _, err := f.Lead(f.t.Context(), hub.DutySchedules, "me", f.term); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.firing.RunOnce(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	s, err := f.Schedule(f.t.Context(), "x")
	if err != nil {
		f.t.Fatal(err)
	}
	if len(s.Ticks.Pending) > 0 {
		f.t.Errorf("after the round there wait %v", s.Ticks.Pending)
	}
	return s.Ticks
}

func TestATickWaitsForNoTaskThatIsUnfinished(t *testing.T) {
	t.Parallel()
	f := newFired(t, func(e *windows.Entry) { e.Overlap = windows.OverlapForbid })
	first := f.after(time.Second)
	if first.Refused || first.Task == "" || !first.Tick.Equal(f.now) {
		t.Fatalf("the first tick: %+v", first)
	}
	task, err := f.Task(t.Context(), first.Task)
	if err != nil || task.Operator != "alice" || task.Schedule != "x" || !task.Tick.Equal(f.now) {
		t.Errorf("its task: %+v, %v", task, err)
	}
	second := f.after(time.Second)
	if !second.Refused || !strings.Contains(second.Result, "overlap: forbid") || second.Task != first.Task ||
		!second.Tick.Equal(f.now) {
		t.Errorf("the second: %+v", second)
	}
	if _, err := f.Cancel(t.Context(), first.Task, "enough"); err != nil {
		t.Fatal(err)
	}
	if third := f.after(time.Second); third.Refused || third.Task == first.Task {
		t.Errorf("the third: %+v", third)
	}
	// The whole of it is in the log.
	if text := f.log.String(); strings.Count(text, "schedule fired") != 2 ||
		strings.Count(text, "has no task") != 1 {
		t.Errorf("the log: %s", text)
	}
}

func TestATickThatIsRefusedIsDealtWith(t *testing.T) {
	t.Parallel()
	f := newFired(t, func(e *windows.Entry) { e.On, e.Runbook = "customer=nobody", "nosuch" })
	if got := f.after(time.Second); !got.Refused || got.Task != "" || !got.Next.Equal(f.now.Add(time.Second)) ||
		!strings.Contains(got.Result, "nosuch") || !strings.Contains(got.Result, "nobody") {
		t.Errorf("it is %+v", got)
	}
}

// A round may take more than a second to find the due schedules: it makes their tasks all the same.
func TestARoundThatTookLongToDecideFiresAllTheSame(t *testing.T) {
	t.Parallel()
	f := newFired(t, nil)
	begun, looks := time.Now(), 0
	f.server.Fix(func() time.Time {
		looks++
		return begun.Add(time.Duration(looks) * 2 * time.Second)
	}, nil)
	if got := f.after(time.Second); got.Task == "" || !got.Tick.Equal(f.now) {
		t.Errorf("it is %+v", got)
	}
}

func TestTicksThatRedisForgotGoOnFromNow(t *testing.T) {
	t.Parallel()
	f := newFired(t, nil)
	before := f.after(time.Second)
	rdb := redistest.Raw(t, f.cfg, "default")
	if err := rdb.Del(t.Context(), "muster:{hub}:ticks").Err(); err != nil {
		t.Fatal(err)
	}
	// The copy of the leader is known to be old when it writes.
	if got := f.after(30 * time.Second); got.Task != "" {
		t.Errorf("with the old copy: %+v", got)
	}
	f.after(0)
	if text := f.log.String(); !strings.Contains(text, "has forgotten its last tick") {
		t.Errorf("the log: %s", text)
	}
	after := f.after(time.Second)
	if after.Task == "" || after.Task == before.Task || !after.Tick.Equal(f.now) {
		t.Errorf("it goes on with %+v", after)
	}
	tasks, err := f.Tasks(t.Context(), 100)
	if err != nil || len(tasks) != 2 {
		t.Errorf("%d tasks, want 2, %v", len(tasks), err)
	}
}

// Each host begins later than the tick by its own part of the jitter, the same each time.
func TestJitterShiftsEachHost(t *testing.T) {
	t.Parallel()
	f := newFired(t, func(e *windows.Entry) { e.Jitter = "1h0m0s" })
	got := f.after(time.Second)
	job, err := f.Job(t.Context(), jobs.NewID(got.Task, "fw001"))
	later := job.Due.Sub(got.Tick.Time)
	if err != nil || later <= 0 || later > time.Hour {
		t.Errorf("its jobs are due %s later, %v", later, err)
	}
	second := f.after(time.Second)
	next, err := f.Job(t.Context(), jobs.NewID(second.Task, "fw001"))
	if err != nil || next.Due.Sub(second.Tick.Time) != later {
		t.Errorf("those of the next tick are due %s later, %v", next.Due.Sub(second.Tick.Time), err)
	}
	other, err := f.Job(t.Context(), jobs.NewID(second.Task, "fw002"))
	if err != nil || other.Due.Equal(next.Due.Time) {
		t.Errorf("two hosts are due at %s, %v", other.Due, err)
	}
}

// A rule counts all hosts of a tick, so none is left out: for want of an opening such a
// tick has no task, where one without a rule has one for the others.
func TestATickWithARuleLeavesNoHostOut(t *testing.T) {
	t.Parallel()
	f := newFired(t, func(e *windows.Entry) {
		e.On, e.Window, e.Expect = "customer=acme,site=x", windows.WindowRequired, "5m"
		e.Rollout = &windows.RolloutRequest{Waves: []string{"1", "100%"}}
	})
	if got := f.after(time.Second); !got.Refused || got.Task != "" ||
		!strings.Contains(got.Result, "no approved window for 2 of 2 hosts") {
		t.Errorf("it is %+v", got)
	}
	zones := newFired(t, func(e *windows.Entry) { e.Rollout = &windows.RolloutRequest{MaxFailed: "1"} })
	if got := zones.after(time.Second); !got.Refused || !strings.Contains(got.Result, "of 2 zones") {
		t.Errorf("in two zones it is %+v", got)
	}
	dry := newFired(t, func(e *windows.Entry) { e.Only = "check" })
	if got := dry.after(time.Second); !got.Refused || !strings.HasPrefix(got.Result,
		"only: runbook exec has nothing for a dry run") {
		t.Errorf("a dry run of exec is %+v", got)
	}
	few := newFired(t, func(e *windows.Entry) {
		e.On = "site=x"
		e.Rollout = &windows.RolloutRequest{Canary: "1", Soak: "5m", MaxFailed: "50%"}
	})
	got := few.after(time.Second)
	task, err := few.Task(t.Context(), got.Task)
	if err != nil || task.Rollout == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if r := task.Rollout; len(r.Waves) != 2 || *r.MaxFailed != 1 || r.Soak != 5*time.Minute || r.Wave != 1 {
		t.Errorf("the numbers of the tick are %+v", r)
	}
	if list, err := few.Rollouts(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("the duty that opens waves has %v, %v", list, err)
	}
}

func TestAnIDThatIsAnotherTasksIsLeftToIt(t *testing.T) {
	t.Parallel()
	f := newFired(t, nil)
	tick := f.now.Add(time.Second)
	other := jobs.Task{ID: jobs.TickID("x", tick, 0), Spec: jobs.Spec{Runbook: "exec", Operator: "bob",
		Timeout: time.Minute, Expire: time.Hour, Retry: jobs.DefaultPolicy(), Created: jobs.MicrosOf(tick)}, Total: 1}
	if err := f.Submit(t.Context(), other, map[string][]string{"default": {"fw001"}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := f.after(time.Second); got.Task != jobs.TickID("x", tick, 1) {
		t.Errorf("the tick's task is %s", got.Task)
	}
	if task, err := f.Task(t.Context(), other.ID); err != nil || task.Cancelled != "" || task.Total != 1 {
		t.Errorf("the other is %+v, %v", task, err)
	}
}

func TestAPausedScheduleMakesUpForNothing(t *testing.T) {
	t.Parallel()
	f := newFired(t, nil)
	f.after(time.Second)
	change := func(f2 func(*jobs.Schedule)) {
		t.Helper()
		was, err := f.Schedule(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		to := was.Schedule
		f2(&to)
		if err := f.ChangeSchedule(t.Context(), was, to); err != nil {
			t.Fatal(err)
		}
	}
	change(func(s *jobs.Schedule) { s.Paused = "by bob" })
	before := f.after(20 * time.Second)
	change(func(s *jobs.Schedule) { s.Paused, s.Since = "", jobs.Time{Time: f.now} })
	f.after(0)
	if got := f.after(time.Second); got.Task == before.Task || !got.Tick.Equal(f.now) || got.Skipped != 0 {
		t.Errorf("after the pause: %+v", got)
	}
	if tasks, err := f.Tasks(t.Context(), 100); err != nil || len(tasks) != 2 {
		t.Errorf("%d tasks, want 2, %v", len(tasks), err)
	}
}

// BenchmarkIdleSchedules is a look at 10,000 schedules of which none is due, as the leader
// does it once a second.
func BenchmarkIdleSchedules(b *testing.B) {
	f := newFired(b, func(e *windows.Entry) { e.Cron = "0 3 1 1 *" })
	for i := range 9999 {
		e := windows.Entry{Name: fmt.Sprintf("s%d", i), Cron: "H 3 1 1 *", Zone: "Europe/Zurich", Enabled: true,
			Request: windows.Request{Runbook: "exec", On: "all", Args: map[string]string{"cmd": "true"}}}
		err := f.ChangeSchedule(b.Context(), hub.Schedule{}, jobs.Schedule{Entry: e, By: "alice",
			Since: jobs.Time{Time: f.now}})
		if err != nil {
			b.Fatal(err)
		}
	}
	f.after(time.Second) // it reads them, and finds the tick ahead of each
	before := cpu(b)
	for b.Loop() {
		f.now = f.now.Add(time.Second)
		if _, err := f.firing.RunOnce(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*(cpu(b)-before).Seconds()/float64(b.N), "%-of-a-core")
}
