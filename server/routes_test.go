package server_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/scripts"
)

// document has the parts of the OpenAPI document that tests read.
type document struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string
		Summary     string
		Responses   map[string]any
	}
	Components struct{ Schemas map[string]any }
}

// routes lists what the OpenAPI document names, with ids that nobody has.
func (w *world) routes() []string {
	w.t.Helper()
	var d document
	w.call("GET", "/openapi.json", nil, &d)
	var out []string
	replace := strings.NewReplacer("{task}", "0000000000", "{job}", "0000000000:fw001", "{name}", "nobody",
		"{customer}", "nobody", "{zone}", "nowhere", "{group}", "none",
		"{sum}", strings.Repeat("0", 64))
	for path, methods := range d.Paths {
		for method := range methods {
			out = append(out, strings.ToUpper(method)+" "+replace.Replace(path))
		}
	}
	slices.Sort(out)
	return out
}

func TestDocumentNamesEveryRoute(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	res, text := w.raw("GET", "/openapi.json", nil, nil)
	var d document
	if err := json.Unmarshal(text, &d); err != nil || res.StatusCode != 200 {
		t.Fatal(res.Status, err)
	}
	if d.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %q", d.OpenAPI)
	}
	want := map[string]string{
		"/v1/tasks": "get post", "/v1/tasks/{task}": "get", "/v1/tasks/{task}/jobs": "get",
		"/v1/tasks/{task}/summaries": "get", "/v1/tasks/{task}/output": "get",
		"/v1/tasks/{task}/waits": "get",
		"/v1/lanes":              "get", "/v1/dnssec": "get", "/v1/tasks/{task}/lane/continue": "post",
		"/v1/tasks/{task}/summary": "get", "/v1/tasks/{task}/cancel": "post", "/v1/jobs/{job}": "get",
		"/v1/jobs/{job}/ask":    "post",
		"/v1/jobs/{job}/output": "get", "/v1/events": "get", "/v1/hosts": "get", "/v1/hosts/{host}": "get",
		"/v1/hosts/query": "post", "/v1/hosts/drain": "post", "/v1/hosts/undrain": "post",
		"/v1/hosts/quarantine": "post", "/v1/hosts/unquarantine": "post", "/v1/quarantine": "get",
		"/v1/hosts/{host}/clear":   "post",
		"/v1/hosts/{host}/release": "post", "/v1/nodes": "get",
		"/v1/nodes/{node}/pause": "post", "/v1/nodes/{node}/resume": "post",
		"/v1/queue": "get", "/v1/queue/depth": "get", "/v1/upgrade": "get",
		"/v1/runbooks": "get", "/v1/runbooks/{runbook}": "get",
		"/v1/audit": "get", "/v1/audit/state": "get", "/v1/audit/export": "get", "/v1/audit/growth": "get",
		"/v1/audit/entries/{seq}": "get", "/v1/audit/entries/{seq}/proof": "get", "/v1/audit/erase": "post",
		"/v1/notify/messages": "get", "/v1/notify/messages/{message}": "get",
		"/v1/inbox": "get post", "/v1/inbox/{event}": "get", "/v1/inbox/{event}/replay": "get post",
		"/v1/ingress":          "get",
		"/v1/notify/receivers": "get", "/v1/notify/receivers/{receiver}/test": "post",
		"/v1/tokens": "get post", "/v1/tokens/{name}": "delete", "/v1/sessions": "get",
		"/v1/sessions/{session}": "delete", "/v1/login/links": "post", "/v1/logout": "post",
		"/v1/whoami": "get", "/v1/health": "get", "/metrics": "get",
		"/v1/tasks/{task}/pause": "post", "/v1/tasks/{task}/resume": "post", "/v1/tasks/{task}/retry": "post",
		"/v1/tasks/{task}/rollout/stop": "post", "/v1/tasks/{task}/rollout/next": "post", "/v1/rollouts": "get",
		"/v1/tasks/{task}/gates/open": "post", "/v1/tasks/{task}/gates/refuse": "post", "/v1/gates": "get",
		"/v1/chains": "get", "/v1/chains/{chain}": "get", "/v1/chains/{chain}/next": "post",
		"/v1/chains/{chain}/undo":        "post",
		"/v1/customers/{customer}/pause": "post", "/v1/customers/{customer}/resume": "post",
		"/v1/zones/{zone}/pause": "post", "/v1/zones/{zone}/resume": "post", "/v1/zones/{zone}/thaw": "post",
		"/v1/zones/{zone}/fsck": "post", "/v1/halt": "post", "/v1/lift": "post", "/v1/pauses": "get",
		"/v1/agreed": "get", "/v1/agreed/restore": "post", "/v1/agreed/forsake": "post",
		"/v1/triggers": "get", "/v1/triggers/{trigger}": "get", "/v1/triggers/test": "post",
		"/v1/repositories": "get", "/v1/repositories/{repository}/poll": "post",
		"/v1/firings": "get",
		"/v1/windows": "get put", "/v1/windows/adopt": "post", "/v1/windows/{window}/next": "get",
		"/v1/windows/{window}/approve": "post", "/v1/approvals/{approval}/withdraw": "post",
		"/v1/approvals": "get", "/v1/approvals/{task}": "delete get post",
		"/v1/approvals/{task}/signature": "delete", "/v1/reviews": "get", "/v1/reviews/{task}": "post",
		"/v1/hosts/{host}/next": "get", "/v1/hosts/{host}/windows": "get",
		"/v1/freezes": "post", "/v1/freezes/{freeze}/lift": "post",
		"/v1/groups": "get", "/v1/inventory": "get",
		"/v1/groups/{group}/clear": "post", "/v1/limits": "get",
		"/v1/facts": "get", "/v1/tasks/{task}/facts": "post",
		"/v1/history": "get", "/v1/history/state": "get", "/v1/history/export": "get",
		"/v1/history/events": "get", "/v1/jobs/{job}/course": "get",
		"/v1/tasks/{task}/report": "get", "/v1/plan": "post", "/v1/plan/calibration": "get",
		"/v1/plan/openings": "get", "/v1/calendar": "get", "/v1/windows/propose": "post",
		"/v1/blobs": "get", "/v1/blobs/{sum}": "delete get put",
		"/v1/apply": "post", "/v1/applies": "get", "/v1/applies/{apply}": "get", "/v1/entries": "get",
		"/v1/schedules": "get post", "/v1/schedules/{schedule}": "get",
		"/v1/schedules/{schedule}/next": "get", "/v1/schedules/{schedule}/run": "post",
		"/v1/schedules/{schedule}/pause": "post", "/v1/schedules/{schedule}/resume": "post",
		"/v1/schedules/{schedule}/remove": "post",
	}
	for path, methods := range want {
		if got := strings.Join(slices.Sorted(maps.Keys(d.Paths[path])), " "); got != methods {
			t.Errorf("%s: got %q, want %q", path, got, methods)
		}
	}
	ids := map[string]string{}
	for path, methods := range d.Paths {
		if want[path] == "" {
			t.Errorf("%s is not expected", path)
		}
		for method, op := range methods {
			if op.Summary == "" || op.OperationID == "" || ids[op.OperationID] != "" {
				t.Errorf("%s %s: id %q, summary %q; same id as %q", method, path, op.OperationID, op.Summary,
					ids[op.OperationID])
			}
			ids[op.OperationID] = path
		}
	}
	for _, name := range []string{"Submit", "TaskInfo", "JobInfo", "Summary", "Health", "ErrorModel"} {
		if d.Components.Schemas[name] == nil {
			t.Errorf("no schema %s", name)
		}
	}
	if strings.Contains(string(text), "$schema") {
		t.Error("answers carry links to schemas")
	}
}

