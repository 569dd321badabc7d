package nodes

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/history"
	"muster/history/outcomes"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/outliers"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
	"muster/trust"
)

// fails is a house with two nodes in real Redis, whose jobs are in a real history.
type fails struct {
	*Outlying
	t     *testing.T
	store *history.Store
	queue *queuetest.Queue
	now   time.Time
}

func newFails(t *testing.T) *fails {
	t.Helper()
	q, err := queuetest.OpenLazy(redistest.StartServer(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	s, err := history.Open(sqltest.SQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := &fails{t: t, store: s, queue: q, now: time.Now()}
	f.Outlying = &Outlying{Policy: outliers.Policy{Window: time.Hour, Times: outliers.DefaultTimes}, Queue: q,
		Keys: func() (serverkey.Keys, error) { return serverkey.Keys{}, nil }, Log: hclog.NewNullLogger(),
		Now: func() time.Time { return f.now },
		Counts: func(ctx context.Context, from, begun time.Time) ([]outliers.Count, error) {
			return outcomes.Since(ctx, s, from, begun)
		}}
	return f
}

// beats has nodes report themselves.
func (f *fails) beats(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if err := f.queue.Beat(f.t.Context(), jobs.Node{ID: name, State: "running", Zones: []string{"eu"}}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// ended stores 30 jobs of a task that a node ended at a time.
func (f *fails) ended(task, node string, o jobs.Outcome, at time.Time) {
	f.t.Helper()
	var list []history.Statement
	for i := range 30 {
		list = append(list, history.Statement{Text: "insert into jobs (task, host, zone, customer, model, runbook, " +
			"operator, outcome, class, error, note, node, attempt, tries, due, started, finished) values (?, ?, 'eu', " +
			"'', '', 'firewall', 'alice', ?, '', '', '', ?, 1, 0, 0, ?, ?)",
			Args: []any{task, fmt.Sprintf("%s-%s-%s-%d", node, o, task, i), string(o), node + "/4711",
				int64(jobs.MicrosOf(at)), int64(jobs.MicrosOf(at))}})
	}
	if err := history.HandleOf(f.store).Exec(f.t.Context(), "jobs", list...); err != nil {
		f.t.Fatal(err)
	}
}

// order returns the order about a node that stands in Redis.
func (f *fails) order(node string) (paused bool, note string) {
	f.t.Helper()
	all, err := f.queue.NodeOrders(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	if o := read(all[node], node); o != nil {
		return o.Paused, o.Note
	}
	return false, ""
}

func (f *fails) once() {
	f.t.Helper()
	if err := f.RunOnce(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// A node whose jobs fail is set aside while another one takes jobs. Once a person has resumed it,
// what was before does not count any more; what fails afterwards does.
func TestANodeWhoseJobsFailIsSetAside(t *testing.T) {
	t.Parallel()
	f := newFails(t)
	f.beats("bad")
	ago := f.now.Add(-time.Minute)
	f.ended("0000000001", "bad", jobs.Unreachable, ago)
	f.ended("0000000001", "good", jobs.Succeeded, ago)
	f.ended("0000000001", "good", jobs.Cancelled, ago) // says nothing
	f.once()
	if paused, note := f.order("bad"); paused {
		t.Fatalf("the only node of a zone is set aside: %s", note)
	}
	f.beats("good")
	f.once()
	paused, note := f.order("bad")
	if want := outliers.Mark + "30 of its 30 jobs of runbook firewall failed"; !paused || !strings.HasPrefix(note, want) {
		t.Fatalf("paused %t: %q, want %q", paused, note, want)
	}
	if paused, _ := f.order("good"); paused {
		t.Error("the good node is set aside")
	}

	err := f.queue.OrderNode(t.Context(), "bad", []string{"eu"}, func(_ string, now int64) (string, error) {
		return trust.NodeOrder{Node: "bad", Number: now, Note: "resumed by alice: new cables",
			At: time.UnixMicro(now)}.Sign(serverkey.Keys{})
	})
	if err != nil {
		t.Fatal(err)
	}
	f.now = time.Now().Add(time.Minute)
	f.once()
	if paused, note := f.order("bad"); paused {
		t.Errorf("what a person has looked at counts again: %s", note)
	}
	f.ended("0000000002", "bad", jobs.Failed, f.now)
	f.ended("0000000002", "good", jobs.Succeeded, f.now)
	f.once()
	if paused, note := f.order("bad"); !paused || !strings.HasPrefix(note, outliers.Mark+"30 of its 30 jobs") {
		t.Errorf("what failed afterwards does not count: paused %t, %q", paused, note)
	}
}

// A node that has not heard of its order yet takes nothing soon: another one must not be set aside
// beside it.
func TestAnOrderCountsBeforeItsNodeHasHeardOfIt(t *testing.T) {
	t.Parallel()
	f := newFails(t)
	f.beats("bad", "good", "other")
	ago := f.now.Add(-time.Minute)
	err := f.queue.OrderNode(t.Context(), "other", []string{"eu"}, func(_ string, now int64) (string, error) {
		return trust.NodeOrder{Node: "other", Number: now, Paused: true, Note: outliers.Mark + "30 of its 30 jobs",
			At: time.UnixMicro(now)}.Sign(serverkey.Keys{})
	})
	if err != nil {
		t.Fatal(err)
	}
	f.ended("0000000001", "bad", jobs.Unreachable, ago)
	f.ended("0000000001", "good", jobs.Succeeded, ago)
	f.once()
	if paused, note := f.order("bad"); paused {
		t.Errorf("a second node of the zone is set aside: %s", note)
	}
}

// A job that began before a person resumed the node says nothing about the time after it.
func TestAJobFromBeforeAResumeDoesNotCount(t *testing.T) {
	t.Parallel()
	f := newFails(t)
	f.beats("bad", "good")
	err := f.queue.OrderNode(t.Context(), "bad", []string{"eu"}, func(_ string, now int64) (string, error) {
		return trust.NodeOrder{Node: "bad", Number: now, Note: "resumed by alice", At: time.UnixMicro(now)}.Sign(
			serverkey.Keys{})
	})
	if err != nil {
		t.Fatal(err)
	}
	f.now = time.Now().Add(time.Minute)
	f.ended("0000000001", "bad", jobs.Timeout, f.now)
	f.ended("0000000001", "good", jobs.Succeeded, f.now)
	begun := history.Statement{Text: "update jobs set started = 1"}
	if err := history.HandleOf(f.store).Exec(t.Context(), "jobs", begun); err != nil {
		t.Fatal(err)
	}
	f.once()
	if paused, note := f.order("bad"); paused {
		t.Errorf("set aside for jobs from before the resume: %s", note)
	}
}

// Jobs that ended before the window do not count.
func TestOldFailuresDoNotCount(t *testing.T) {
	t.Parallel()
	f := newFails(t)
	f.beats("bad", "good")
	f.ended("0000000001", "bad", jobs.Failed, f.now.Add(-2*time.Hour))
	f.ended("0000000001", "good", jobs.Succeeded, f.now.Add(-2*time.Hour))
	f.once()
	if paused, note := f.order("bad"); paused {
		t.Errorf("set aside for what was before the window: %s", note)
	}
}
