package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/testkit/redistest"
)

func TestRedisGoesAndComesBack(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	cfg := redis.Config()
	w := start(t, setup{redis: &cfg})
	task := w.submit(run("fw*")).Task
	// From the beginning: "from now on" would be when Redis is first reached, and
	// that may be after all of this.
	e := w.listen("", http.Header{"Last-Event-Id": {"default=0"}})
	e.next()

	redis.Stop()
	for _, path := range []string{"/v1/tasks", "/v1/tasks/" + string(task), "/v1/nodes", "/v1/queue", "/v1/tokens",
		"/v1/tasks/" + string(task) + "/jobs", "/v1/tasks/" + string(task) + "/summary"} {
		var p problem
		res := w.call("GET", path, nil, &p)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" ||
			!strings.Contains(p.Detail, "redis "+redis.Addr) {
			t.Errorf("%s: %s %s", path, res.Status, p.words())
		}
	}
	var p problem
	if res := w.call("POST", "/v1/tasks", run("fw*"), &p); res.StatusCode != 503 ||
		!strings.Contains(p.Detail, "nothing was accepted: submit it again") {
		t.Errorf("submit: %s %s", res.Status, p.words())
	}
	header := bearing("mst_aaaaaaaaaaaa_x")
	if res, _ := w.raw("GET", "/v1/tasks", nil, header); res.StatusCode != 503 {
		t.Errorf("a token that cannot be looked up: %s", res.Status)
	}
	var h api.Health
	if res := w.call("GET", "/v1/health", nil, &h); res.StatusCode != 503 ||
		h.Status != "redis cannot be used" || !strings.Contains(h.Redis, "refused") || h.Hosts != 4 {
		t.Errorf("health: %s %+v", res.Status, h)
	}
	if _, text := w.raw("GET", "/metrics", nil, nil); !strings.Contains(string(text), "muster_redis_up 0") {
		t.Errorf("metrics: %s", text)
	}
	for !strings.HasPrefix(e.next(), ": trouble: redis "+redis.Addr) {
	}

	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	// The client of the queue dials again after a second.
	for late, look := time.After(30*time.Second), time.Tick(20*time.Millisecond); ; {
		var info jobs.TaskInfo
		res, text := w.raw("GET", "/v1/tasks/"+string(task), nil, nil)
		if res.StatusCode == 200 && json.Unmarshal(text, &info) == nil && info.Total == 3 {
			break
		}
		select {
		case <-late:
			t.Fatalf("after Redis is back: %s %s", res.Status, text)
		case <-look:
		}
	}
	w.manned()
	if res := w.call("GET", "/v1/health", nil, &h); res.StatusCode != 200 || h.Redis != "ok" ||
		h.Status != "ok" && !strings.HasPrefix(h.Status, "nothing starts in zone ") {
		t.Errorf("health when it is back: %s %+v", res.Status, h)
	}
	second := w.submit(run("fw*")).Task
	e.until("commit", jobs.ID(second))
}