func TestEveryRouteAnswersInWords(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for _, route := range w.routes() {
		method, path, _ := strings.Cut(route, " ")
		if path == "/v1/events" {
			continue // has no end
		}
		res, text := w.raw(method, path, nil, nil)
		switch {
		case res.StatusCode >= 500:
			t.Errorf("%s: %s %s", route, res.Status, text)
		case res.StatusCode >= 400:
			var p problem
			if err := json.Unmarshal(text, &p); err != nil || p.Status != res.StatusCode || p.Detail == "" {
				t.Errorf("%s: %s %s", route, res.Status, text)
			}
		}
	}
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for _, c := range []struct {
		method, path string
		want         int
		words        string
	}{
		{"GET", "/nowhere", 404, "there is no /nowhere: /openapi.json lists what there is"},
		{"GET", "/docs", 404, "there is no /docs"},
		{"GET", "/v1/task", 404, "there is no /v1/task"},
		{"PUT", "/v1/tasks", 405, "/v1/tasks takes GET, HEAD, POST"},
		{"GET", "/v1/tasks/0000000000", 404, "task 0000000000: not found: a task is kept for 70 days, the end of a " +
			"job for a day; `muster tasks` lists the newest"},
		{"GET", "/v1/tasks/X", 422, `path.task: task id "X": want 10 characters`},
		{"GET", "/v1/tasks/0000000000/jobs", 404, "not found"},
		{"GET", "/v1/tasks/0000000000/summary", 404, "not found"},
		{"POST", "/v1/tasks/0000000000/cancel", 404, "not found"},
		{"GET", "/v1/jobs/0000000000:fw001", 404, "not found"},
		{"GET", "/v1/jobs/0000000000:fw001/output", 404, "not found"},
		{"GET", "/v1/jobs/fw001", 422, `path.job: job id "fw001": want <task>:<host>`},
		{"GET", "/v1/jobs/0000000000:-oProxyCommand=x", 422, "path.job: "},
		{"GET", "/v1/jobs/0000000000:a%20b", 422, "path.job: "},
		{"DELETE", "/v1/tokens/nobody", 404, "there is no token \"nobody\"; `muster token ls` lists them"},
		{"GET", "/v1/hosts?on=nobody", 422, `query.on: selector "nobody": nobody is not in the inventory`},
		{"GET", "/v1/hosts?an=all", 422, "query.an: unknown query parameter"},
		{"GET", "/v1/tasks?limit=0", 422, "query.limit: expected number >= 1"},
		{"GET", "/v1/tasks/0000000000?wait=forever", 422, `query.wait: "forever": want seconds, 0 to 60`},
		{"GET", "/v1/tasks/0000000000?wait=61", 422, "query.wait"},
		{"GET", "/v1/tasks/0000000000?wait=-1s", 422, "query.wait"},
		{"GET", "/v1/tasks/X/jobs?state=x&outcome=y&cursor=z", 422, "query.state: \"x\": want one of [held queued"},
		{"GET", "/v1/tasks/X/jobs?state=x&outcome=y&cursor=z", 422, "query.outcome: \"y\": want one of [succeeded"},
		{"GET", "/v1/tasks/X/jobs?state=x&outcome=y&cursor=-1", 422, "query.cursor"},
		{"GET", "/v1/events?task=x", 422, "query.task"},
		{"GET", "/v1/pauses?task=x", 422, "query.task"},
		{"GET", "/v1/pauses?task=0000000000", 404, "not found"},
		{"POST", "/v1/tasks/X/pause", 422, "path.task"},
		{"POST", "/v1/tasks/0000000000/pause", 404, "not found"},
		{"POST", "/v1/tasks/0000000000/resume", 404, "not found"},
		{"POST", "/v1/tasks/0000000000/retry", 404, "not found"},
		{"POST", "/v1/tasks/X/retry", 422, "path.task"},
		{"POST", "/v1/customers/nobody/pause", 404, `no host of the inventory is of customer "nobody"`},
		{"POST", "/v1/customers/acmee/pause", 404, `is of customer "acmee", nearest: acme`},
		{"POST", "/v1/customers/acmee/resume", 404, `is of customer "acmee", nearest: acme; it was not paused`},
		{"POST", "/v1/customers/a%20b/pause", 422, "path.customer"},
		{"POST", "/v1/customers/a%20b/resume", 422, "path.customer"},
		{"POST", "/v1/zones/nowhere/pause", 404, `there is no zone "nowhere"`},
		{"POST", "/v1/zones/defalt/resume", 404, `there is no zone "defalt", nearest: default`},
		{"POST", "/v1/zones/hub/resume", 422, "path.zone"},
		{"POST", "/v1/zones/default/thaw", 422, "body.reason: a reason is needed"},
		{"POST", "/v1/lift", 422, "body.reason: a reason is needed"},
		{"POST", "/v1/groups/g/clear", 422, "body.reason: a reason is needed"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			var p problem
			res := w.call(c.method, c.path, nil, &p)
			if res.StatusCode != c.want || p.Status != c.want || !strings.Contains(p.words(), c.words) {
				t.Errorf("got %s %s, want %d %q", res.Status, p.words(), c.want, c.words)
			}
		})
	}
}

