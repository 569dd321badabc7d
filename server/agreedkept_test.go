package server_test

import (
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// A FLUSHALL takes all that people have agreed. The house says so, starts nothing, and has it back
// after one order.
func TestWhatWasAgreedComesBackToARedisThatLostIt(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	cfg := redis.Config()
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{redis: &cfg, history: store})
	order := func(path string, body any) {
		t.Helper()
		if res := w.call("POST", path, body, nil); res.StatusCode/100 != 2 {
			t.Fatalf("%s: %s", path, res.Status)
		}
	}
	why := api.OrderRequest{Reason: "INC-7"}
	order("/v1/freezes", api.FreezeRequest{OrderRequest: why, Name: "outage", Level: "host", Of: "fw001"})
	order("/v1/hosts/drain", map[string]any{"on": "fw002", "reason": "INC-7"})
	order("/v1/customers/acme/pause", why)
	waitFor(t, "a copy of what is agreed", func() bool {
		kept, err := store.Agreed(t.Context())
		return err == nil && strings.Contains(kept[jobs.AgreedWindows].Words(), "1 freezes") &&
			kept[jobs.AgreedDrained].Words() == "1 drained host" && kept[jobs.AgreedPauses].Words() == "1 pause"
	})
	if res := w.call("POST", "/v1/agreed/restore", why, nil); res.StatusCode != http.StatusConflict {
		t.Errorf("restored what is there: %s", res.Status)
	}

	redis.Do(t, "FLUSHALL")
	if res := w.call("POST", "/v1/tasks", run("fw001"), nil); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a submit to a Redis that has lost what was agreed: %s", res.Status)
	}
	var h api.Health
	waitFor(t, "an alarm", func() bool {
		w.call("GET", "/v1/health", nil, &h)
		return strings.Contains(h.Status, "Redis has lost what was agreed") &&
			strings.Contains(h.Status, "`muster restore`")
	})
	var r api.AgreedReport
	w.call("GET", "/v1/agreed", nil, &r)
	comes := map[string]bool{}
	for _, p := range r.Parts {
		comes[p.Part] = p.Comes
	}
	if r.Lost.Since.IsZero() || !comes["windows"] || !comes["drained"] || !comes["pauses"] ||
		comes["schedules"] || comes["halt"] {
		t.Errorf("the report is %+v", r)
	}
	// Nothing starts in any zone, also if the freeze of a zone that was missing is over.
	waitFor(t, "zones that know of it", func() bool {
		list, err := w.queue.Debts(t.Context(), []string{"default"})
		return err == nil && len(list) == 1 && list[0].Owed != ""
	})

	order("/v1/agreed/restore", why)
	table, err := w.queue.Timetable(t.Context())
	if err != nil || len(table.Freezes) != 1 || table.Freezes[0].Name != "outage" || table.Version < 2 {
		t.Errorf("the timetable is %+v, %v", table, err)
	}
	if drained, err := w.queue.Drained(t.Context()); err != nil || len(drained) != 1 {
		t.Errorf("drained are %v, %v", drained, err)
	}
	if p, err := w.queue.Pauses(t.Context()); err != nil || len(p.Customers) != 1 {
		t.Errorf("pauses are %+v, %v", p, err)
	}
	waitFor(t, "the end of the alarm", func() bool { return wellOnceThawed(w) })
	if res := w.call("POST", "/v1/tasks", run("fw001"), nil); res.StatusCode != http.StatusCreated {
		t.Errorf("a submit after it was restored: %s", res.Status)
	}
}

// wellOnceThawed thaws the zones, which were missing as well, and reports whether health is ok then.
func wellOnceThawed(w *world) bool {
	for _, zone := range []string{"default", "eu"} {
		w.call("POST", "/v1/zones/"+zone+"/thaw", api.OrderRequest{Reason: "INC-7"}, nil)
	}
	var h api.Health
	w.call("GET", "/v1/health", nil, &h)
	return h.Status == "ok"
}

// An operator may accept the loss: work then begins with an empty Redis.
func TestWhatWasLostMayBeGivenUp(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	cfg := redis.Config()
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{redis: &cfg, history: store})
	why := api.OrderRequest{Reason: "INC-7"}
	w.call("POST", "/v1/freezes", api.FreezeRequest{OrderRequest: why, Name: "outage", Level: "everyone"}, nil)
	waitFor(t, "a copy of what is agreed", func() bool {
		kept, err := store.Agreed(t.Context())
		return err == nil && kept[jobs.AgreedWindows].Mark > 0
	})
	redis.Do(t, "FLUSHALL")
	var h api.Health
	waitFor(t, "an alarm", func() bool {
		w.call("GET", "/v1/health", nil, &h)
		return strings.Contains(h.Status, "Redis has lost what was agreed")
	})
	if res := w.call("POST", "/v1/agreed/forsake", why, nil); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	waitFor(t, "the end of the alarm", func() bool {
		w.call("GET", "/v1/health", nil, &h)
		return h.Status == "ok"
	})
	if table, err := w.queue.Timetable(t.Context()); err != nil || len(table.Freezes) != 0 {
		t.Errorf("the timetable is %+v, %v", table, err)
	}
}

// A submit right after a FLUSHALL, before anybody has published the inventory again, made jobs that
// failed: their hosts were not in the version.
func TestASubmitPublishesAnInventoryThatRedisHasLost(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	cfg := redis.Config()
	w := start(t, setup{redis: &cfg})
	redis.Do(t, "FLUSHALL")
	w.submit(run("fw001"))
	if _, err := w.queue.Thaw(t.Context(), "default", "nobody is alive"); err != nil {
		t.Fatal(err)
	}
	reply, err := w.queue.Step(t.Context(), "default", jobs.Step{Node: "n1", Slot: "1", Request: "r1", Want: 1})
	if err != nil || len(reply.Jobs) != 1 {
		t.Fatalf("%+v, %v", reply, err)
	}
	if reply.Jobs[0].Host.Name != "fw001" {
		t.Errorf("the job came without its host: %+v", reply.Jobs[0])
	}
}

// A task that Redis has forgotten may have run: its id makes no second one.
func TestAnIDThatHistoryKnowsMakesNoSecondTask(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	cfg := redis.Config()
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{redis: &cfg, history: store})
	task := w.submit(run("fw001")).Task
	w.work("default", succeed)
	waitFor(t, "its end", func() bool {
		r, err := store.Report(t.Context(), task)
		return err == nil && len(r.Jobs) == 1
	})
	redis.Do(t, "FLUSHALL")
	again := run("fw001")
	again.ID = string(task)
	var p struct{ Detail string }
	if res := w.call("POST", "/v1/tasks", again, &p); res.StatusCode != http.StatusConflict ||
		!strings.Contains(p.Detail, "history knows it") {
		t.Errorf("%s: %s", res.Status, p.Detail)
	}
}
