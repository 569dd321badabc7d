package server_test

import (
	"strings"
	"testing"

	"muster/api"
)

// A plan leaves out what a submit with the same words would leave out, and says which hosts.
func TestAPlanLeavesOutWhatASubmitLeavesOut(t *testing.T) {
	t.Parallel()
	list := acme(5)
	list[4].Customer = "other"
	w := start(t, setup{inventory: fixed(list), runbooks: []string{windowedBook}})
	w.beat(10)
	w.agreed(twoMinutes)
	b := api.Submit{Runbook: "upgrade", On: "all"}
	if f := w.foresee(b); f.Hosts != 5 || f.Never != 1 {
		t.Errorf("all hosts: %d, of which %d never", f.Hosts, f.Never)
	}
	b.SkipClosed = true
	f := w.foresee(b)
	if f.Hosts != 4 || f.Never != 0 || !strings.Contains(strings.Join(f.Notes, "; "), "known for them: h0004") {
		t.Errorf("with skip_closed: %d hosts, %d never, notes %q", f.Hosts, f.Never, f.Notes)
	}
	b.On = "h0004"
	if res, text := w.raw("POST", "/v1/plan", b, nil); res.StatusCode != 422 ||
		!strings.Contains(string(text), "no approved window") {
		t.Errorf("nothing is left: %s %s", res.Status, text)
	}
}

// A plan runs nothing: of secrets it needs the names alone, and no key.
func TestAPlanNeedsNoSecret(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{withSecret}})
	if f := w.foresee(api.Submit{Runbook: "password", On: "fw*"}); f.Hosts != 3 {
		t.Errorf("without the secret: %+v", f)
	}
	text := map[string]string{"password": swordfish}
	res, said := w.raw("POST", "/v1/plan", api.Submit{Runbook: "password", On: "fw*", Args: text}, nil)
	if res.StatusCode != 422 || !strings.Contains(string(said), "is secret: given as a text") {
		t.Errorf("a plain text: %s %s", res.Status, said)
	}
	dry := api.Submit{Runbook: "password", On: "fw*", DryRun: true}
	if res, _ := w.raw("POST", "/v1/tasks", dry, nil); res.StatusCode != 422 {
		t.Errorf("a submit without the secret: %s", res.Status)
	}
}
