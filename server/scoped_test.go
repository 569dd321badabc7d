package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"muster/api"
	"muster/fleet"
	"muster/history"
	"muster/jobs"
	"muster/server"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// scoped starts a server with two customers, all roles and a history.
func scoped(t *testing.T) (*world, *history.Store) {
	t.Helper()
	policy, store := policyOf(t, rolesPolicy()), openHistory(t, sqltest.SQLite(t))
	return start(t, setup{inventory: fixed(twoCustomers()), history: store,
		more: func(d *server.Deps) { d.Policy = policy }}), store
}

// kept waits until history has the ends of so many jobs.
func kept(t *testing.T, store *history.Store, n int) {
	t.Helper()
	waitFor(t, "history", func() bool {
		list, _, err := store.Jobs(t.Context(), history.Filter{}, "", 500)
		return err == nil && len(list) == n
	})
}

// ids returns the jobs of a page of history as a caller gets it.
func (w *world) pastOf(question, token string) (ids []string, next string) {
	w.t.Helper()
	res, text := w.raw("GET", "/v1/history"+question, nil, bearing(token))
	var page api.PastJobs
	if err := json.Unmarshal(text, &page); err != nil || res.StatusCode != 200 {
		w.t.Fatalf("%s %s", res.Status, text)
	}
	for _, j := range page.Jobs {
		ids = append(ids, string(j.ID))
	}
	slices.Sort(ids)
	return ids, page.Next
}

// History has for each caller the jobs of hosts and runbooks that the caller sees, in full pages.
func TestHistoryIsThatOfTheOwnHosts(t *testing.T) {
	t.Parallel()
	w, store := scoped(t)
	both := w.submit(run("fw-a[1,2],fw-b[1,2]")).Task
	own := w.submit(api.Submit{Runbook: "label", On: "fw-a1", Args: map[string]string{"word": "tango"}}).Task
	foreign := w.submit(run("fw-b2")).Task
	for range 3 {
		w.work("default", succeed)
	}
	kept(t, store, 6)
	a1, a2 := string(both)+":fw-a1", string(both)+":fw-a2"
	label := string(own) + ":fw-a1"
	for who, want := range map[string][]string{"operator-acme": {a1, a2, label}, "label": {label}, "label-acme": {label},
		"operator": {a1, a2, string(both) + ":fw-b1", string(both) + ":fw-b2", label, string(foreign) + ":fw-b2"}} {
		slices.Sort(want)
		token := w.token(who)
		if got, next := w.pastOf("", token); !slices.Equal(got, want) || next != "" {
			t.Errorf("%s sees %v, and %q behind; want %v", who, got, next, want)
		}
		_, text := w.raw("GET", "/v1/history/export", nil, bearing(token))
		if n := strings.Count(string(text), "\n"); n != len(want)+1 || !strings.HasSuffix(string(text), "{\"end\":true}\n") {
			t.Errorf("%s exports %d lines: %s", who, n, text)
		}
		if who != "operator" && (strings.Contains(string(text), "fw-b") || strings.Contains(string(text), "bolt")) {
			t.Errorf("the export of %s tells of others: %s", who, text)
		}
		for id, sees := range map[string]bool{string(own): true, string(both): who == "operator",
			string(foreign):         who == "operator",
			string(both) + ":fw-a1": strings.HasPrefix(who, "operator"), string(both) + ":fw-b1": who == "operator"} {
			_, text := w.raw("GET", "/v1/history/events?of="+id, nil, bearing(token))
			if got := strings.Contains(string(text), id); got != sees {
				t.Errorf("%s, events of %s: %s", who, id, text)
			}
		}
	}
	acme := w.token("viewer-acme")
	first, next := w.pastOf("?limit=2", acme)
	second, end := w.pastOf("?limit=2&cursor="+next, acme)
	if len(first) != 2 || len(second) != 1 || end != "" {
		t.Errorf("pages %v and %v, then %q", first, second, end)
	}
	for _, question := range []string{"?customer=bolt", "?host=fw-b1", "?task=" + string(foreign)} {
		if got, next := w.pastOf(question, acme); len(got) > 0 || next != "" {
			t.Errorf("%s: %v", question, got)
		}
	}
}