func TestOtherContentIsRefused(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	res, text := w.raw("POST", "/v1/tasks", run("fw001"), http.Header{"Content-Type": {"text/plain"}})
	if res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("got %s %s", res.Status, text)
	}
}

func TestListsOfTheHouse(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	now := jobs.Time{Time: time.Now()}
	if err := w.queue.Beat(t.Context(), jobs.Node{ID: "n1", PID: 7, State: "running", Seen: now}); err != nil {
		t.Fatal(err)
	}
	res, text := w.raw("GET", "/v1/nodes", nil, nil)
	var nodes api.NodeList
	if err := json.Unmarshal(text, &nodes); err != nil || len(nodes.Nodes) != 1 || nodes.Nodes[0].PID != 7 ||
		!strings.Contains(string(text), `"children":[]`) {
		t.Errorf("nodes: %s %s", res.Status, text)
	}
	var hosts api.HostList
	w.call("GET", "/v1/hosts?on="+"customer%3Dacme", nil, &hosts)
	if len(hosts.Hosts) != 3 || len(hosts.Version) != 16 {
		t.Errorf("hosts: %+v", hosts)
	}
	if w.call("GET", "/v1/hosts", nil, &hosts); len(hosts.Hosts) != 4 {
		t.Errorf("all hosts: %+v", hosts)
	}
	w.submit(run("fw*"))
	var depths api.QueueInfo
	if w.call("GET", "/v1/queue", nil, &depths); len(depths.Zones) != 2 || depths.Zones[0].Zone != "default" ||
		depths.Zones[0].Queued != 2 || depths.Zones[0].Due != 2 {
		t.Errorf("queue: %+v", depths)
	}
	var books api.RunbookList
	w.call("GET", "/v1/runbooks", nil, &books)
	var names []string
	for _, b := range books.Runbooks {
		names = append(names, b.Name)
	}
	i := slices.Index(names, "exec")
	if i < 0 || books.Runbooks[i].Arguments[0].Name != "cmd" || !slices.Contains(names, "label") ||
		!slices.IsSorted(names) {
		t.Errorf("runbooks: %+v", books)
	}
}

