package server_test

import (
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
)

// The page of rollouts has tasks in waves and chains; a chain is taken back on its page.
func TestARolloutAndAChainHaveTheirPages(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: pairs, runbooks: []string{ownBook, ownBack}})
	w.manned()
	waves := run("fw001,fw002")
	waves.Rollout = &jobs.RolloutAsk{Stages: jobs.Stages{Waves: []string{"1", "100%"}, Gate: true}}
	task := string(w.submit(waves).Task)
	chain := string(w.submit(api.Submit{Runbook: "own", On: "fw001",
		Rollout: &jobs.RolloutAsk{ChainAsk: jobs.ChainAsk{RollBack: true}}}).Task)
	if _, text := w.page("/rollouts", nil); !strings.Contains(text, "/tasks/"+task) ||
		!strings.Contains(text, "1 of 2") || !strings.Contains(text, "/chains/"+chain) {
		t.Fatalf("the page of rollouts lacks one:\n%s", text)
	}
	if _, text := w.page("/chains/"+chain, nil); !strings.Contains(text, `id="order-undo"`) ||
		strings.Contains(text, `id="order-next"`) || !strings.Contains(text, "not submitted") {
		t.Fatalf("the page of the chain:\n%s", text)
	}
	order := "/chains/" + chain + "/order/undo"
	_, ask := w.page(order, nil)
	form := hidden(ask)
	if res, text := w.post(order, form, nil); res.StatusCode != 422 || !strings.Contains(text, "a reason is needed") {
		t.Fatalf("without a reason: %s\n%s", res.Status, text)
	}
	form.Set("reason", "customers are cut off")
	if res, text := w.post(order, form, nil); res.StatusCode != 303 ||
		res.Header.Get("Location") != "/chains/"+chain+"?did=undo" {
		t.Fatalf("%s to %q\n%s", res.Status, res.Header.Get("Location"), text)
	}
	var now jobs.ChainInfo
	if w.call("GET", "/v1/chains/"+chain, nil, &now); !strings.HasSuffix(now.Undo, ": customers are cut off") {
		t.Errorf("the chain says %q", now.Undo)
	}
	if res, text := w.page("/chains/"+chain+"/order/dance", nil); res.StatusCode != 404 {
		t.Errorf("an order that is none: %s\n%s", res.Status, text)
	}
	if res, _ := w.page("/chains/0000000000", nil); res.StatusCode != 404 {
		t.Errorf("a chain that is none: %s", res.Status)
	}
}
