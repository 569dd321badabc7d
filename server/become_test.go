package server_test

import (
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/fleet"
	"muster/scripts"
)

// Ansible would run the commands of such a host as another user, in a way that muster has not:
// they are not run as somebody else than is meant.
func TestHostsWhoseUserCannotBeBecomeAreRefused(t *testing.T) {
	t.Parallel()
	list := hosts()
	list[1].Labels = map[string]string{fleet.BecomeLabel: "root"}
	w := start(t, setup{inventory: fixed(list)})
	for _, dry := range []bool{true, false} {
		body := api.Submit{Runbook: "facts", On: "all", DryRun: dry}
		var problem struct{ Errors []struct{ Message string } }
		res := w.call("POST", "/v1/tasks", body, &problem)
		if res.StatusCode != http.StatusUnprocessableEntity || len(problem.Errors) != 1 ||
			!strings.Contains(problem.Errors[0].Message, "on "+list[1].Name+" Ansible would become another user in a way") {
			t.Errorf("dry run %v: %s, %+v", dry, res.Status, problem)
		}
	}
	list[1].Become = fleet.BecomeNone
	w = start(t, setup{inventory: fixed(list)})
	w.submit(api.Submit{Runbook: "facts", On: "all"})
}

func TestThePasswordOfSudoIsSealedLikeASecret(t *testing.T) {
	t.Parallel()
	list := hosts()
	list[0].User, list[0].Become = "ops", fleet.BecomeSudo
	w := start(t, setup{inventory: fixed(list), runbooks: []string{withSecret}, more: sealing(keyring(1))})
	body := api.Submit{ID: "0123456789", Runbook: "password", On: list[0].Name,
		Secrets: map[string]string{"password": "x", scripts.BecomePassword: swordfish}}
	w.submit(body)
	w.opened("0123456789") // it is not in the open
	spec, err := w.queue.Spec(t.Context(), "0123456789")
	if err != nil {
		t.Fatal(err)
	}
	var f scripts.Frozen
	if err := f.UnmarshalJSON(spec.Action); err != nil {
		t.Fatal(err)
	}
	k, _ := keyring(1)()
	text, err := k.Open("0123456789", scripts.BecomePassword, f.Values.Secrets[scripts.BecomePassword])
	if err != nil || string(text) != swordfish {
		t.Errorf("sealed was another text: %v", err)
	}
	if got := spec.Ran.Text(); got != "become.password=(secret) password=(secret)" {
		t.Errorf("it ran %q", got)
	}
	for _, bad := range []struct{ on, password, words string }{
		{list[1].Name, swordfish, "no host of this task has become: sudo"},
		{list[0].Name, "", "the password of sudo is empty"},
		{list[0].Name, swordfish + "\nx", "the password of sudo has more than one line"},
	} {
		body := api.Submit{Runbook: "facts", On: bad.on, Secrets: map[string]string{scripts.BecomePassword: bad.password}}
		var problem struct{ Errors []struct{ Message string } }
		res := w.call("POST", "/v1/tasks", body, &problem)
		if res.StatusCode != http.StatusUnprocessableEntity || len(problem.Errors) != 1 ||
			!strings.Contains(problem.Errors[0].Message, bad.words) || strings.Contains(problem.Errors[0].Message, swordfish) {
			t.Errorf("%s: %s, %+v", bad.words, res.Status, problem)
		}
	}
}
