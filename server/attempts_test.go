package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server"
	"muster/testkit/sqltest"
	"muster/windows"
)

// An attempt of an operator of acme to learn something about bolt.
type attempt struct {
	what  string
	route string
	body  any
	// none is the same question about a thing that never was: then the answers must be the same, but for
	// the names. Empty: the answer has nothing of bolt, and what own says.
	none string
	own  string
}

// attempts are more than forty. ID, CHAIN and GATED stand for tasks of bolt.
var attempts = []attempt{
	{what: "list all hosts", route: "GET /v1/hosts", own: `"total":2`},
	{what: "all but the own", route: "GET /v1/hosts?on=customer!=acme", none: "GET /v1/hosts?on=site!=x"},
	{what: "by customer", route: "GET /v1/hosts?on=customer=bolt", none: "GET /v1/hosts?on=customer=nobd"},
	{what: "by a label that both have", route: "GET /v1/hosts?on=site=x", own: `"total":1`},
	{what: "by a glob", route: "GET /v1/hosts?on=fw-*&fold=true", own: `"folded":"fw-a1"`},
	{what: "by a name that is near", route: "GET /v1/hosts?on=fw-b9", none: "GET /v1/hosts?on=fw-n9"},
	{what: "by a long selector", route: "POST /v1/hosts/query", body: api.HostQuery{On: "all,fw-a2", Drained: true},
		own: `"total":2`},
	{what: "by an earlier task", route: "GET /v1/hosts?on=task:ID", none: "GET /v1/hosts?on=task:0000000000"},
	{what: "by the drained ones", route: "GET /v1/hosts?drained=true&on=all", own: `"total":2`},
	{what: "one host", route: "GET /v1/hosts/fw-b1", none: "GET /v1/hosts/fw-n1"},
	{what: "its times", route: "GET /v1/hosts/fw-b1/next", none: "GET /v1/hosts/fw-n1/next"},
	{what: "its release", route: "POST /v1/hosts/fw-b1/release", none: "POST /v1/hosts/fw-n1/release"},
	{what: "its facts", route: "GET /v1/facts?on=fw-b1", none: "GET /v1/facts?on=fw-n1"},
	{what: "all facts", route: "GET /v1/facts", own: "fw-a"},
	{what: "the tasks", route: "GET /v1/tasks", own: "fw-a1"},
	{what: "a task by its id", route: "GET /v1/tasks/ID", none: "GET /v1/tasks/0000000000"},
	{what: "why it waits", route: "GET /v1/tasks/ID/waits", none: "GET /v1/tasks/0000000000/waits"},
	{what: "its output", route: "GET /v1/tasks/ID/output", none: "GET /v1/tasks/0000000000/output"},
	{what: "its end", route: "POST /v1/tasks/ID/cancel", none: "POST /v1/tasks/0000000000/cancel"},
	{what: "its chain", route: "GET /v1/chains/ID", none: "GET /v1/chains/0000000000"},
	{what: "a chain", route: "GET /v1/chains/CHAIN", none: "GET /v1/chains/0000000000"},
	{what: "an order to a chain", route: "POST /v1/chains/CHAIN/undo", none: "POST /v1/chains/0000000000/undo"},
	{what: "all chains", route: "GET /v1/chains", own: `"on":"fw-a1"`},
	{what: "all gates", route: "GET /v1/gates", own: `"total":1`},
	{what: "the gates of a task", route: "GET /v1/gates?task=GATED", none: "GET /v1/gates?task=0000000000"},
	{what: "all rollouts", route: "GET /v1/rollouts", own: ``},
	{what: "history", route: "GET /v1/history", own: "fw-a1"},
	{what: "history of a customer", route: "GET /v1/history?customer=bolt", none: "GET /v1/history?customer=nobd"},
	{what: "history a job a page", route: "GET /v1/history?limit=1", own: "fw-a"},
	{what: "the export", route: "GET /v1/history/export", own: `{"end":true}`},
	{what: "events of a task", route: "GET /v1/history/events?of=ID", none: "GET /v1/history/events?of=0000000000"},
	{what: "the schedules", route: "GET /v1/schedules", own: "acme-nightly"},
	{what: "a schedule", route: "GET /v1/schedules/bolt-nightly", none: "GET /v1/schedules/nobd-nightly"},
	{what: "its next ticks", route: "GET /v1/schedules/bolt-nightly/next", none: "GET /v1/schedules/nobd-nightly/next"},
	{what: "its run", route: "POST /v1/schedules/bolt-nightly/run", none: "POST /v1/schedules/nobd-nightly/run"},
	{what: "its pause", route: "POST /v1/schedules/bolt-nightly/pause", none: "POST /v1/schedules/nobd-nightly/pause"},
	{what: "the schedule of all hosts", route: "GET /v1/schedules/mixed", none: "GET /v1/schedules/mixer"},
	{what: "the windows", route: "GET /v1/windows", own: "acme-nights"},
	{what: "a window", route: "GET /v1/windows/bolt-nights/next", none: "GET /v1/windows/nobd-nights/next"},
	{what: "the groups", route: "GET /v1/groups", own: "pair-acme"},
	{what: "an order to a group", route: "POST /v1/groups/pair-bolt/clear", none: "POST /v1/groups/pair-nobd/clear"},
	{what: "the limits", route: "GET /v1/limits", own: "customer/acme"},
	{what: "the pauses", route: "GET /v1/pauses?tasks=true", own: "acme"},
	{what: "the pauses of a task", route: "GET /v1/pauses?task=ID", none: "GET /v1/pauses?task=0000000000"},
	{what: "a pause of a customer", route: "POST /v1/customers/bolt/pause", none: "POST /v1/customers/nobd/pause"},
	{what: "the queue", route: "GET /v1/queue", own: `"zones":[]`},
	{what: "a plan", route: "POST /v1/plan", body: run("fw-a1"), own: ``},
	{what: "a plan for others", route: "POST /v1/plan", body: run("fw-b1"),
		own: `fw-b1 is not in the inventory; nearest: fw-a1`},
	{what: "the runbooks", route: "GET /v1/runbooks", own: "exec"},
	{what: "the contents", route: "GET /v1/blobs"}, {what: "the inventory", route: "GET /v1/inventory"},
	{what: "the metrics", route: "GET /metrics"}, {what: "the nodes", route: "GET /v1/nodes"},
	{what: "the audit log", route: "GET /v1/audit"}, {what: "its export", route: "GET /v1/audit/export"},
	{what: "tokens", route: "GET /v1/tokens", own: `"owner":"user:operator-acme"`},
	{what: "approvals", route: "GET /v1/approvals", own: ``},
	{what: "a signature", route: "DELETE /v1/approvals/ID", none: "DELETE /v1/approvals/0000000000"},
	{what: "the state of history", route: "GET /v1/history/state"},
	{what: "the health", route: "GET /v1/health", own: ``}, {what: "the API itself", route: "GET /openapi.json", own: ``},
}

