package server_test

import (
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"muster/api"
	"muster/fleet"
)

// TestARunIsThatOfThePlan submits a plan: as it was shown, after the hosts have changed, and with
// another argument.
func TestARunIsThatOfThePlan(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[[]fleet.Host]
	all := hosts()
	now.Store(&all)
	w := start(t, setup{inventory: func() (*fleet.Inventory, error) { return fleet.New(slices.Clone(*now.Load())) }})
	newest := func() string {
		var list api.TaskList
		w.call("GET", "/v1/tasks?limit=1", nil, &list)
		if len(list.Tasks) == 0 {
			return ""
		}
		return string(list.Tasks[0].Task)
	}
	form := url.Values{"on": {"customer=acme"}, "arg.word": {"hello"}}
	wrong := url.Values{"on": {"customer=acme"}, "arg.word": {"UPPER"}}
	if res, text := w.post("/run/label", wrong, nil); res.StatusCode != 422 || !strings.Contains(text, "word") {
		t.Errorf("a wrong argument: %s\n%s", res.Status, text)
	}
	res, plan := w.post("/run/label", form, nil)
	if res.StatusCode != 200 || !strings.Contains(plan, "Plan: label on 3 hosts") || newest() != "" {
		t.Fatalf("the plan: %s, newest task %q\n%s", res.Status, newest(), plan)
	}
	shown := hidden(plan)
	shown.Set("go", "1")
	other := url.Values{}
	for k := range shown {
		other.Set(k, shown.Get(k))
	}
	other.Set("arg.word", "other")
	if res, _ := w.post("/run/label", other, nil); res.StatusCode != 409 || newest() != "" {
		t.Errorf("with another argument than that of the plan: %s, newest task %q", res.Status, newest())
	}

	fewer := all[1:]
	now.Store(&fewer)
	if err := w.server.Stock().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, text := w.post("/run/label", shown, nil)
	if res.StatusCode != 409 || newest() != "" || !strings.Contains(text, "Plan: label on 2 hosts") {
		t.Fatalf("on other hosts than those of the plan: %s, newest task %q\n%s", res.Status, newest(), text)
	}
	shown = hidden(text)
	shown.Set("go", "1")
	res, _ = w.post("/run/label", shown, nil)
	if res.StatusCode != 303 || newest() == "" || res.Header.Get("Location") != "/tasks/"+newest()+"?did=run" {
		t.Fatalf("the new plan: %s to %q", res.Status, res.Header.Get("Location"))
	}
}

// TestAHaltNeedsItsReason halts everything from a page, and lifts exactly that halt.
func TestAHaltNeedsItsReason(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	_, ask := w.page("/order/halt", nil)
	form := hidden(ask)
	if res, text := w.post("/order/halt", form, nil); res.StatusCode != 422 ||
		!strings.Contains(text, "a reason is needed") {
		t.Errorf("without a reason: %s\n%s", res.Status, text)
	}
	form.Set("reason", "smoke")
	if res, _ := w.post("/order/halt", form, nil); res.StatusCode != 303 {
		t.Fatalf("%s", res.Status)
	}
	if _, text := w.page("/", nil); !strings.Contains(text, "everything is halted") || !strings.Contains(text, "smoke") {
		t.Errorf("the first page does not say it:\n%s", text)
	}
	_, lift := w.page("/order/lift", nil)
	form.Set("reason", "no smoke")
	form.Set("set", "of another halt")
	if res, _ := w.post("/order/lift", form, nil); res.StatusCode != 409 {
		t.Errorf("a lift that was meant for another halt: %s", res.Status)
	}
	form = hidden(lift)
	form.Set("reason", "no smoke")
	if res, _ := w.post("/order/lift", form, nil); res.StatusCode != 303 {
		t.Errorf("%s", res.Status)
	}
	var p api.PauseList
	if w.call("GET", "/v1/pauses", nil, &p); p.Halted != "" {
		t.Errorf("halted: %s", p.Halted)
	}
}
