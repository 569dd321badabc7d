package server_test

import (
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
)

// A budget of failures, waves and a breaker are kept in one zone. For hosts of several zones a
// submit, its dry run and its plan are refused with the reason, and nothing is done in either zone.
func TestARuleForSeveralZonesIsRefused(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for name, ask := range map[string]jobs.RolloutAsk{
		"a budget":  {MaxFailed: "1"},
		"waves":     {Stages: jobs.Stages{Waves: []string{"1", "100%"}}},
		"a canary":  {Stages: jobs.Stages{Canary: "1"}},
		"a breaker": {MaxFailed: "50%", Breaker: "3/10m"},
	} {
		for _, path := range []string{"/v1/tasks", "/v1/plan"} {
			var p problem
			res := w.call("POST", path, api.Submit{Runbook: "exec", Args: map[string]string{"cmd": "true"}, On: "fw*",
				Rollout: &ask}, &p)
			const want = "body.rollout: the hosts are of 2 zones (default, eu), and a rule or waves are kept in one: " +
				"submit a task for each, as --on 'NAMES&{zone=default}' or --on 'LABELS,zone=default'"
			if res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.words(), want) {
				t.Errorf("%s at %s: %s %s", name, path, res.Status, p.words())
			}
		}
	}
	var list api.TaskList
	if w.call("GET", "/v1/tasks", nil, &list); len(list.Tasks) != 0 {
		t.Errorf("there are tasks: %+v", list.Tasks)
	}
	for _, on := range []string{"fw*&{zone=default}", "customer=acme,zone=default"} { // as the words say
		one := api.Submit{Runbook: "exec", Args: map[string]string{"cmd": "true"}, On: on,
			Rollout: &jobs.RolloutAsk{MaxFailed: "1"}}
		if res := w.call("POST", "/v1/tasks", one, nil); res.StatusCode != http.StatusCreated {
			t.Errorf("%s: %s", on, res.Status)
		}
	}
}