// busy is a house in which acme and bolt have one of each thing.
func busy(t *testing.T) (w *world, names *strings.Replacer) {
	t.Helper()
	list := twoCustomers()
	for i := range list {
		list[i].Group = "pair-" + list[i].Customer
	}
	inventory := func() (*fleet.Inventory, error) {
		return fleet.New(list, fleet.Limit{Name: "customer/acme", Max: 3}, fleet.Limit{Name: "customer/bolt", Max: 3})
	}
	policy, store := policyOf(t, rolesPolicy()), openHistory(t, sqltest.SQLite(t))
	w = start(t, setup{inventory: inventory, history: store, runbooks: []string{ownBook, ownBack, gatedBook},
		more: func(d *server.Deps) { d.Policy = policy }})
	must := func(method, path string, body any) {
		t.Helper()
		if res, text := w.raw(method, path, body, nil); res.StatusCode/100 != 2 {
			t.Fatalf("%s %s: %s %s", method, path, res.Status, text)
		}
	}
	ids := map[string]jobs.TaskID{}
	for c, host := range map[string]string{"acme": "fw-a1", "bolt": "fw-b1"} {
		ids[c] = w.submit(run(host)).Task
		w.work("default", succeed)
	}
	w.submit(run("all"))
	w.work("default", succeed)
	kept(t, store, 6)
	var text, times strings.Builder
	for c, host := range map[string]string{"acme": "fw-a1", "bolt": "fw-b1", "mixed": "all"} {
		name := c + "-nightly"
		if c == "mixed" {
			name = c
		} else {
			fmt.Fprintf(&times, "- {name: %s-nights, customer: %s, zone: UTC, start: '4 15 * * *', length: 90m, "+
				"approval: none}\n", c, c)
		}
		fmt.Fprintf(&text, "- {name: %s, cron: '0 3 * * *', zone: UTC, runbook: exec, args: {cmd: 'true'}, on: '%s'}\n",
			name, host)
	}
	w.agreed("windows:\n" + times.String())
	must("POST", "/v1/schedules", api.ApplySchedules{Files: []windows.File{{Name: "s.yaml",
		Content: "schedules:\n" + text.String()}}})
	for c, host := range map[string]string{"acme": "fw-a2", "bolt": "fw-b2"} {
		ids[c+" gated"] = w.submit(api.Submit{Runbook: "gated", On: host}).Task
	}
	w.stand("fw-a2", "fw-b2")
	for c, host := range map[string]string{"acme": "fw-a1", "bolt": "fw-b1"} {
		busy := run(host)
		busy.Disruptive = true
		w.submit(busy)
		w.take("default") // so that the group is in use
		ids[c+" chain"] = w.submit(api.Submit{Runbook: "own", On: host,
			Rollout: &jobs.RolloutAsk{ChainAsk: jobs.ChainAsk{RollBack: true}}}).Task
	}
	for c, host := range map[string]string{"acme": "fw-a2", "bolt": "fw-b2"} {
		must("POST", "/v1/hosts/drain", map[string]any{"on": host, "reason": "of " + c})
		must("POST", "/v1/customers/"+c+"/pause", map[string]any{"reason": "of " + c})
	}
	put := bearing(w.token("operator"))
	put.Set("Content-Type", "application/octet-stream")
	if res, text := w.raw("PUT", "/v1/blobs/"+sumOf("x")+"?name=bolt.bin&size=1", "x", put); res.StatusCode != 200 {
		t.Fatalf("%s %s", res.Status, text)
	}
	return w, strings.NewReplacer("CHAIN", string(ids["bolt chain"]), "GATED", string(ids["bolt gated"]),
		"ID", string(ids["bolt"]))
}

