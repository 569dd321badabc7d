package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/scripts"
	"muster/server"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// eachRedis runs a test on the embedded Redis and on a real one.
func eachRedis(t *testing.T, test func(t *testing.T, cfg queue.Config)) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		_, cfg := redistest.StartMini(t)
		test(t, cfg)
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		test(t, redistest.StartServer(t).Config())
	})
}

func TestTaskGoesFromSubmitToItsEnd(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, cfg queue.Config) {
		w := start(t, setup{redis: &cfg,
			more: func(d *server.Deps) { d.Queue.Durable = "appendfsync everysec" }})
		got := w.submit(run("fw*"))
		if got.Total != 3 || got.State != jobs.TaskQueued || got.Operator != "alice" || got.Proven ||
			got.Durable != "appendfsync everysec" || !cmp.Equal(got.Zones, []string{"default", "eu"}) {
			t.Errorf("submit answers %+v", got)
		}
		path := "/v1/tasks/" + string(got.Task)

		w.work("default", succeed)
		var list api.JobList
		w.call("GET", path+"/jobs", nil, &list)
		if len(list.Jobs) != 3 || list.Jobs[0].Outcome != jobs.Succeeded || list.Jobs[2].State != jobs.Queued {
			t.Errorf("jobs after the first zone: %+v", list)
		}

		var c jobs.Cancel
		w.call("POST", path+"/cancel", api.OrderRequest{Reason: "too late"}, &c)
		if want := (jobs.Cancel{Task: got.Task, Ended: 1, Already: 2}); c != want {
			t.Errorf("cancel: got %+v, want %+v", c, want)
		}
		var end jobs.TaskInfo
		w.call("GET", path, nil, &end)
		if end.State != jobs.TaskEnded || end.Outcomes[jobs.Succeeded] != 2 ||
			end.Outcomes[jobs.Cancelled] != 1 || end.Cancelled != "cancelled by alice (unproven): too late" {
			t.Errorf("task at its end: %+v", end)
		}
		var tasks api.TaskList
		w.call("GET", "/v1/tasks", nil, &tasks)
		if len(tasks.Tasks) != 1 || tasks.Tasks[0].Task != got.Task {
			t.Errorf("tasks: %+v", tasks)
		}
		redistest.Check(t, cfg.URL, "default")
		redistest.Check(t, cfg.URL, "eu")
	})
}

func TestSpecOfATaskIsFrozen(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	w.submit(api.Submit{Runbook: "label", On: "customer=acme", Expire: "90m", As: "bob",
		Priority: "high", Args: map[string]string{"word": "it's"[:2]}})
	reply, err := w.queue.Step(t.Context(), "eu", jobs.Step{Node: "n", Slot: "1", Request: "1", Want: 1})
	if err != nil || len(reply.Jobs) != 1 {
		t.Fatalf("take: %+v, %v", reply, err)
	}
	inv, _ := fleet.New(hosts())
	for _, s := range reply.Specs {
		var f scripts.Frozen
		if err := json.Unmarshal(s.Action, &f); err != nil {
			t.Fatal(err)
		}
		if len(f.Steps) != 2 || f.Values.Args["word"] != "it" || f.Values.Args["count"] != "3" {
			t.Errorf("frozen runbook: %+v", f)
		}
		s.Action, s.Created, s.Ran = nil, 0, nil
		want := jobs.Spec{Runbook: "label", Operator: "bob", On: "customer=acme", Inventory: inv.Version(),
			Timeout: jobs.AttemptTimeout(10 * time.Minute), Expire: 90 * time.Minute, Repeatable: true,
			Retry: jobs.Policy{Tries: 2, Delay: time.Second},
			Terms: jobs.Terms{Priority: jobs.PriorityHigh}, Timing: jobs.Timing{Expect: 15 * time.Minute, Unsaid: true}}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Error("spec:", diff)
		}
	}
	if g := reply.Jobs[0]; g.Host == nil || g.Host.Name != "fw003" {
		t.Errorf("the worker gets host %+v, want fw003 of the published inventory", g.Host)
	}
}

