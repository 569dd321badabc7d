package history_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	sqltest.Done()
	os.Exit(code)
}

// both runs a test on a fresh SQLite and on a fresh database of PostgreSQL.
func both(t *testing.T, f func(t *testing.T, cfg history.Config)) {
	t.Run("sqlite", func(t *testing.T) { f(t, sqltest.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { f(t, sqltest.Shared(t).Config(t)) })
}

func open(t testing.TB, cfg history.Config) *history.Store {
	t.Helper()
	s, err := history.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// ready is a store whose tables are there: a call by itself waits for them for two seconds only,
// and the race detector on a busy machine takes longer to make them.
func ready(t testing.TB, cfg history.Config) *history.Store {
	t.Helper()
	s := open(t, cfg)
	migrate(t, s)
	return s
}

// migrate is patient: on a machine that is busy a store says that it is not usable yet.
func migrate(t testing.TB, s *history.Store) {
	t.Helper()
	err := s.Migrate(t.Context())
	for range 10 {
		if !errors.Is(err, history.ErrChanging) {
			break
		}
		err = s.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

var begin = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func taskID(n int) jobs.TaskID { return jobs.TaskID(fmt.Sprintf("0wcy%06d", n)) }

func at(d time.Duration) jobs.Time { return jobs.Time{Time: begin.Add(d)} }

// happened is an event of a job.
func happened(entry int, name string, object any, detail map[string]any) jobs.Happening {
	h := jobs.Happening{ID: fmt.Sprintf("%d-0", entry), Zone: "default", Event: name,
		Object: fmt.Sprint(object), At: at(time.Duration(entry) * time.Millisecond)}
	if detail != nil {
		h.Detail = detail
	}
	return h
}

// job is one that has ended.
func job(task jobs.TaskID, host string, o jobs.Outcome, took time.Duration) api.PastJob {
	return api.PastJob{JobInfo: jobs.JobInfo{ID: jobs.NewID(task, host), Host: host, State: jobs.Ended,
		Outcome: o, Attempt: 1, Node: "n1/1", Due: at(0), Started: at(0), Finished: at(took)},
		Zone: "default", Customer: "acme", Model: "x200", Runbook: "exec", Operator: "alice",
		Asked: &api.Asked{On: "all", Ran: &jobs.Ran{Work: "exec"}}}
}

func task(id jobs.TaskID, total int) jobs.TaskInfo {
	return jobs.TaskInfo{Task: id, Runbook: "exec", On: "all", Operator: "alice", State: jobs.TaskEnded,
		Total: total, Zones: []string{"default"}, Inventory: "v1", Span: jobs.Span{Submitted: at(0),
			Started: at(0), Finished: at(time.Minute)}}
}

// store stores a batch at the position where the store is.
func store(t testing.TB, s *history.Store, b history.Batch) []history.Estimate {
	t.Helper()
	b.Zone = "default"
	migrate(t, s)
	p, err := s.Position(t.Context(), b.Zone)
	if err != nil {
		t.Fatal(err)
	}
	b.After = p.Last
	if b.Last == "" {
		b.Last = p.Last + "0"
	}
	changed, err := s.Put(t.Context(), b, begin)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}
