package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
)

// The page of lanes says which one stands, and lets it continue behind a failure; whoever may only
// see is told why they may not.
func TestALaneContinuesOnItsPage(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	if _, text := w.page("/lanes", nil); !strings.Contains(text, "No task that you may see is in a lane") {
		t.Errorf("an empty house:\n%s", text)
	}
	first := w.inLane("fw001", "gate")
	second := w.inLane("fw001", "gate")
	order := "/tasks/" + string(first.Task) + "/order/continue"
	w.inTurn("running", "waiting")
	if _, text := w.page("/lanes", nil); strings.Contains(text, order) || !strings.Contains(text, "rules/acme") ||
		!strings.Contains(text, "it waits for task "+string(first.Task)) {
		t.Errorf("before the failure:\n%s", text)
	}
	for _, g := range w.take("default") {
		w.end("default", g, jobs.Failed)
	}
	w.inTurn("failed", "waiting")
	if _, text := w.page("/", nil); !strings.Contains(text, "lane rules/acme") {
		t.Errorf("the first page does not say that a lane stands:\n%s", text)
	}
	_, text := w.page("/lanes?task="+string(second.Task), nil)
	if !strings.Contains(text, "It stands: ") || !strings.Contains(text, order) {
		t.Fatalf("the lane stands:\n%s", text)
	}
	if _, text := w.page("/lanes?key=another", nil); !strings.Contains(text, "No lane that you may see is like that") {
		t.Errorf("another lane:\n%s", text)
	}
	var seer api.TokenAnswer
	w.call("POST", "/v1/tokens", api.TokenRequest{Name: "see", Owner: "user:carol",
		Scope: &api.TokenScope{Verbs: []string{"see"}}}, &seer)
	if _, text := w.page("/lanes", bearing(seer.Token)); strings.Contains(text, order) ||
		!strings.Contains(text, "You may not let the lane continue: ") {
		t.Errorf("who may only see:\n%s", text)
	}
	_, ask := w.page(order, nil)
	form := hidden(ask)
	if !strings.Contains(ask, "1 task waits behind it") || form.Get("n") != "1" {
		t.Fatalf("the order says:\n%s", ask)
	}
	if res, _ := w.post(order, form, nil); res.StatusCode != 422 {
		t.Errorf("without a reason: %s", res.Status)
	}
	form.Set("reason", "fw001 has its old rules")
	if res, _ := w.post(order, form, bearing(seer.Token)); res.StatusCode != 403 {
		t.Errorf("who may only see gives the order: %s", res.Status)
	}
	res, text := w.post(order, form, nil)
	if res.StatusCode != 303 || res.Header.Get("Location") != "/lanes?key=rules%2Facme&did=continue" {
		t.Fatalf("%s to %q\n%s", res.Status, res.Header.Get("Location"), text)
	}
	w.inTurn("running")
	if res, _ := w.post(order, form, nil); res.StatusCode != 409 {
		t.Errorf("a second time: %s", res.Status)
	}
}

// A node is paused and resumed on its page, with a reason; a note of a node is text.
func TestANodeIsPausedOnItsPage(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	token := w.token("admin")
	admin := bearing(token)
	n := jobs.Node{ID: "n1", State: "running", Zones: []string{"default"}, Seen: jobs.Time{Time: time.Now()},
		Note: "<script>alert(1)</script>"}
	if err := w.queue.Beat(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	const order = "/nodes/n1/order/pause"
	_, raw := w.raw("GET", "/nodes", nil, admin)
	if strings.Contains(string(raw), "<script>alert") || !strings.Contains(string(raw), "&lt;script&gt;alert") ||
		!strings.Contains(string(raw), order) {
		t.Errorf("the nodes:\n%s", raw)
	}
	if _, text := w.page("/nodes", bearing(w.token("viewer"))); strings.Contains(text, order) ||
		!strings.Contains(text, "You may give no order about them: ") {
		t.Errorf("who may only see:\n%s", text)
	}
	_, ask := w.page(order, admin)
	if !strings.Contains(ask, "No other node that runs has the zones default") {
		t.Errorf("the order does not say that nothing will start:\n%s", ask)
	}
	form := hidden(ask)
	if res, _ := w.post(order, form, admin); res.StatusCode != 422 {
		t.Errorf("without a reason: %s", res.Status)
	}
	form.Set("reason", "new memory")
	if res, text := w.post(order, form, admin); res.StatusCode != 303 || res.Header.Get("Location") != "/nodes?did=pause" {
		t.Fatalf("%s\n%s", res.Status, text)
	}
	var list api.NodeList
	w.callAs("GET", "/v1/nodes", token, &list)
	if !strings.Contains(list.Nodes[0].Note, "it has not taken this order yet") ||
		!strings.Contains(list.Nodes[0].Note, "new memory") {
		t.Errorf("the node: %+v", list.Nodes[0])
	}
	n.Paused = &jobs.Pause{Note: "admin: new memory", At: jobs.Time{Time: time.Now()}}
	if err := w.queue.Beat(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if _, text := w.page("/nodes", admin); !strings.Contains(text, "paused, running") ||
		!strings.Contains(text, "/nodes/n1/order/resume") {
		t.Errorf("the paused node:\n%s", text)
	}
	if res, _ := w.page("/nodes/n1/order/dance", admin); res.StatusCode != http.StatusNotFound {
		t.Errorf("an order that is none: %s", res.Status)
	}
}