// An operator of acme who asks sixty questions in a house in which bolt has one of each thing learns
// nothing about bolt.
func TestAnOperatorOfAcmeLearnsNothingAboutBolt(t *testing.T) {
	t.Parallel()
	w, names := busy(t)
	header := bearing(w.token("operator-acme"))
	ask := func(route string, body any) string {
		method, path, _ := strings.Cut(names.Replace(route), " ")
		if body == nil && method == http.MethodPost {
			body = map[string]any{"reason": "to learn something"}
		}
		res, text := w.raw(method, path, body, header)
		return res.Status + " " + string(text)
	}
	ids := map[string]string{}
	for _, name := range []string{"ID", "CHAIN", "GATED"} {
		ids[names.Replace(name)] = name
	}
	for _, a := range attempts {
		got := ask(a.route, a.body)
		if a.none == "" {
			for _, hidden := range append([]string{"bolt", "fw-b"}, keysOf(ids)...) {
				if strings.Contains(got, hidden) && !(strings.Contains(a.what, "for others") && hidden == "fw-b") {
					t.Errorf("%s: %s tells of %s: %s", a.what, a.route, hidden, got)
				}
			}
			if closed := strings.HasPrefix(got, "403"); closed == (a.own != "" || strings.HasPrefix(got, "200")) ||
				!strings.Contains(got, a.own) {
				t.Errorf("%s: %s has nothing of %q: %s", a.what, a.route, a.own, got)
			}
			continue
		}
		said := alike(got, ids)
		if none := alike(ask(a.none, a.body), map[string]string{"0000000000": "ID"}); said != none {
			t.Errorf("%s: what is hidden and what is not there differ:\n%s\n%s", a.what, said, none)
		}
	}
	if len(attempts) < 40 {
		t.Errorf("these are %d attempts", len(attempts))
	}
}

// alike replaces the names of things that are hidden, and of those that are not there, by the same.
func alike(text string, ids map[string]string) string {
	for id := range ids {
		text = strings.ReplaceAll(text, id, "ID")
	}
	return strings.NewReplacer("bolt", "NAME", "nobd", "NAME", "fw-b1", "HOST", "fw-n1", "HOST", "fw-b9", "HOST", "fw-n9",
		"HOST", "mixed", "NAME", "mixer", "NAME", "customer!=acme", "ON", "site!=x", "ON").Replace(text)
}

func keysOf(m map[string]string) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}
