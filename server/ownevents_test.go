package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/events"
	"muster/fleet"
	"muster/ingress"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/inbox"
	"muster/jobs/queue/versions"
	"muster/server"
	"muster/server/arrivals"
	"muster/server/inner"
	"muster/testkit/redistest"
	"muster/triggers"
)

// ownFile has triggers that wait for muster's own events. first and second would start each other
// for ever.
const ownFile = `
triggers:
  - {name: first, source: muster, kind: task-ended, when: [{field: outcome, equals: succeeded}],
     runbook: exec, args: {cmd: "true"}, on: all, host: {field: "hosts.*"}, at_most: 2}
  - {name: second, source: muster, kind: task-ended, when: [{field: outcome, equals: succeeded}],
     runbook: exec, args: {cmd: "true"}, on: all, host: {field: "hosts.*"}, at_most: 2}
  - {name: other, source: muster, kind: task-ended, when: [{field: outcome, equals: failed}],
     runbook: exec, args: {cmd: "true"}, on: all, at_most: 2}
`

// owning is a server whose triggers wait for its own events, on a real Redis.
func owning(t *testing.T) (*world, *inbox.Inbox) {
	t.Helper()
	cfg := redistest.StartServer(t).Config()
	set, err := triggers.Parse(fleet.Source{Name: "triggers.yaml", Data: []byte(ownFile)})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	in := inbox.New(conn, unsigned{})
	policy := policyOf(t, rolesPolicy()+`  - {principal: "trigger:first", roles: [operator]}
  - {principal: "trigger:second", roles: [operator]}
  - {principal: "trigger:other", roles: [operator]}
`)
	w := start(t, setup{redis: &cfg, inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy, d.Triggers = policy, func() (*triggers.Set, error) { return set, nil }
		d.Events = arrivals.Needs{Inbox: in, Versions: versions.New(conn),
			Sources: func() (*ingress.Sources, error) { return nil, nil }}
	}})
	return w, in
}

