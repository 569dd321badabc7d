package server_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/testkit/sqltest"
)

// cellsOf returns the kind of each host of a map by its name.
func (w *world) cellsOf(path string) map[string]string {
	w.t.Helper()
	res, raw := w.raw("GET", path, nil, nil)
	var m struct {
		Names []string
		Cells string
		Kinds []struct{ Name, Fill, Mark string }
	}
	if err := json.Unmarshal(raw, &m); err != nil || res.StatusCode != 200 {
		w.t.Fatalf("%s: %s %v\n%s", path, res.Status, err, raw)
	}
	cells, err := base64.StdEncoding.DecodeString(m.Cells)
	if err != nil || len(cells) != len(m.Names) {
		w.t.Fatalf("%s: %d cells of %d hosts, %v", path, len(cells), len(m.Names), err)
	}
	out, look := map[string]string{}, map[string]string{}
	for i, name := range m.Names {
		k := m.Kinds[cells[i]]
		if other, has := look[k.Fill+" "+k.Mark]; has && other != k.Name {
			w.t.Errorf("%s: %q and %q look alike", path, other, k.Name)
		}
		out[name], look[k.Fill+" "+k.Mark] = k.Name, k.Name
	}
	return out
}

// TestTheFleetIsColouredByTheLastOutcome looks at the map, the legend and the folded table.
func TestTheFleetIsColouredByTheLastOutcome(t *testing.T) {
	t.Parallel()
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{history: store})
	ended := func(n int) {
		t.Helper()
		waitFor(t, "history", func() bool {
			list, _, err := store.Jobs(t.Context(), history.Filter{}, "", 100)
			return err == nil && len(list) == n
		})
	}
	w.submit(run("fw001,fw002,fw003"))
	w.work("default", succeed)
	w.work("eu", succeed)
	ended(3)
	w.submit(run("fw002"))
	w.work("default", func(host string) jobs.Result {
		r := succeed(host)
		r.Outcome, r.ExitCode = jobs.Failed, new(3)
		return r
	})
	ended(4)
	got := w.cellsOf("/fleet/map?colour=outcome")
	const none = "no job ended in the last 7 days"
	for host, want := range map[string]string{"fw001": "succeeded", "fw002": "failed", "fw003": "succeeded",
		"vpn1": none} {
		if got[host] != want {
			t.Errorf("%s is shown as %q, want %q", host, got[host], want)
		}
	}
	_, text := w.page("/fleet?colour=outcome&by=zone", nil)
	for _, want := range []string{"✓ succeeded: 2", "✕ failed: 1", none + ": 1", "1 ✓ succeeded, 1 ✕ failed",
		"/fleet?by=zone&colour=outcome&on=zone%3Deu"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
}

// TestAFleetWithoutHistoryHasNoOutcomes shows nothing good where nothing is known.
func TestAFleetWithoutHistoryHasNoOutcomes(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for host, kind := range w.cellsOf("/fleet/map?colour=outcome") {
		if kind != "not known" {
			t.Errorf("%s is shown as %q", host, kind)
		}
	}
	if _, text := w.page("/fleet?colour=outcome", nil); !strings.Contains(text, "history.url is none") {
		t.Errorf("the page does not say why:\n%s", text)
	}
}

// TestTheFleetIsColouredByFacts looks at a fact and at the age of facts.
func TestTheFleetIsColouredByFacts(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := w.submit(api.Submit{Runbook: "facts", On: "fw001,fw002"})
	w.work("default", factsOf("debian"))
	w.call("POST", "/v1/tasks/"+string(task.Task)+"/facts", nil, &api.Gathered{})
	got := w.cellsOf("/fleet/map?colour=fact.os")
	if got["fw001"] != "fact.os debian" || got["vpn1"] != "has no fact os" {
		t.Errorf("by a fact: %v", got)
	}
	got = w.cellsOf("/fleet/map?colour=age")
	if got["fw002"] != "age at most an hour old" || got["fw003"] != "never reported facts" {
		t.Errorf("by age: %v", got)
	}
	_, text := w.page("/fleet?colour=fact.os&by=zone", nil)
	for _, want := range []string{"debian: 2", "has no fact os: 2", `<option value="fact.kernel"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
	if res, text := w.page("/fleet?colour=pink", nil); res.StatusCode != 422 ||
		!strings.Contains(text, "want outcome, age, or fact.NAME") {
		t.Errorf("another colour: %s\n%s", res.Status, text)
	}
}
