package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/read"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// openHistory opens a store that ends with the test.
func openHistory(t *testing.T, cfg history.Config) *history.Store {
	t.Helper()
	s, err := history.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Migrate(t.Context()); err != nil { // a call waits for the tables for two seconds only
		t.Fatal(err)
	}
	return s
}

// waitFor asks until something is true.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.Tick(20 * time.Millisecond)
	for from := time.Now(); !is(); <-tick {
		if time.Since(from) > 60*time.Second {
			t.Fatal("in vain: ", what)
		}
	}
}

// smallNodes makes Redis trim streams to the entry, not to a hundred of them.
var smallNodes = []string{"--stream-node-max-entries", "1"}

func TestWhatHappensIsInHistory(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]history.Config{"sqlite": sqltest.SQLite(t),
		"postgres": sqltest.Shared(t).Config(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.StartServer(t, smallNodes...).Config()
			store := openHistory(t, cfg)
			w := start(t, setup{redis: &redis, history: store})
			task := w.submit(run("*")).Task
			for _, zone := range []string{"default", "eu"} {
				w.work(zone, func(host string) jobs.Result {
					r := succeed(host)
					if host == "fw002" {
						code := 3
						r.Outcome, r.ExitCode, r.Class = jobs.Failed, &code, jobs.Class("user")
					}
					return r
				})
			}
			var r api.Report
			waitFor(t, "four jobs", func() bool {
				var err error
				r, err = store.Report(t.Context(), task)
				return err == nil && r.Task.State == jobs.TaskEnded && len(r.Jobs) == 4
			})
			if r.Total != 4 || r.Task.Operator != "alice" || r.Task.Outcomes[jobs.Succeeded] != 3 {
				t.Errorf("report %+v", r)
			}
			j, err := store.Job(t.Context(), jobs.NewID(task, "fw002"))
			if err != nil || j.Customer != "acme" || j.Outcome != jobs.Failed || *j.ExitCode != 3 ||
				j.Class != "user" || j.Started.IsZero() || j.Runbook != "exec" || j.Attempt != 1 {
				t.Errorf("job %+v, %v", j, err)
			}
			said, err := store.Output(t.Context(), j.ID)
			if err != nil || string(said) != "fine\n" {
				t.Errorf("output %q, %v", said, err)
			}
			asked, err := store.Task(t.Context(), task)
			if err != nil {
				t.Fatal(err)
			}
			field := jobs.EstimateField(asked.Ran.Work, hosts()[0])
			waitFor(t, "an estimate for workers", func() bool {
				list, err := w.queue.Estimates(t.Context(), []string{field})
				return err == nil && list[field].N == 2 // fw001 and fw003, of acme
			})
			if gaps, err := store.Gaps(t.Context()); err != nil || len(gaps) > 0 {
				t.Errorf("gaps %+v, %v", gaps, err)
			}
		})
	}
}

func TestWorkGoesOnWhileSQLIsAway(t *testing.T) {
	t.Parallel()
	p := sqltest.StartPostgres(t)
	store := openHistory(t, p.Config(t))
	redis := redistest.StartServer(t, smallNodes...).Config()
	w := start(t, setup{redis: &redis, history: store})
	first := w.submit(run("fw001")).Task
	w.work("default", succeed)
	waitFor(t, "the first task", func() bool {
		r, err := store.Report(t.Context(), first)
		return err == nil && len(r.Jobs) == 1
	})

	p.Kill()
	second := w.submit(run("fw*")).Task
	w.work("default", succeed)
	w.work("eu", succeed)
	var info jobs.TaskInfo
	if w.call("GET", "/v1/tasks/"+string(second), nil, &info); info.Outcomes[jobs.Succeeded] != 3 {
		t.Errorf("while SQL is away: %+v", info)
	}
	var h api.Health
	waitFor(t, "an alert", func() bool {
		res := w.call("GET", "/v1/health", nil, &h)
		return res.StatusCode == 200 && strings.Contains(h.Status, "history is not written: history postgresql")
	})
	if !strings.Contains(w.log.String(), "history is not written") {
		t.Error("the log does not say so")
	}

	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "what happened meanwhile", func() bool {
		r, err := store.Report(t.Context(), second)
		return err == nil && len(r.Jobs) == 3 && r.Task.State == jobs.TaskEnded
	})
	waitFor(t, "the end of the alert", func() bool {
		w.call("GET", "/v1/health", nil, &h)
		return h.Status == "ok"
	})
	if gaps, err := store.Gaps(t.Context()); err != nil || len(gaps) > 0 {
		t.Errorf("gaps %+v, %v", gaps, err)
	}
}

