package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/server"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
	"muster/trust"
	"muster/windows"
)

// signing has a server sign the timetable; it returns the handle of the server.
func signing(t *testing.T, cfg queue.Config) (*hub.Timetable, func(*server.Deps)) {
	t.Helper()
	c, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	times := hub.NewTimetable(c).SignedBy(trust.NewNotary(keyed(1), time.Now))
	return times, func(d *server.Deps) {
		d.Queue.Hub.Times = server.Timetables{Texts: times, Excerpts: times, Zones: times, Signing: times}
		d.Queue.Hub.Agreed = hub.NewAgreed(c).With(times)
	}
}

// unsigned has somebody without a key set the timetable.
func (w *world) unsigned(freezes ...windows.FreezeOrder) {
	w.t.Helper()
	t, err := w.queue.Timetable(w.t.Context())
	if err == nil {
		t.Freezes = freezes
		_, err = w.queue.SetTimetable(w.t.Context(), t, jobs.Alert{Event: "x", Object: "windows"})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func byHand(name string) windows.FreezeOrder {
	return windows.FreezeOrder{Name: name, Level: "host", Of: "fw001", From: time.Now(), Reason: "r", By: "x"}
}

// freeze orders a freeze, and returns the answer.
func (w *world) freeze(name string) *http.Response {
	w.t.Helper()
	return w.call("POST", "/v1/freezes", api.FreezeRequest{OrderRequest: api.OrderRequest{Reason: "INC-7"},
		Name: name, Level: "host", Of: "fw002"}, nil)
}

// doubted reports whether health and metrics say that the timetable is not believed.
func (w *world) doubted() bool {
	w.t.Helper()
	var h api.Health
	w.call("GET", "/v1/health", nil, &h)
	in := strings.Contains(h.Status, "the timetable in Redis is not believed")
	_, text := w.raw("GET", "/metrics", nil, nil)
	if metric := strings.Contains(string(text), "\nmuster_timetable_in_doubt 1\n"); metric != in || in != h.Doubt {
		w.t.Errorf("health says %v (%v), metrics say %v", in, h.Doubt, metric)
	}
	return in
}

// A timetable of an earlier version is shown, and changed only after a person has vouched for it, as
// it was shown.
func TestATimetableOfBeforeIsAdopted(t *testing.T) {
	t.Parallel()
	_, cfg := redistest.StartMini(t)
	times, with := signing(t, cfg)
	w := start(t, setup{redis: &cfg, more: with})
	if w.doubted() {
		t.Error("a new house has doubts")
	}
	w.unsigned(byHand("outage"))
	if !w.doubted() {
		t.Error("nobody doubts a timetable without a signature")
	}
	if res := w.freeze("more"); res.StatusCode != http.StatusConflict {
		t.Errorf("a change that would sign all of it: %s", res.Status)
	}
	var shown api.WindowList
	w.call("GET", "/v1/windows", nil, &shown)
	if shown.Doubt == "" || len(shown.Freezes) != 1 {
		t.Errorf("it is shown as %+v", shown)
	}
	adopt := func(hash, reason string, discard bool) (api.WindowsChanged, int) {
		var did api.WindowsChanged
		res := w.call("POST", "/v1/windows/adopt", api.AdoptRequest{Hash: hash, Discard: discard,
			OrderRequest: api.OrderRequest{Reason: reason}}, &did)
		return did, res.StatusCode
	}
	if _, code := adopt(shown.Hash, "", false); code != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %d", code)
	}
	if _, code := adopt("", "INC-7", false); code != http.StatusUnprocessableEntity {
		t.Errorf("without a hash: %d", code)
	}
	w.unsigned(byHand("outage"), byHand("other"))
	if _, code := adopt(shown.Hash, "INC-7", false); code != http.StatusConflict {
		t.Errorf("another one than was shown: %d", code)
	}
	w.call("GET", "/v1/windows", nil, &shown)
	if did, code := adopt(shown.Hash, "INC-7", false); code != http.StatusOK || did.Version != 3 || did.Already {
		t.Errorf("adopted: %d, %+v", code, did)
	}
	if did, code := adopt(shown.Hash, "INC-7", false); code != http.StatusOK || !did.Already {
		t.Errorf("adopted again: %d, %+v", code, did)
	}
	if table, doubt, err := times.Proven(t.Context()); len(table.Freezes) != 2 || doubt != nil || err != nil {
		t.Errorf("it is %+v, %v, %v", table, doubt, err)
	}
	if res := w.freeze("more"); res.StatusCode != http.StatusOK || w.doubted() {
		t.Errorf("a change after it: %s", res.Status)
	}

	w.unsigned(byHand("evil"))
	if did, code := adopt("", "INC-9", true); code != http.StatusOK || len(did.Removed) != 1 {
		t.Errorf("discarded: %d, %+v", code, did)
	}
	if table, doubt, err := times.Proven(t.Context()); len(table.Freezes) != 0 || doubt != nil || err != nil {
		t.Errorf("it is %+v, %v, %v", table, doubt, err)
	}
}

// History puts back the last timetable that servers have signed, and copies no other.
func TestARestoredTimetableIsBelievedIfItWas(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		redis := redistest.StartServer(t)
		cfg, store := redis.Config(), openHistory(t, sqltest.SQLite(t))
		times, with := signing(t, cfg)
		w := start(t, setup{redis: &cfg, history: store, more: with})
		if res := w.freeze("outage"); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		copied := func(part string) {
			t.Helper()
			waitFor(t, "a copy of "+part, func() bool {
				kept, err := store.Agreed(t.Context())
				return err == nil && kept[part].Mark > 0
			})
		}
		copied(jobs.AgreedWindows)
		if others {
			w.unsigned(byHand("evil"))
			w.call("POST", "/v1/hosts/drain", map[string]any{"on": "fw002", "reason": "INC-7"}, nil)
			copied(jobs.AgreedDrained)
		}
		redis.Do(t, "FLUSHALL")
		waitFor(t, "an alarm", func() bool {
			var h api.Health
			w.call("GET", "/v1/health", nil, &h)
			return strings.Contains(h.Status, "Redis has lost what was agreed")
		})
		why := api.OrderRequest{Reason: "INC-7"}
		if res := w.call("POST", "/v1/agreed/restore", why, nil); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		table, doubt, err := times.Proven(t.Context())
		if err != nil || len(table.Freezes) != 1 || table.Freezes[0].Name != "outage" || doubt != nil {
			t.Errorf("others wrote %v: it is %+v, %v, %v", others, table, doubt, err)
		}
		k, err := times.Kept(t.Context(), trust.TimesAsked{Scopes: []string{"host fw001", "host fw002"}, Shares: []int{0}})
		if err != nil || k.ExcerptsOf != k.Version || k.Shares[0] == "" {
			t.Errorf("others wrote %v: workers read %+v, %v", others, k, err)
		}
	}
}
