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

// In a Redis that has lost what was agreed nobody orders a freeze, a drain or a pause: a restore would
// take it away, or it would hide what is lost. That holds at once, not only after a duty has seen
// it. A halt works, and after the restore all of it.
func TestNoOrderIsGivenAboutWhatRedisHasLost(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	cfg := redis.Config()
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{redis: &cfg, history: store})
	order := func(want int, path string, body any) {
		t.Helper()
		if res := w.call("POST", path, body, nil); res.StatusCode/100 != want/100 || want/100 == 4 &&
			res.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, res.Status, want)
		}
	}
	why := api.OrderRequest{Reason: "INC-7"}
	freeze := func(name string) any {
		return api.FreezeRequest{OrderRequest: why, Name: name, Level: "host", Of: "fw001"}
	}
	order(http.StatusOK, "/v1/freezes", freeze("outage"))
	waitFor(t, "a copy of what is agreed", func() bool {
		kept, err := store.Agreed(t.Context())
		return err == nil && strings.Contains(kept[jobs.AgreedWindows].Words(), "1 freezes")
	})
	redis.Do(t, "FLUSHALL")
	var p api.PauseList
	if w.call("GET", "/v1/pauses", nil, &p); !strings.Contains(p.Lost, "1 freezes") {
		t.Errorf("what stands still is %+v", p)
	}
	order(http.StatusConflict, "/v1/freezes", freeze("second"))
	order(http.StatusConflict, "/v1/freezes/outage/lift", why)
	order(http.StatusConflict, "/v1/hosts/drain", map[string]any{"on": "fw003", "reason": "INC-7"})
	order(http.StatusConflict, "/v1/customers/acme/pause", why)
	order(http.StatusConflict, "/v1/customers/acme/resume", why)
	order(http.StatusOK, "/v1/halt", why)
	order(http.StatusOK, "/v1/agreed/restore", why)
	if _, text := w.raw("GET", "/v1/pauses", nil, nil); strings.Contains(string(text), "lost") {
		t.Errorf("what stands still is %s after it was put back", text)
	}
	order(http.StatusOK, "/v1/lift", why)
	order(http.StatusOK, "/v1/freezes", freeze("second"))
	table, err := w.queue.Timetable(t.Context())
	if err != nil || len(table.Freezes) != 2 {
		t.Errorf("the timetable is %+v, %v", table, err)
	}
}
