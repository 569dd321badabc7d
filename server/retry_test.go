package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server"
)

// ways has the ends of the hosts of a task, by the last letter of their name.
func ways(host string) jobs.Result {
	r := jobs.Result{Outcome: jobs.Succeeded}
	switch host[len(host)-1] {
	case '2':
		r = jobs.Result{Outcome: jobs.Failed, Class: jobs.ClassUser, Error: "no"}
	case '3':
		r = jobs.Result{Outcome: jobs.Unreachable, Error: "refused"}
	}
	return r
}

func TestARetryDoesTheSameAgain(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	body := api.Submit{Runbook: "label", On: "fw*", Args: map[string]string{"word": "it"}, Expire: "90m",
		Supersedes: "k", As: "bob"}
	old := w.submit(body).Task
	w.work("default", ways)
	w.work("eu", ways)
	path := "/v1/tasks/" + string(old) + "/retry"

	var dry api.Retried
	res := w.call("POST", path, api.RetryRequest{DryRun: true}, &dry)
	if res.StatusCode != 200 || dry.Hosts != "fw002" || dry.Total != 1 || dry.Task != "" || dry.RetryOf != old {
		t.Errorf("dry run: %s %+v", res.Status, dry)
	}
	if res := w.call("POST", path, nil, &dry); res.StatusCode != 201 || dry.Total != 1 {
		t.Errorf("without a body: %s %+v, want the failed one", res.Status, dry)
	}
	ask := api.RetryRequest{ID: "0123456789", Outcomes: []jobs.Outcome{jobs.Failed, jobs.Unreachable},
		Again: true}
	ask.Reason = " the cable is back "
	var got api.Retried
	if res := w.call("POST", path, ask, &got); res.StatusCode != http.StatusCreated || got.Total != 2 ||
		got.RetryOf != old || got.Operator != "alice" || got.Runbook != "label" || got.Open != 0 ||
		got.Reason != "the cable is back" {
		t.Fatalf("retry: %s %+v", res.Status, got)
	}
	if res := w.call("POST", path, ask, &got); res.StatusCode != http.StatusOK || got.Task != "0123456789" {
		t.Errorf("the same once more: %s %+v", res.Status, got)
	}
	before, err := w.queue.Spec(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	after, err := w.queue.Spec(t.Context(), "0123456789")
	if err != nil {
		t.Fatal(err)
	}
	before.Operator, before.On, before.Created, before.RetryOf = "alice", "fw[002-003]", after.Created, old
	before.Reason = "the cable is back"
	before.Supersedes = "" // it has the content of the old one, and ends nothing newer
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("spec (-old +new):\n%s", diff)
	}
}

func TestARetryOfARunningTaskTakesWhatHasEnded(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	old := w.submit(run("fw*")).Task
	w.work("default", ways)
	path := "/v1/tasks/" + string(old) + "/retry"
	var got api.Retried
	if res := w.call("POST", path, nil, &got); res.StatusCode != 201 || got.Total != 1 || got.Open != 1 {
		t.Errorf("%s %+v, want 1 job and 1 open", res.Status, got)
	}
	var p problem
	ask := api.RetryRequest{Outcomes: []jobs.Outcome{jobs.Unknown, jobs.Timeout}}
	if res := w.call("POST", path, ask, &p); res.StatusCode != 422 || !strings.Contains(p.words(),
		"is known to have ended unknown or timeout; 1 have not ended") {
		t.Errorf("nothing to do again: %s %s", res.Status, p.words())
	}
	ask = api.RetryRequest{ID: "x", Outcomes: []jobs.Outcome{"good"}}
	p = problem{}
	if w.call("POST", path, ask, &p); !strings.Contains(p.words(), `body.outcomes[0]: "good": want one of`) ||
		!strings.Contains(p.words(), "body.id") {
		t.Errorf("all mistakes: %s", p.words())
	}
	ask = api.RetryRequest{ID: string(old)}
	p = problem{}
	if res := w.call("POST", path, ask, &p); res.StatusCode != 409 {
		t.Errorf("under the id of another task: %s %s", res.Status, p.words())
	}
	var tasks api.TaskList
	if w.call("GET", "/v1/tasks", nil, &tasks); len(tasks.Tasks) != 2 {
		t.Errorf("%d tasks, want 2: mistakes made tasks", len(tasks.Tasks))
	}
}

func TestARetryGoesToTheHostsOfToday(t *testing.T) {
	t.Parallel()
	list := many(5)
	w := start(t, setup{inventory: func() (*fleet.Inventory, error) { return fleet.New(list) }})
	old := w.submit(run("all")).Task
	w.work("default", func(string) jobs.Result {
		return jobs.Result{Outcome: jobs.Failed, Class: jobs.ClassOperator, Error: "no"}
	})
	list = list[:3]
	list[0].Zone = "moved"
	if err := w.server.Stock().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := "/v1/tasks/" + string(old) + "/retry"
	var p problem
	if res := w.call("POST", path, nil, &p); res.StatusCode != 422 || !strings.Contains(p.words(),
		"2 of 5 hosts are in the inventory no more: h[0003-0004]; leave them out with skip_missing") {
		t.Errorf("hosts that are gone: %s %s", res.Status, p.words())
	}
	var got api.Retried
	if res := w.call("POST", path, api.RetryRequest{SkipMissing: true}, &got); res.StatusCode != 201 ||
		got.Total != 3 || got.Skipped != "h[0003-0004]" || !cmp.Equal(got.Zones, []string{"default", "moved"}) {
		t.Errorf("without them: %s %+v", res.Status, got)
	}
	first := got.Task
	got = api.Retried{}
	if res := w.call("POST", path, api.RetryRequest{SkipMissing: true}, &got); res.StatusCode != 200 ||
		!got.Already || got.Task != first || got.Skipped != "h[0003-0004]" {
		t.Errorf("the same once more: %s %+v", res.Status, got)
	}
	list = many(1)
	list[0].Name = "other"
	if err := w.server.Stock().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = problem{}
	if res := w.call("POST", path, api.RetryRequest{SkipMissing: true, Again: true}, &p); res.StatusCode != 422 ||
		!strings.Contains(p.words(), "none of the 5 hosts") {
		t.Errorf("all gone: %s %s", res.Status, p.words())
	}
}

func TestARetryOfARunbookThatNobodyKnowsAnyMore(t *testing.T) {
	t.Parallel()
	// With a key of servers the task would need an order.
	w := start(t, setup{more: func(d *server.Deps) { d.ServerKeys = nil }})
	task := jobs.Task{ID: "0000000001", Total: 1, Spec: jobs.Spec{Runbook: "x", On: "fw001", Created: 1,
		Timeout: 1e9, Expire: 1e9, Action: json.RawMessage(`{"runbook":"x","when":"tomorrow"}`)}}
	if err := w.queue.Submit(t.Context(), task, map[string][]string{"default": {"fw001"}}, nil); err != nil {
		t.Fatal(err)
	}
	w.work("default", func(string) jobs.Result { return jobs.Result{Outcome: jobs.Failed} })
	var p problem
	w.call("POST", "/v1/tasks/0000000001/retry", nil, &p)
	if !strings.Contains(p.words(), "another version of muster") {
		t.Errorf("got %s", p.words())
	}
}
