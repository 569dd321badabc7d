package server_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/scripts"
	"muster/windows"
)

// secretsOf returns the secrets of a task as Redis has them.
func (w *world) secretsOf(id jobs.TaskID) (map[string]string, jobs.Spec) {
	w.t.Helper()
	spec, err := w.queue.Spec(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	var f scripts.Frozen
	if err := f.UnmarshalJSON(spec.Action); err != nil {
		w.t.Fatal(err)
	}
	return f.Values.Secrets, spec
}

// A server needs no key for references. It keeps them as they are, also for a retry, and shows them.
func TestATaskHasTheReferenceToASecret(t *testing.T) {
	t.Parallel()
	list := hosts()
	list[0].User, list[0].Become = "ops", fleet.BecomeSudo
	w := start(t, setup{inventory: fixed(list), runbooks: []string{withSecret}})
	want := map[string]string{"password": "ref:vault:kv/{{host.name}}#pw", scripts.BecomePassword: "ref:cred:sudo"}
	w.submit(api.Submit{ID: "0123456789", Runbook: "password", On: list[0].Name, Args: want})
	got, spec := w.secretsOf("0123456789")
	if !maps.Equal(got, want) {
		t.Errorf("kept: %v", got)
	}
	if ran := spec.Ran.Text(); ran != "become.password=ref:cred:sudo password='ref:vault:kv/{{host.name}}#pw'" {
		t.Errorf("people see %q", ran)
	}
	w.work("default", ways)
	ask := api.RetryRequest{ID: "0123456780", Outcomes: jobs.Outcomes()}
	if res := w.call("POST", "/v1/tasks/0123456789/retry", ask, nil); res.StatusCode != http.StatusCreated {
		t.Fatalf("retry: %s", res.Status)
	}
	if got, _ := w.secretsOf("0123456780"); !maps.Equal(got, want) {
		t.Errorf("the retry has %v", got)
	}
}

func TestASealedSecretAndAReferenceGoTogether(t *testing.T) {
	t.Parallel()
	list := hosts()
	list[0].User, list[0].Become = "ops", fleet.BecomeSudo
	w := start(t, setup{inventory: fixed(list), runbooks: []string{withSecret}, more: sealing(keyring(1))})
	w.submit(api.Submit{ID: "0123456789", Runbook: "password", On: list[0].Name,
		Secrets: map[string]string{"password": swordfish}, Args: map[string]string{scripts.BecomePassword: "ref:cred:sudo"}})
	w.work("default", ways)
	ask := api.RetryRequest{ID: "0123456780", Outcomes: jobs.Outcomes()}
	if res := w.call("POST", "/v1/tasks/0123456789/retry", ask, nil); res.StatusCode != http.StatusCreated {
		t.Fatalf("retry: %s", res.Status)
	}
	for _, id := range []jobs.TaskID{"0123456789", "0123456780"} {
		if got, _ := w.secretsOf(id); got[scripts.BecomePassword] != "ref:cred:sudo" || w.opened(id) != swordfish {
			t.Errorf("task %s has %v", id, got)
		}
	}
}

func TestABadReferenceIsRefused(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{withSecret}})
	for _, c := range []struct {
		path string
		args map[string]string
		want string
	}{
		{"/v1/tasks", map[string]string{"password": "ref:" + swordfish},
			`argument "password": the reference names no known place`},
		{"/v1/plan", map[string]string{"password": "ref:vault:kv/" + swordfish}, "names no field"},
		{"/v1/tasks", map[string]string{"password": "vault:kv/" + swordfish + "#pw"}, "is secret: given as a text"},
		{"/v1/tasks", map[string]string{"password": "ref:cred:x", scripts.BecomePassword: "ref:cred:x"},
			"no host of this task has become: sudo"},
	} {
		var p problem
		res := w.call("POST", c.path, api.Submit{Runbook: "password", On: "fw001", Args: c.args}, &p)
		if text := p.words(); res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, c.want) ||
			strings.Contains(text, swordfish) {
			t.Errorf("%v: %s %s, want %q", c.args, res.Status, text, c.want)
		}
	}
}

// A schedule keeps its arguments in the open, and a reference is no secret.
func TestAScheduleMayReferToSecrets(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{withSecret}})
	apply := func(args string) (int, string) {
		body := api.ApplySchedules{Files: []windows.File{{Name: "s.yaml", Content: `schedules:
  - {name: nightly, cron: "0 2 * * *", zone: UTC, runbook: password, on: all, args: ` + args + `}
`}}}
		res, text := w.raw("POST", "/v1/schedules", body, nil)
		return res.StatusCode, string(text)
	}
	for args, want := range map[string]string{
		`{password: "ref:` + swordfish + `"}`: "argument password: the reference names no known place",
		`{}`:                                  "secret arguments (password)",
		`{password: "ref:cred:x", become.password: ` + swordfish + `}`: "secret arguments (become.password)",
	} {
		if code, text := apply(args); code != http.StatusUnprocessableEntity || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", args, code, text)
		}
	}
	if code, text := apply(`{password: "ref:vault:kv/fw#pw"}`); code != http.StatusOK {
		t.Errorf("with a reference: %d %s", code, text)
	}
	if list, err := w.queue.Schedules(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("kept: %+v, %v", list, err)
	}
}

const stagedSecret = `
name: staged
staging: stage
arguments:
  password: {type: secret}
  stage: {type: bool, default: false}
steps: [{name: use, run: "printf %s {{password}}; echo {{stage}}"}]
`

// A secret is sealed for one task. A reference goes to all tasks of a chain, and to health checks.
func TestChainsAndHealthChecksHaveReferences(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{withSecret, stagedSecret}, more: sealing(keyring(1))})
	args := map[string]string{"password": "ref:cred:x"}
	at := jobs.Time{Time: time.Now().Add(time.Hour)}
	chain := api.Submit{ID: "0123456789", Runbook: "staged", On: "fw001", Args: args, Timed: api.Timed{}, At: at,
		Rollout: &jobs.RolloutAsk{ChainAsk: jobs.ChainAsk{Staged: true}}}
	made := w.submit(chain)
	if made.Chain == "" {
		t.Fatalf("no chain: %+v", made)
	}
	if got, _ := w.secretsOf(made.Task); !maps.Equal(got, args) {
		t.Errorf("its first task has %v", got)
	}
	w.submit(api.Submit{ID: "0123456780", Runbook: "facts", On: "zone=default",
		Rollout: &jobs.RolloutAsk{Stages: jobs.Stages{Canary: "1", Health: "password", HealthArgs: args}}})
	_, spec := w.secretsOf("0123456780")
	if text, err := json.Marshal(spec); err != nil || !strings.Contains(string(text), "ref:cred:x") {
		t.Errorf("the health check: %s, %v", text, err)
	}
}