// A task that Redis has forgotten is seen from history by the same rule, unless a host of it has changed
// hands since.
func TestWhatRedisForgotIsSeenByItsOwnersOnly(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	policy, store := policyOf(t, rolesPolicy()), openHistory(t, sqltest.SQLite(t))
	list := twoCustomers()
	w := start(t, setup{redis: &cfg, inventory: func() (*fleet.Inventory, error) { return fleet.New(list) },
		history: store, more: func(d *server.Deps) { d.Policy = policy }})
	own, foreign := w.submit(run("fw-a1")).Task, w.submit(run("fw-b1")).Task
	both := w.submit(run("all")).Task
	for range 3 {
		w.work("default", succeed)
	}
	kept(t, store, 6)
	waitFor(t, "the ends of the tasks", func() bool {
		list, err := store.Open(t.Context(), 10)
		return err == nil && len(list) == 0
	})
	m.FlushAll()
	acme := w.token("operator-acme")
	for path, want := range map[string]int{"/v1/tasks/" + string(own): 200, "/v1/tasks/" + string(own) + "/report": 200,
		"/v1/jobs/" + string(own) + ":fw-a1": 200, "/v1/jobs/" + string(both) + ":fw-a1": 200,
		"/v1/tasks/" + string(both): 404, "/v1/tasks/" + string(foreign): 404, "/v1/tasks/" + string(both) + "/report": 404,
		"/v1/jobs/" + string(both) + ":fw-b1": 404} {
		if got := w.status("GET", path, acme); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	list = twoCustomers()
	list[0].Customer, list[2].Customer = "bolt", "acme" // fw-a1 and fw-b1
	if err := w.server.Stock().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []jobs.TaskID{own, foreign} {
		if got := w.status("GET", "/v1/tasks/"+string(id), acme); got != 404 {
			t.Errorf("%s, whose host has changed hands: %d", id, got)
		}
	}
	if got, _ := w.pastOf("", acme); !slices.Equal(got, []string{string(both) + ":fw-a2"}) {
		t.Errorf("history of two hosts that were swapped: %v", got)
	}
}

// A stream of events tells of what its caller sees, and its ids give no place of anything else.
func TestEventsAreThoseOfTheOwnHosts(t *testing.T) {
	t.Parallel()
	list := twoCustomers()
	list[2].Zone = "dmz" // fw-b1
	policy := policyOf(t, rolesPolicy())
	w := start(t, setup{inventory: fixed(list), more: func(d *server.Deps) { d.Policy = policy }})
	acme := bearing(w.token("operator-acme"))
	e := w.listen("", acme)
	if text := e.next(); !strings.HasPrefix(text, ":") {
		t.Fatal(text)
	}
	foreign, both := w.submit(run("fw-b1,fw-b2")).Task, w.submit(run("fw-a1,fw-b1")).Task
	own := w.submit(run("fw-a2")).Task
	for _, zone := range []string{"default", "default", "default", "dmz"} {
		w.work(zone, succeed)
	}
	var said []string
	for last := jobs.NewID(own, "fw-a2"); ; {
		id, name, h := e.event()
		data, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, id+" "+string(data))
		if name == "end" && h.Object == string(last) {
			break
		}
	}
	text := strings.Join(said, "\n")
	for _, hidden := range []string{"fw-b", "bolt", "dmz", string(foreign), `"` + string(both) + `"`} {
		if strings.Contains(text, hidden) {
			t.Errorf("the stream tells of %s: %s", hidden, text)
		}
	}
	if !strings.Contains(text, string(both)+":fw-a1") {
		t.Errorf("the stream does not tell of the own host of a mixed task: %s", text)
	}
	first, _, _ := strings.Cut(said[0], " ")
	acme.Set("Last-Event-ID", first)
	again := w.listen("", acme)
	for _, want := range said[1:] {
		if _, _, h := again.event(); !strings.Contains(want, h.ID) || !strings.Contains(want, h.Object) {
			t.Errorf("a client that returned got %+v, want %s", h, want)
		}
	}
}