// A Redis that answers and takes nothing new is not called well. A full one is the affair of
// all servers, so none of them is taken from people, who can still look and cancel.
func TestARedisThatRefusesIsNotWell(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	cfg := redis.Config()
	w := start(t, setup{redis: &cfg})
	task := w.submit(run("fw*")).Task
	well := func(status int, words, redisSays string, full bool) {
		t.Helper()
		metric := "muster_redis_writes 0\n"
		if words == "ok" {
			metric = "muster_redis_writes 1\n"
		}
		var h api.Health
		if res := w.call("GET", "/v1/health", nil, &h); res.StatusCode != status || h.Status != words ||
			!strings.Contains(h.Redis, redisSays) || h.Full != full {
			t.Errorf("health: %s %+v, want %d, %q, %q", res.Status, h, status, words, redisSays)
		}
		if _, text := w.raw("GET", "/metrics", nil, nil); !strings.Contains(string(text), metric) {
			t.Errorf("metrics lack %s: %s", metric, text)
		}
	}
	w.manned()
	well(200, "ok", "ok", false)
	redis.Do(t, "CONFIG", "SET", "maxmemory", "1")
	well(200, "redis is full: submits are refused", "maxmemory is reached", true)
	if res := w.call("POST", "/v1/tasks/"+string(task)+"/cancel", nil, nil); res.StatusCode != 200 {
		t.Errorf("cancel: %s", res.Status)
	}
	redis.Do(t, "CONFIG", "SET", "maxmemory", "0")
	redis.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	well(503, "redis cannot be used", "fewer replicas", false)
	redis.Do(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	redis.Do(t, "REPLICAOF", "127.0.0.1", "1")
	well(503, "redis cannot be used", "replica", false)
	redis.Do(t, "REPLICAOF", "NO", "ONE")
	waitFor(t, "the end", func() bool {
		var h api.Health
		w.call("GET", "/v1/health", nil, &h)
		return h.Status == "ok"
	})
}

func TestReloadOfABadInventoryKeepsTheOldOne(t *testing.T) {
	t.Parallel()
	list, broken := hosts(), false
	w := start(t, setup{inventory: func() (*fleet.Inventory, error) {
		if broken {
			return nil, errBroken
		}
		return fleet.New(list)
	}})
	version := func() string {
		t.Helper()
		p, err := w.queue.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p.Version
	}
	first := version()

	broken = true
	if err := w.server.Stock().Reload(t.Context()); err == nil || err.Error() != "inventory: "+errBroken.Error() {
		t.Errorf("reload: %v", err)
	}
	var h api.Health
	if res := w.call("GET", "/v1/health", nil, &h); res.StatusCode != 200 || h.Inventory != first ||
		!strings.Contains(h.Status, "the earlier one stays in force: "+errBroken.Error()) {
		t.Errorf("health: %s %+v", res.Status, h)
	}
	w.submit(run("vpn1"))

	broken, list = false, list[:3]
	if err := w.server.Stock().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if version() == first {
		t.Error("the new inventory is not published")
	}
	w.manned()
	h = api.Health{}
	if w.call("GET", "/v1/health", nil, &h); h.Status != "ok" || h.Hosts != 3 || h.Inventory != version() {
		t.Errorf("health: %+v", h)
	}
	if res := w.call("POST", "/v1/tasks", run("vpn1"), nil); res.StatusCode != 422 {
		t.Errorf("submit for a host that is gone: %s", res.Status)
	}
}

func TestInventoryThatRedisForgotIsPublishedAgain(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	w := start(t, setup{redis: &cfg})
	m.FlushAll()
	if err := w.server.Duty(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := w.queue.Inventory(t.Context())
	if err != nil || p.Hosts != 4 {
		t.Errorf("published: %+v, %v", p, err)
	}
}

// A cluster that has lost the node of one zone has the hub, and with it the word that the inventory
// is published. That zone gets its hosts again all the same, at the latest before a submit.
func TestAZoneThatLostTheInventoryGetsItAgain(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	w := start(t, setup{redis: &cfg})
	lose := func() {
		for _, key := range m.Keys() {
			if strings.HasPrefix(key, "muster:{eu}:") {
				m.Del(key)
			}
		}
	}
	hostsOf := func() map[string]int {
		p, err := w.queue.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n, err := w.queue.HostsOf(t.Context(), p.Version, []string{"default", "eu"})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for what, do := range map[string]func(){
		"the duty": func() {
			if err := w.server.Duty(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"a submit": func() { w.submit(run("fw003")) },
	} {
		// The first round of the server, which may come in between, gives the hosts back as well.
		for lose(); hostsOf()["eu"] != 0; {
			lose()
		}
		do()
		if n := hostsOf(); n["eu"] != 2 || n["default"] != 2 {
			t.Errorf("after %s the zones have %v hosts, want 2 each", what, n)
		}
	}
	w.work("eu", succeed)
	if text := w.log.String(); !strings.Contains(text, "zones have lost the inventory: it is published again: zones=eu") {
		t.Errorf("the log does not say so:\n%s", text)
	}
}

func TestInventoryOfAnotherServerIsSaid(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	if err := w.queue.Publish(t.Context(), "0123456789abcdef", many(2), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Duty(t.Context()); err != nil {
		t.Fatal(err)
	}
	var h api.Health
	w.call("GET", "/v1/health", nil, &h)
	if !strings.Contains(h.Status, "another server has published inventory 0123456789abcdef with 2 hosts") {
		t.Errorf("health: %+v", h)
	}
	p, err := w.queue.Inventory(t.Context())
	if err != nil || p.Version != "0123456789abcdef" {
		t.Errorf("two servers fight: %+v, %v", p, err)
	}
}

func TestDutiesEndWhatNobodyCameFor(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	w := start(t, setup{redis: &cfg})
	body := run("fw*")
	body.Expire = "1m"
	task := w.submit(body)
	m.SetTime(task.Submitted.Add(2 * 60 * 1e9))
	if err := w.server.Duty(t.Context()); err != nil {
		t.Fatal(err)
	}
	var info jobs.TaskInfo
	w.call("GET", "/v1/tasks/"+string(task.Task), nil, &info)
	if info.State != jobs.TaskEnded || info.Outcomes[jobs.Expired] != 3 {
		t.Errorf("got %+v", info)
	}
}