func TestRunbooksCanBeReplaced(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	catalog, err := scripts.NewCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.server.UseCatalog(catalog)
	var p problem
	body := api.Submit{Runbook: "label", On: "fw001", Args: map[string]string{"word": "a"}}
	if w.call("POST", "/v1/tasks", body, &p); !strings.Contains(p.words(), `no runbook "label"`) {
		t.Errorf("got %s", p.words())
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	if err := w.server.Duty(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.submit(run("fw*"))
	w.call("POST", "/v1/tasks", run("nobody"), nil)
	w.call("GET", "/nowhere/"+strings.Repeat("x", 50), nil, nil)
	w.work("default", succeed)
	if err := w.server.Duty(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, text := w.raw("GET", "/metrics", nil, nil)
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Fatal(res.Status, res.Header)
	}
	for _, line := range []string{
		`muster_build_info{version="1.2.3"} 1`, "muster_redis_up 1", "muster_inventory_hosts 4",
		`muster_queue_jobs{set="queued",zone="default"} 0`, `muster_queue_jobs{set="queued",zone="eu"} 1`,
		`muster_queue_jobs{set="due",zone="eu"} 1`, `muster_zone_frozen{zone="eu"} 0`,
		`muster_nodes{state="running"} 0`, `muster_tasks_open{state="running"} 1`,
		`muster_submits_total{result="accepted"} 1`,
		`muster_submits_total{result="refused"} 1`,
		`muster_http_requests_total{code="201",route="POST /v1/tasks"} 1`,
		`muster_http_requests_total{code="404",route="other"} 1`, "go_goroutines", "process_open_fds",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %s", line)
		}
	}
	if strings.Contains(string(text), "nowhere") {
		t.Error("what a client wrote is a label")
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}