func TestSameSubmitAgainIsTheSameTask(t *testing.T) {
	t.Parallel()
	list := hosts()
	w := start(t, setup{inventory: func() (*fleet.Inventory, error) { return fleet.New(list) }})
	body := run("fw*")
	body.ID = "0123456789"
	first := w.submit(body)

	again := func(want string) {
		t.Helper()
		var out api.Submitted
		res := w.call("POST", "/v1/tasks", body, &out)
		if res.StatusCode != http.StatusOK || out.Task != first.Task || out.Total != 3 {
			t.Errorf("%s: %s %+v", want, res.Status, out)
		}
	}
	again("at once")
	// The frozen list counts, not what the selector would pick today.
	list = append(list, fleet.Host{Name: "fw004", Zone: "eu", Address: "10.0.0.9", Port: 22, User: "root",
		Fence: fleet.FenceNone})
	if err := w.server.Stock().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	again("after the inventory has changed")
	w.work("default", succeed)
	w.work("eu", succeed)
	again("after its end")

	for _, change := range []func(*api.Submit){
		func(b *api.Submit) { b.On = "vpn1" },
		func(b *api.Submit) { b.Runbook = "label" },
		func(b *api.Submit) { b.As = "bob" },
	} {
		other := body
		change(&other)
		var p problem
		res := w.call("POST", "/v1/tasks", other, &p)
		if res.StatusCode != http.StatusConflict || !strings.Contains(p.Detail, "it runs exec on fw* for alice") {
			t.Errorf("another task with this id, %+v: %s %s", other, res.Status, p.words())
		}
	}
	var tasks api.TaskList
	if w.call("GET", "/v1/tasks", nil, &tasks); len(tasks.Tasks) != 1 {
		t.Errorf("there are %d tasks, want 1", len(tasks.Tasks))
	}
}

// cutter is a queue whose first submit dies when some jobs are in.
type cutter struct {
	*queuetest.Queue
	times atomic.Int32
}

func (c *cutter) Submit(ctx context.Context, t jobs.Task, hosts map[string][]string, _ func(int)) error {
	if c.times.Add(1) > 1 {
		return c.Queue.Submit(ctx, t, hosts, nil)
	}
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	err := c.Queue.Submit(ctx, t, hosts, func(int) { cut() })
	if err == nil {
		return errors.New("it was to be cut off")
	}
	return errors.New("redis 127.0.0.1: put: connection reset by peer")
}

func TestHalfSubmitIsCompletedByTheSame(t *testing.T) {
	t.Parallel()
	w := start(t, setup{wrap: func(q *queuetest.Queue) everything { return &cutter{Queue: q} }})
	body := run("fw*")
	body.ID = "0123456789"
	var p problem
	if res := w.call("POST", "/v1/tasks", body, &p); res.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(p.Detail, "submit it again with id 0123456789") {
		t.Fatalf("half a submit: %s %s", res.Status, p.words())
	}
	var half jobs.TaskInfo
	if w.call("GET", "/v1/tasks/0123456789", nil, &half); half.State != jobs.TaskSubmitting {
		t.Fatalf("half a submit is %s, want submitting", half.State)
	}
	w.work("default", func(host string) jobs.Result {
		t.Errorf("%s runs of half a submit", host)
		return succeed(host)
	})
	if got := w.submit(body); got.Total != 3 || got.State != jobs.TaskQueued {
		t.Errorf("completed: %+v", got)
	}
}

func TestSubmitThatGotNoFurtherThanItsNameIsCompleted(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	w := start(t, setup{redis: &cfg})
	body := run("fw*")
	body.ID = "0123456789"
	// No zone takes anything, but the lists do.
	for _, zone := range []string{"default", "eu"} {
		m.Del("muster:{" + zone + "}:zone")
		if err := m.Set("muster:{"+zone+"}:zone", "x"); err != nil {
			t.Fatal(err)
		}
	}
	if res := w.call("POST", "/v1/tasks", body, nil); res.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("submit without zones: %s", res.Status)
	}
	m.Del("muster:{default}:zone")
	m.Del("muster:{eu}:zone")
	if got := w.submit(body); got.Total != 3 || got.State != jobs.TaskQueued {
		t.Errorf("completed: %+v", got)
	}
}

