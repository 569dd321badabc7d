package server_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/internal/seal"
	"muster/jobs"
	"muster/scripts"
	"muster/windows"
)

const withSecret = `
name: password
arguments:
  password: {type: secret, max_length: 30}
steps: [{name: use, run: "printf %s {{password}}"}]
`

const swordfish = "swordfish-of-1932"

func keyring(b byte) func() (seal.Keys, error) {
	return func() (seal.Keys, error) {
		return seal.ParseKeys([]byte(seal.FormatKey([seal.KeySize]byte{b})))
	}
}

// opened opens the secret of a task as a worker does.
func (w *world) opened(id jobs.TaskID) string {
	w.t.Helper()
	spec, err := w.queue.Spec(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	if text := string(spec.Action); strings.Contains(text, swordfish) {
		w.t.Errorf("the task is kept as %s", text)
	}
	var f scripts.Frozen
	if err := f.UnmarshalJSON(spec.Action); err != nil {
		w.t.Fatal(err)
	}
	k, _ := keyring(1)()
	text, err := k.Open(string(id), "password", f.Values.Secrets["password"])
	if err != nil {
		w.t.Error(err)
	}
	return string(text)
}

func TestASecretIsSealedForItsTaskAndForItsRetry(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{withSecret}, more: sealing(keyring(1))})
	body := api.Submit{ID: "0123456789", Runbook: "password", On: "fw001", As: "bob",
		Secrets: map[string]string{"password": swordfish}}
	w.submit(body)
	if got := w.opened("0123456789"); got != swordfish {
		t.Errorf("sealed was %q", got)
	}
	if res := w.call("POST", "/v1/tasks", body, nil); res.StatusCode != http.StatusOK {
		t.Errorf("the same submit again: %s", res.Status)
	}
	body.ID = ""
	if id := w.submit(body).Task; w.opened(id) != swordfish {
		t.Error("with an id of the server's own it is another text")
	}
	w.work("default", ways)
	var again api.Retried
	ask := api.RetryRequest{ID: "0123456780", Outcomes: jobs.Outcomes()}
	if res := w.call("POST", "/v1/tasks/0123456789/retry", ask, &again); res.StatusCode != http.StatusCreated {
		t.Fatalf("retry: %s", res.Status)
	}
	if got := w.opened("0123456780"); got != swordfish {
		t.Errorf("the retry has %q", got)
	}
	if res := w.call("POST", "/v1/tasks/0123456789/retry", ask, nil); res.StatusCode != http.StatusOK {
		t.Errorf("the same retry again: %s", res.Status)
	}
	if text := w.log.String(); strings.Contains(text, "swordfish") {
		t.Errorf("the log has it: %s", text)
	}
}

func TestASecretThatCannotBeKeptIsRefused(t *testing.T) {
	t.Parallel()
	secret := map[string]string{"password": swordfish}
	for name, c := range map[string]struct {
		keys func() (seal.Keys, error)
		body api.Submit
		want string
	}{
		"no key": {nil, api.Submit{Secrets: secret}, "body.secrets: this server has no key for secrets"},
		"no file": {func() (seal.Keys, error) { return seal.Keys{}, errors.New("secrets.key: gone") },
			api.Submit{Secrets: secret, DryRun: true}, "body.secrets: secrets.key: gone"},
		"a plain text": {keyring(1), api.Submit{Args: secret}, `argument "password" is secret: given as a text`},
		"too long": {keyring(1), api.Submit{Secrets: map[string]string{"password": swordfish + swordfish}},
			"the secret does not match the pattern, or has more than 30"},
		"none": {keyring(1), api.Submit{}, `argument "password" is missing`},
	} {
		w := start(t, setup{runbooks: []string{withSecret}, more: sealing(c.keys)})
		c.body.Runbook, c.body.On, c.body.As = "password", "fw001", "bob"
		var p problem
		res := w.call("POST", "/v1/tasks", c.body, &p)
		if text := p.words(); res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, c.want) ||
			strings.Contains(text, "swordfish") || strings.Contains(w.log.String(), "swordfish") {
			t.Errorf("%s: %s %+v, want %q", name, res.Status, p, c.want)
		}
	}
}

func TestAScheduleWithSecretsIsRefusedBeforeItIsKept(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{withSecret}, more: sealing(keyring(1))})
	body := api.ApplySchedules{Files: []windows.File{{Name: "s.yaml", Content: `schedules:
  - {name: nightly, cron: "0 2 * * *", zone: UTC, runbook: password, on: all, args: {password: ` + swordfish + `}}
`}}}
	body.As = "bob"
	res, text := w.raw("POST", "/v1/schedules", body, nil)
	if res.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(string(text), "schedule nightly: the runbook password has secret arguments (password)") {
		t.Errorf("%s %s", res.Status, text)
	}
	if list, err := w.queue.Schedules(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("kept: %+v, %v", list, err)
	}
}