// own returns muster's own events by the tasks that they tell of.
func own(t *testing.T, in *inbox.Inbox) map[string]inbox.Kept {
	t.Helper()
	list, _, err := in.List(t.Context(), inbox.Filter{Source: events.Own, Most: 100,
		Sees: func(string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]inbox.Kept{}
	for _, k := range list {
		whole, err := in.Event(t.Context(), k.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(whole.Body), `"task":"`)
		task, _, _ := strings.Cut(rest, `"`)
		if _, twice := out[task]; twice {
			t.Errorf("the end of task %s is told twice", task)
		}
		out[task] = whole
	}
	return out
}

// The end of a task starts what waits for it, once. A trigger does not start itself, and two that
// start each other come to an end.
func TestTheEndOfATaskFiresTriggersAndNoLoop(t *testing.T) {
	t.Parallel()
	w, in := owning(t)
	// The server has looked at the zone before anything happens.
	waitFor(t, "the first look", func() bool {
		p, err := in.Places(t.Context())
		return err == nil && p.At["begun"] != ""
	})
	task := w.submit(run("fw-a1")).Task
	waitFor(t, "the end of all", func() bool {
		w.work("default", succeed)
		list, err := in.Tallies(t.Context())
		return err == nil && len(list) == 1 && list[0].Done == 5
	})
	told := own(t, in)
	var all api.TaskList
	w.call("GET", "/v1/tasks", nil, &all)
	if len(all.Tasks) != 5 || len(told) != 5 {
		t.Errorf("%d tasks and %d events, want 5", len(all.Tasks), len(told))
	}
	by := map[string]int{}
	for _, k := range told {
		if k.Customer != "acme" || k.Kind != "task-ended" || k.State != inbox.Done {
			t.Errorf("%+v: %s", k, k.Body)
		}
		for _, f := range k.Outcome.Firings {
			if f.Task != "" {
				by[f.Trigger]++
			} else if !strings.Contains(f.Why, "it would fire itself") {
				t.Errorf("%+v", f)
			}
		}
	}
	if want := (map[string]int{"first": 2, "second": 2}); fmt.Sprint(by) != fmt.Sprint(want) {
		t.Errorf("fired %v, want %v", by, want)
	}
	w.foresees(told, task)
}

// foresees checks what a replay of events says it would do.
func (w *world) foresees(told map[string]inbox.Kept, task jobs.TaskID) {
	w.t.Helper()
	for id, k := range told {
		var got api.EventForeseen
		w.call("GET", "/v1/inbox/"+k.ID+"/replay", nil, &got)
		text := ""
		for _, d := range got.Decisions {
			text += " " + d.Trigger + " " + d.Result
		}
		if len(got.Refused) > 0 || id == string(task) != (text == " first fires second fires other passes") {
			w.t.Errorf("task %s: %s, %+v", id, text, got)
		}
	}
	k := told[string(task)]
	_, body := w.raw("GET", "/v1/inbox/"+k.ID+"/replay", nil, bearing(w.token("viewer-acme")))
	if !strings.Contains(string(body), `"refused":["`) || !strings.Contains(string(body), `"fires"`) {
		w.t.Errorf("a viewer of acme: %s", body)
	}
	if res, body := w.raw("GET", "/v1/inbox/"+k.ID+"/replay", nil,
		bearing(w.token("viewer-bolt"))); res.StatusCode < 400 {
		w.t.Errorf("a viewer of another customer: %s", body)
	}
	var all api.TaskList
	if w.call("GET", "/v1/tasks", nil, &all); len(all.Tasks) != 5 {
		w.t.Errorf("a look has started something: %d tasks", len(all.Tasks))
	}
}

// shutNow is a window of acme that is shut now, at whatever time of day, and for the next hours.
func shutNow() string {
	start := time.Now().UTC().Add(6 * time.Hour)
	return fmt.Sprintf("windows:\n- {name: nights, customer: acme, zone: UTC, start: every day %02d:00, "+
		"length: 12h, approval: none}\n", start.Hour())
}

// A job that waited for its window and has expired is told to its customer, also one that a worker
// has put off; one that only waited for a worker is not.
func TestAMissedWindowIsToldToTriggers(t *testing.T) {
	t.Parallel()
	mini, cfg := redistest.StartMini(t)
	w := start(t, setup{redis: &cfg, inventory: fixed(twoCustomers())})
	conn, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	in := inbox.New(conn, unsigned{})
	term, err := hub.NewLeaders(conn).Lead(t.Context(), inner.Duty, "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	feeder := inner.New(inner.Needs{Box: in, Zones: conn, Streams: w.queue, Tasks: w.queue, Jobs: w.queue,
		Facts: w.queue, Versions: versions.New(conn),
		Wants: func(context.Context) func(string) bool {
			return func(kind string) bool { return kind == "window-missed" }
		},
		Log: hclog.NewNullLogger(), Now: time.Now}, lease(term.Number))
	look := func() {
		t.Helper()
		if err := feeder.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	w.apply(shutNow())
	waits, busy := run("fw-a1"), run("fw-b1,fw-b2")
	waits.Window, waits.Expect, waits.Expire, busy.Expire = true, "1m", "1m", "1m"
	appointed := w.submit(waits)
	w.submit(busy)
	reply, err := w.queue.Step(t.Context(), "default", jobs.Step{Node: "n", Slot: "1", Request: "a", Want: 1})
	if err != nil || len(reply.Jobs) != 1 {
		t.Fatalf("take: %+v, %v", reply, err)
	}
	g := reply.Jobs[0]
	_, err = w.queue.Step(t.Context(), "default", jobs.Step{Node: "n", Slot: "1", Request: "b",
		Results: []jobs.Result{{Job: g.Job, Token: g.Token, Kind: jobs.KindDefer,
			Until: jobs.MicrosOf(time.Now().Add(time.Hour))}}})
	if err != nil {
		t.Fatal(err)
	}
	mini.SetTime(appointed.Submitted.Add(48 * time.Hour))
	if err := w.server.Duty(t.Context()); err != nil {
		t.Fatal(err)
	}
	look()
	list, _, err := in.List(t.Context(), inbox.Filter{Most: 9, Sees: func(string) bool { return true }})
	got := map[string]string{}
	for _, k := range list {
		whole, wrong := in.Event(t.Context(), k.ID)
		if wrong != nil {
			t.Fatal(wrong)
		}
		_, rest, _ := strings.Cut(string(whole.Body), `"hosts":`)
		got[k.Customer], _, _ = strings.Cut(rest, ",")
	}
	want := map[string]string{"acme": `["fw-a1"]`, "bolt": fmt.Sprintf("[%q]", g.Job.Host())}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v (%v)", got, want, err)
	}
}