func TestSubmitOfAForgottenTaskIsRefused(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	var passed atomic.Int64
	w := start(t, setup{redis: &cfg, now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
	body := run("fw*")
	body.ID = "0123456789"
	w.submit(body)
	m.Del("muster:{default}:task:0123456789")
	m.Del("muster:{eu}:task:0123456789")
	passed.Store(int64(25 * time.Hour))
	var p problem
	res := w.call("POST", "/v1/tasks", body, &p)
	if res.StatusCode != http.StatusConflict || !strings.Contains(p.Detail, "not kept any more") {
		t.Errorf("got %s %s", res.Status, p.words())
	}
}

func TestHalfSubmitIsNotCompletedWithOtherHosts(t *testing.T) {
	t.Parallel()
	list := hosts()
	w := start(t, setup{wrap: func(q *queuetest.Queue) everything { return &cutter{Queue: q} },
		inventory: func() (*fleet.Inventory, error) { return fleet.New(list) }})
	body := run("fw*")
	body.ID = "0123456789"
	w.call("POST", "/v1/tasks", body, nil)
	list = list[:2]
	if err := w.server.Stock().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	var p problem
	res := w.call("POST", "/v1/tasks", body, &p)
	if res.StatusCode != http.StatusConflict || !strings.Contains(p.Detail, "no longer in force") {
		t.Errorf("got %s %s", res.Status, p.words())
	}
}

func TestTakenIDOfOurOwnIsMadeAnew(t *testing.T) {
	t.Parallel()
	now := time.Now()
	numbers := []uint16{7, 7, 7, 8}
	w := start(t, setup{now: func() time.Time { return now }, chance: func() uint16 {
		n := numbers[0]
		numbers = numbers[1:]
		return n
	}})
	first, second := w.submit(run("fw001")), w.submit(run("fw002"))
	if want := jobs.NewTaskID(now, 7); first.Task != want {
		t.Errorf("first id %s, want %s", first.Task, want)
	}
	if want := jobs.NewTaskID(now, 8); second.Task != want {
		t.Errorf("second id %s, want %s", second.Task, want)
	}
}

func TestDryRunDoesNothing(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	body := run("customer=acme")
	body.DryRun = true
	var out api.Submitted
	res := w.call("POST", "/v1/tasks", body, &out)
	if res.StatusCode != http.StatusOK || out.Task != "" || out.Total != 3 || out.Hosts != "fw[001-003]" {
		t.Errorf("dry run: %s %+v", res.Status, out)
	}
	var tasks api.TaskList
	if w.call("GET", "/v1/tasks", nil, &tasks); len(tasks.Tasks) != 0 {
		t.Errorf("a dry run made tasks: %+v", tasks)
	}
}

func TestFilesOfATask(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	var p problem
	body := `{"runbook":"exec","on":"fw001","args":{"cmd":"true"},"files":{"cmd":"` +
		base64.StdEncoding.EncodeToString([]byte("x")) + `"}}`
	w.call("POST", "/v1/tasks", body, &p)
	if !strings.Contains(p.words(), `argument "cmd" is of type string: give a text, not a file`) {
		t.Errorf("got %s", p.words())
	}
}

func TestEveryMistakeOfASubmitIsNamed(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for _, c := range []struct {
		name, body string
		status     int
		want       []string
	}{
		{"no JSON", `{"runbook":`, 400, []string{"body: unexpected end of JSON input"}},
		{"much that is no JSON", `{"runbook":` + strings.Repeat("x", 10000), 400, []string{"body: invalid character"}},
		{"nothing", ``, 400, []string{"request body is required"}},
		{"empty", `{}`, 422, []string{"runbook", "on"}},
		{"unknown key", `{"runbook":"exec","on":"fw001","argz":{}}`, 422,
			[]string{"body.argz: unexpected property"}},
		{"wrong type", `{"runbook":"exec","on":["fw001"]}`, 422, []string{"body.on: expected string"}},
		{"all at once", `{"id":"X","runbook":"exek","on":"fw00","expire":"tomorrow","at":"2020-01-01T00:00:00Z",
			"priority":"urgent"}`,
			422, []string{
				`body.id: task id "X": want 10 characters`,
				`body.runbook: no runbook "exek": did you mean "exec"?`,
				`body.on: selector "fw00": fw00 is not in the inventory; nearest: fw00`,
				`body.expire: "tomorrow": want a time from 1s to 720h`,
				`body.priority: priority "urgent": want high, normal or low`,
				`body.at: 2020-01-01T00:00:00.000Z is in the past`}},
		{"far ahead", `{"runbook":"exec","on":"fw001","at":"2099-01-01T00:00:00Z","args":{"cmd":"true"}}`, 422,
			[]string{"body.at: 2099-01-01T00:00:00.000Z is more than 30 days ahead"}},
		{"no time", `{"runbook":"exec","on":"fw001","at":"soon"}`, 422,
			[]string{"body.at: expected string to be RFC 3339"}},
		{"arguments", `{"runbook":"label","on":"fw001","args":{"word":"A","count":"10","wrod":"x"}}`, 422, []string{
			`body.args: runbook label has no argument "wrod": did you mean "word"?`,
			`body.args: argument "word"`, `body.args: argument "count"`}},
		{"missing argument", `{"runbook":"exec","on":"fw001"}`, 422, []string{`body.args: argument "cmd" is missing`}},
		{"missing label", `{"runbook":"label","on":"all","args":{"word":"a"}}`, 422,
			[]string{`body.on: runbook label, step "say": {{host.label.site}}: host vpn1 has no label "site"`}},
		{"nobody picked", `{"runbook":"exec","on":"customer=nobody","args":{"cmd":"true"}}`, 422,
			[]string{`body.on: selector "customer=nobody" picks no host`}},
		{"empty selector", `{"runbook":"exec","on":"","args":{"cmd":"true"}}`, 422,
			[]string{`body.on: selector "": is empty`}},
		{"operator", `{"runbook":"exec","on":"fw001","as":"a b","args":{"cmd":"true"}}`, 422,
			[]string{`body.as: operator: name "a b" has ' '`}},
		{"too big", `{"runbook":"` + strings.Repeat("x", 8<<20) + `"}`, 413, []string{"too large"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, text := w.raw("POST", "/v1/tasks", c.body, nil)
			var p problem
			if err := json.Unmarshal(text, &p); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status || p.Status != c.status {
				t.Errorf("got %s, status %d in the body; want %d", res.Status, p.Status, c.status)
			}
			if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("content type %q", got)
			}
			for _, words := range c.want {
				if !strings.Contains(p.words(), words) {
					t.Errorf("want %q in:\n%s", words, p.words())
				}
			}
			if len(text) > 4000 {
				t.Errorf("the answer has %d bytes", len(text))
			}
		})
	}
	var tasks api.TaskList
	if w.call("GET", "/v1/tasks", nil, &tasks); len(tasks.Tasks) != 0 {
		t.Errorf("mistakes made tasks: %+v", tasks)
	}
}

func TestManyHostsThatCannotRunItAreCounted(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(many(100))})
	var p problem
	body := api.Submit{Runbook: "label", On: "all", Args: map[string]string{"word": "a"}}
	w.call("POST", "/v1/tasks", body, &p)
	if !strings.Contains(p.words(), "host h0000 has no label") ||
		!strings.Contains(p.words(), "100 of 100 hosts cannot run it: h[0000-0099]") || len(p.Errors) != 4 {
		t.Errorf("got %d errors: %s", len(p.Errors), p.words())
	}
}

func TestServerWithoutInventorySaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := start(t, setup{more: func(d *server.Deps) { d.Inventory = nil }})
	var p problem
	res := w.call("POST", "/v1/tasks", run("all"), &p)
	if res.StatusCode != 422 || !strings.Contains(p.words(), "body.on: no inventory is configured") {
		t.Errorf("submit: %s %s", res.Status, p.words())
	}
	p = problem{}
	res = w.call("GET", "/v1/hosts", nil, &p)
	if res.StatusCode != 422 || !strings.Contains(p.words(), "no inventory is configured") {
		t.Errorf("hosts: %s %s", res.Status, p.words())
	}
	var h api.Health
	if res := w.call("GET", "/v1/health", nil, &h); res.StatusCode != 200 || h.Status != "ok" {
		t.Errorf("health: %s %+v", res.Status, h)
	}
}
