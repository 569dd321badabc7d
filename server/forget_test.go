package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/scripts"
	"muster/server"
	"muster/server/historian"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// keeper is a historian with a clock of its own, whose history keeps a day.
func (w *world) keeper(store *history.Store, now func() time.Time) *historian.Historian {
	w.t.Helper()
	catalog, err := scripts.NewCatalog(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := server.DefaultConfig()
	cfg.HistoryKeep = 24 * time.Hour
	srv, err := server.New(cfg, server.Deps{Queue: stores(w.queue), Catalog: catalog,
		Inventory: given(fixed(hosts())), History: store, Log: hclog.NewNullLogger()})
	if err != nil {
		w.t.Fatal(err)
	}
	srv.Fix(now, nil)
	h, err := server.NewHistorian(w.t.Context(), srv)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// A schedule each second makes 60 tasks a minute; a busy house makes 1,000.
func TestRetentionKeepsUpWithAThousandTasksAMinute(t *testing.T) {
	t.Parallel()
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{})
	long := time.Now().Add(-72 * time.Hour)
	b := history.Batch{Zone: "past", Last: "1-0"}
	for i := range 2000 {
		id := jobs.TaskID(fmt.Sprintf("0wcy%06d", i))
		at := jobs.Time{Time: long.Add(time.Duration(i) * time.Millisecond)}
		b.Tasks = append(b.Tasks, jobs.TaskInfo{Task: id, Runbook: "exec", State: jobs.TaskEnded, Total: 1,
			Zones: []string{"past"}, Span: jobs.Span{Submitted: at, Started: at, Finished: at}})
		b.Ended = append(b.Ended, api.PastJob{Zone: "past", JobInfo: jobs.JobInfo{ID: jobs.NewID(id, "h"),
			Host: "h", State: jobs.Ended, Outcome: jobs.Succeeded, Attempt: 1, Started: at, Finished: at}})
		for n, what := range []string{"put", "take", "end"} {
			b.Events = append(b.Events, jobs.Happening{ID: fmt.Sprintf("%d-%d", i, n), Zone: "past", At: at,
				Event: what, Object: string(jobs.NewID(id, "h"))})
		}
	}
	if _, err := store.Put(t.Context(), b, long); err != nil {
		t.Fatal(err)
	}
	clock := time.Now()
	h := w.keeper(store, func() time.Time { return clock })
	for range 60 { // a look a second, for a minute
		if _, err := h.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock = clock.Add(time.Second)
	}
	rows, err := store.Rows(t.Context())
	// The zones of the house have events of this minute.
	if err != nil || rows["tasks"]+rows["jobs"] > 0 || rows["events"] > 100 {
		t.Errorf("after a minute there are %v, %v: want none of 2,000 tasks", rows, err)
	}
}

func TestAStreamThatIsLostIsOneGap(t *testing.T) {
	t.Parallel()
	store := openHistory(t, sqltest.SQLite(t))
	redis := redistest.StartServer(t, smallNodes...).Config()
	w := start(t, setup{redis: &redis})
	h := w.keeper(store, time.Now)
	rounds := func() (gaps []api.Gap) {
		t.Helper()
		for range 4 {
			if _, err := h.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		gaps, err := store.Gaps(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return gaps
	}
	text, _ := nights()
	w.agreed(text)
	if gaps := rounds(); len(gaps) != 0 {
		t.Fatalf("gaps %+v", gaps)
	}
	stream := "muster:{" + keys.HubZone + "}:events"
	if n := redistest.Raw(t, redis, keys.HubZone).Del(t.Context(), stream).Val(); n != 1 {
		t.Fatal("the hub had no stream")
	}
	if gaps := rounds(); len(gaps) != 1 || gaps[0].Zone != keys.HubZone || gaps[0].Entries != -1 {
		t.Errorf("gaps %+v, want one of the hub", gaps)
	}
}
