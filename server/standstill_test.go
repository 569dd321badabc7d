package server_test

import (
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// A halt, and a zone that is frozen after a loss of its data, keep work from starting, so health is
// not ok. A pause of a customer, a task or a zone concerns a part of the work: that is no alarm.
func TestHealthNamesHaltsAndFreezes(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	w := start(t, setup{redis: &cfg})
	w.manned()
	id := w.submit(run("fw001")).Task
	check := func(when string, stopped bool, want ...string) {
		t.Helper()
		var h api.Health
		res := w.call(http.MethodGet, "/v1/health", nil, &h)
		if res.StatusCode != http.StatusOK || h.Stopped != stopped || !stopped && h.Status != "ok" {
			t.Errorf("%s: %s, %+v, want stopped %v", when, res.Status, h, stopped)
		}
		for _, text := range want {
			if !strings.Contains(h.Status, text) {
				t.Errorf("%s: health says %q, want %q", when, h.Status, text)
			}
		}
	}
	order := func(path string) {
		t.Helper()
		if res := w.call(http.MethodPost, path, api.OrderRequest{Reason: "INC-7"}, nil); res.StatusCode/100 != 2 {
			t.Fatalf("%s: %s", path, res.Status)
		}
	}
	check("at first", false)
	for _, part := range []string{"/v1/customers/acme", "/v1/zones/default", "/v1/tasks/" + string(id)} {
		order(part + "/pause")
		check(part+" is paused", false)
		order(part + "/resume")
	}
	order("/v1/halt")
	check("halted", true, "nothing starts: everything is halted by ", "INC-7; `muster resume --all --reason …` ends that")
	order("/v1/lift")
	check("lifted", false)

	m.FlushAll()
	w.manned()
	w.submit(run("fw001")) // the server that knew the zone makes it anew
	check("the zone was missing", true, "nothing starts in zone default until ", "(the zone was missing)",
		"`muster nodes thaw --reason …`")
	order("/v1/zones/default/thaw")
	var h api.Health
	if w.call(http.MethodGet, "/v1/health", nil, &h); strings.Contains(h.Status, "zone default") {
		t.Errorf("thawed: %+v", h)
	}
}

// A Redis that was emptied has no list of zones for ten seconds. The nodes make their zones anew
// before that, frozen for as long as the longest lock: health said ok meanwhile, and a thaw knew no
// such zone.
func TestHealthNamesWhatAnEmptiedRedisFroze(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	w := start(t, setup{redis: &cfg})
	node, err := queuetest.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	call := jobs.Step{Node: "n1", Slot: "1", Request: "r1", Want: 1}
	if reply, err := node.Step(t.Context(), "default", call); err != nil || reply.Status == jobs.StatusFrozen {
		t.Fatalf("%+v, %v", reply, err)
	}
	m.FlushAll()
	health := func(want string) {
		t.Helper()
		var h api.Health
		w.call(http.MethodGet, "/v1/health", nil, &h)
		if !h.Stopped || !strings.Contains(h.Status, want) {
			t.Errorf("health: stopped %v, %q, want %q", h.Stopped, h.Status, want)
		}
	}
	health("zone default") // forgotten; or frozen, if a duty of the server has called it meanwhile
	call.Request = "r2"
	if reply, err := node.Step(t.Context(), "default", call); err != nil || reply.Status != jobs.StatusFrozen {
		t.Fatalf("%+v, %v", reply, err)
	}
	health("nothing starts in zone default until ")
	var q api.QueueInfo
	w.call(http.MethodGet, "/v1/queue", nil, &q)
	if len(q.Zones) == 0 || q.Zones[0].Why != "the zone was missing" {
		t.Errorf("the queue: %+v", q.Zones)
	}
	res := w.call(http.MethodPost, "/v1/zones/default/thaw", api.OrderRequest{Reason: "INC-7"}, nil)
	if res.StatusCode != http.StatusOK {
		t.Errorf("thaw: %s", res.Status)
	}
}