// mumQueue is one whose events Redis does not tell for a while.
type mumQueue struct {
	*queuetest.Queue
	silent atomic.Bool
}

func (q *mumQueue) EventPage(ctx context.Context, zone, after string, most int) (
	read.EventPage, error) {
	if q.silent.Load() {
		return read.EventPage{}, fmt.Errorf("%w 192.0.2.1:6379: events: connection refused", queue.ErrRedis)
	}
	return q.Queue.EventPage(ctx, zone, after, most)
}

// While it is Redis that is away, nobody is to look at SQL.
func TestHistoryThatWaitsForRedisNamesIt(t *testing.T) {
	t.Parallel()
	mum := &mumQueue{}
	mum.silent.Store(true)
	w := start(t, setup{history: openHistory(t, sqltest.SQLite(t)), wrap: func(q *queuetest.Queue) everything {
		mum.Queue = q
		return mum
	}})
	waitFor(t, "the log", func() bool {
		return strings.Contains(w.log.String(), "[ERROR] history waits for Redis, which cannot be used: what is in its "+
			"event streams is stored when it can be: error=\"redis 192.0.2.1:6379: events")
	})
	mum.silent.Store(false)
	waitFor(t, "the end", func() bool { return strings.Contains(w.log.String(), "history is written again") })
	if text := w.log.String(); strings.Contains(text, "history is not written") {
		t.Errorf("the log says that it was history's fault:\n%s", text)
	}
}

func TestAStreamThatWasTrimmedTooEarlyIsNoticedCountedAndSaid(t *testing.T) {
	t.Parallel()
	p := sqltest.StartPostgres(t)
	store := openHistory(t, p.Config(t))
	redis := redistest.StartServer(t, smallNodes...).Config()
	w := start(t, setup{redis: &redis, history: store, inventory: fixed(many(40))})
	first := w.submit(run("h0000")).Task
	w.work("default", succeed)
	waitFor(t, "the first task", func() bool {
		r, err := store.Report(t.Context(), first)
		return err == nil && len(r.Jobs) == 1 && r.Task.State == jobs.TaskEnded
	})
	before, err := store.Position(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}

	p.Kill()
	second := w.submit(run("*")).Task
	w.work("default", succeed)
	page, err := w.queue.EventPage(t.Context(), "default", before.Last, 1000)
	if err != nil || page.Entries < 3 {
		t.Fatalf("page %+v, %v", page, err)
	}
	// All but the last entry go.
	if err := w.queue.TrimEvents(t.Context(), "default", page.Last); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	var gaps []api.Gap
	waitFor(t, "the gap", func() bool {
		gaps, err = store.Gaps(t.Context())
		return err == nil && len(gaps) > 0
	})
	if want := page.Entries - 1; len(gaps) != 1 || gaps[0].Entries != want || gaps[0].After != before.Last ||
		gaps[0].First != page.Last || gaps[0].Zone != "default" {
		t.Errorf("gaps %+v, want one of %d entries after %s", gaps, want, before.Last)
	}
	if !strings.Contains(w.log.String(), "events were gone before history had them") {
		t.Error("the log does not say so")
	}
	// The record of the task in Redis fills the gap.
	waitFor(t, "all jobs", func() bool {
		r, err := store.Report(t.Context(), second)
		return err == nil && len(r.Jobs) == 40 && r.Task.Total == 40
	})
}
