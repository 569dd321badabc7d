package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/api"
	"muster/events"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue/firings"
	"muster/server"
	"muster/server/firing"
	"muster/triggers"
)

// triggersFile has triggers that tests fire, on the hosts of two customers.
const triggersFile = `
triggers:
  - name: look
    source: [alert*]
    kind: firing
    when: [{field: status, equals: firing}]
    runbook: label
    args: {word: {field: "alerts.0.labels.name"}, count: "2"}
    on: site=x
    host: {field: "alerts.*.labels.instance", before: ":"}
    at_most: 2
    limit: 3/1h
  - name: push
    source: rules
    debounce: {quiet: 30s, longest: 1m}
    runbook: label
    args: {word: {field: sha}}
    on: all
    labels: {customer: {event: customer}}
    at_most: 2
  - {name: weak, source: weak, runbook: exec, args: {cmd: "true"}, on: all, at_most: 9}
  - {name: own, source: muster, runbook: exec, args: {cmd: "true"}, on: fw-a1, at_most: 1}
`

// trigging is a server with triggers, and with a clock of its own.
type trigging struct {
	*world
	ahead atomic.Int64 // of the clock
	set   atomic.Pointer[triggers.Set]
	wrong atomic.Pointer[error]
}

func (w *trigging) use(text string) {
	w.t.Helper()
	s, err := triggers.Parse(fleet.Source{Name: "triggers.yaml", Data: []byte(text)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.set.Store(s)
}

func triggered(t *testing.T, change func(*setup)) *trigging {
	t.Helper()
	policy := policyOf(t, rolesPolicy()+`  - {principal: "trigger:look", roles: [operator], hosts: customer=acme}
  - {principal: "trigger:push", roles: [operator]}
  - {principal: "trigger:weak", roles: [viewer]}
  - {principal: "trigger:own", roles: [operator]}
`)
	w := &trigging{world: &world{t: t}}
	w.use(triggersFile)
	with := setup{inventory: fixed(twoCustomers()),
		now: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) },
		more: func(d *server.Deps) {
			d.Policy, d.Triggers = policy, func() (*triggers.Set, error) {
				if err := w.wrong.Load(); err != nil {
					return nil, *err
				}
				return w.set.Load(), nil
			}
		}}
	if change != nil {
		change(&with)
	}
	w.world = start(t, with)
	return w
}

// fire works on an event, and returns what became of it at a trigger.
func (w *trigging) fire(e events.Event, trigger string) events.Firing {
	w.t.Helper()
	out, err := w.server.Firer().Fire(w.t.Context(), e)
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(out.Firings, func(f events.Firing) bool { return f.Trigger == trigger })
	if i < 0 {
		w.t.Fatalf("event %s does not concern %s: %+v", e.ID, trigger, out)
	}
	return out.Firings[i]
}

func alerting(id, customer, name string, hosts ...string) events.Event {
	var list []string
	for _, h := range hosts {
		list = append(list, fmt.Sprintf(`{"labels": {"name": %q, "instance": "%s:9100"}}`, name, h))
	}
	return events.Event{ID: id, Source: "alertmanager", Kind: "firing", Customer: customer, At: time.Now(),
		Body: []byte(`{"status": "firing", "alerts": [` + strings.Join(list, ",") + `]}`)}
}

func (w *trigging) tasks() []jobs.TaskInfo {
	w.t.Helper()
	var l api.TaskList
	w.call("GET", "/v1/tasks", nil, &l)
	return l.Tasks
}

func TestAnEventMakesOneTaskOfItsTrigger(t *testing.T) {
	t.Parallel()
	w := triggered(t, nil)
	e := alerting("e1", "acme", "disk", "fw-a2", "fw-a1")
	first := w.fire(e, "look")
	if first.Task == "" {
		t.Fatalf("no task: %s", first.Why)
	}
	if again := w.fire(e, "look"); again != first {
		t.Errorf("the same event did %+v, and then %+v", first, again)
	}
	list := w.tasks()
	if len(list) != 1 {
		t.Fatalf("%d tasks, want one", len(list))
	}
	got := list[0]
	if string(got.Task) != first.Task || got.Operator != "trigger:look" || !got.Proven || got.Total != 2 ||
		got.On != "fw-a[1-2]" || got.Runbook != "label" || got.Reason != "event e1 of alertmanager firing" {
		t.Errorf("%+v", got)
	}
	var l api.FiringList
	w.call("GET", "/v1/firings?event=e1", nil, &l)
	if len(l.Firings) != 1 || l.Firings[0].Task != got.Task || l.Firings[0].Hosts != 2 ||
		l.Firings[0].Result != "fires" {
		t.Errorf("%+v", l)
	}
	for role, want := range map[string]int{"viewer-acme": 1, "viewer": 1, "label": 1} {
		_, text := w.raw("GET", "/v1/firings", nil, bearing(w.token(role)))
		if n := strings.Count(string(text), `"event":"e1"`); n != want {
			t.Errorf("%s sees %d firings, want %d: %s", role, n, want, text)
		}
	}
}

func TestWhatMustNotFireSaysWhy(t *testing.T) {
	t.Parallel()
	w := triggered(t, nil)
	for _, c := range []struct {
		event   events.Event
		trigger string
		want    string
	}{
		{alerting("b1", "bolt", "disk", "fw-b1"), "look", `names "fw-b1"`}, // its rights do not show it
		{alerting("a1", "", "disk", "all"), "look", `names "all"`},
		{alerting("a2", "bolt", "disk", "fw-a1"), "look", `the event is of customer "bolt"`},
		{alerting("a3", "acme", "Disk; reboot", "fw-a1"), "look", `args: argument "word"`},
		{events.Event{ID: "w1", Source: "weak", Body: []byte("{}")}, "weak",
			"trigger:weak may not run exec on 4 of 4 hosts"},
	} {
		got := w.fire(c.event, c.trigger)
		if got.Task != "" || !strings.Contains(got.Why, c.want) {
			t.Errorf("%s: %+v; want %q", c.event.ID, got, c.want)
		}
	}
	if list := w.tasks(); len(list) > 0 {
		t.Errorf("there are tasks: %+v", list)
	}
	out, err := w.server.Firer().Fire(t.Context(), events.Event{ID: "n", Source: "other", Body: []byte("x")})
	if err != nil || len(out.Firings) > 0 {
		t.Errorf("an event that concerns nobody: %+v, %v", out, err)
	}
}

func TestALimitCountsAlsoWhatAServerDidBeforeItDied(t *testing.T) {
	t.Parallel()
	w := triggered(t, nil)
	for i := range 3 {
		w.fire(alerting(fmt.Sprint("l", i), "", "disk", "fw-a1"), "look")
	}
	if got := w.fire(alerting("l3", "", "disk", "fw-a1"), "look"); got.Task != "" ||
		!strings.Contains(got.Why, "limit: it has fired 3 times within 1h") {
		t.Errorf("%+v", got)
	}
	w.ahead.Store(int64(time.Hour))
	if got := w.fire(alerting("l4", "", "disk", "fw-a1"), "look"); got.Task == "" {
		t.Errorf("after an hour: %+v", got)
	}
}

func TestCollectedEventsFireOnceWithTheLast(t *testing.T) {
	t.Parallel()
	w := triggered(t, nil)
	push := func(id, sha string) events.Firing {
		return w.fire(events.Event{ID: id, Source: "rules", Customer: "bolt", At: time.Now(),
			Body: []byte(fmt.Sprintf(`{"sha": %q}`, sha))}, "push")
	}
	for _, id := range []string{"p1", "p2", "p1"} { // the repetition of p1 replaces nothing
		if got := push(id, "echo"); got.Task != "" || got.Why == "" {
			t.Fatalf("%+v", got)
		}
	}
	if err := w.server.Firer().Due(t.Context()); err != nil || len(w.tasks()) > 0 {
		t.Fatalf("too early: %v, %+v", err, w.tasks())
	}
	w.ahead.Store(int64(31 * time.Second))
	for range 2 {
		if err := w.server.Firer().Due(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list := w.tasks()
	if len(list) != 1 || list[0].Reason != "event p2 of rules" || list[0].On != "fw-b[1-2]" {
		t.Fatalf("%+v", list)
	}
	if got := push("p1", "echo"); got.Task != "" || !strings.Contains(got.Why, "event p2 came after it") {
		t.Errorf("p1 again: %+v", got)
	}
	if got := push("p2", "echo"); got.Task != string(list[0].Task) {
		t.Errorf("p2 again: %+v", got)
	}
}

// Health says a mistake in the file of triggers, and a collected event goes with words when its
// trigger is gone.
func TestACollectedEventGoesWithItsTrigger(t *testing.T) {
	t.Parallel()
	w := triggered(t, nil)
	w.fire(events.Event{ID: "p1", Source: "rules", Customer: "bolt", At: time.Now(),
		Body: []byte(`{"sha": "true"}`)}, "push")
	bad := error(fleet.Mistakes{{File: "triggers.yaml", Line: 3, Text: "no"}})
	w.wrong.Store(&bad)
	var h api.Health
	w.call("GET", "/v1/health", nil, &h)
	if !strings.Contains(h.Status, "triggers.yaml:3: no") {
		t.Errorf("health does not say it: %s", h.Status)
	}
	w.wrong.Store(nil)
	w.use("triggers:\n  - {name: other, source: x, runbook: exec, args: {cmd: x}, on: all, at_most: 1}\n")
	w.ahead.Store(int64(time.Minute))
	waitFor(t, "the end of what was collected", func() bool {
		var l api.FiringList
		w.call("GET", "/v1/firings?trigger=push", nil, &l)
		return len(l.Firings) == 1 && l.Firings[0].Result == "refused" &&
			strings.Contains(l.Firings[0].Why, "the trigger was removed before it fired")
	})
	if list := w.tasks(); len(list) > 0 {
		t.Errorf("it fired: %+v", list)
	}
}

func TestAFileWithAMistakeLeavesTheOldTriggersInForce(t *testing.T) {
	t.Parallel()
	w := triggered(t, nil)
	names := func() (list []string, complaint string) {
		var l api.TriggerList
		w.call("GET", "/v1/triggers", nil, &l)
		for _, i := range l.Triggers {
			list = append(list, i.Name)
		}
		return list, l.Complaint
	}
	all := []string{"look", "push", "weak", "own"}
	if list, complaint := names(); !slices.Equal(list, all) || complaint != "" {
		t.Fatalf("%q, %q", list, complaint)
	}
	w.use("triggers:\n  - {name: new, source: x, runbook: exce, on: all, at_most: 1}\n")
	list, complaint := names()
	if !slices.Equal(list, all) || !strings.Contains(complaint, "triggers.yaml:2: trigger new: no runbook") {
		t.Errorf("%q, %q", list, complaint)
	}
	w.use("triggers:\n  - {name: new, source: x, runbook: exec, args: {cmd: x}, on: all, at_most: 1}\n")
	if list, complaint := names(); !slices.Equal(list, []string{"new"}) || complaint != "" {
		t.Errorf("%q, %q", list, complaint)
	}
}

// broken is a book that loses the answer of each second change.
type broken struct {
	firing.Book
	n atomic.Int64
}

func (b *broken) Change(ctx context.Context, trigger string, f firings.Change) error {
	if b.n.Add(1)%2 == 1 {
		return errors.New("the server died before it wrote down what it did")
	}
	return b.Book.Change(ctx, trigger, f)
}

func TestAServerThatDiesBetweenTaskAndRecordDoublesNothing(t *testing.T) {
	t.Parallel()
	w := triggered(t, nil)
	needs := w.server.Firer().Needs
	needs.Book = &broken{Book: needs.Book}
	for i := range 4 { // a limit of 3
		e := alerting(fmt.Sprint("d", i), "acme", "disk", "fw-a1")
		if _, err := firing.New(needs).Fire(t.Context(), e); err == nil {
			t.Fatal("the first try ended well")
		}
		out, err := firing.New(needs).Fire(t.Context(), e)
		if err != nil || (out.Firings[0].Task == "") != (i == 3) {
			t.Fatalf("%d: %+v, %v", i, out, err)
		}
	}
	if list := w.tasks(); len(list) != 3 {
		t.Errorf("%d tasks, want 3", len(list))
	}
}

func TestAnIDThatAnotherTaskHasIsLeftToIt(t *testing.T) {
	t.Parallel()
	w := triggered(t, nil)
	e := alerting("taken", "acme", "disk", "fw-a1")
	b := run("fw-b1")
	b.ID = string(firing.IDOf(triggers.Bound{Event: e.ID, At: e.At}, "look", 0))
	other := w.submit(b)
	got := w.fire(e, "look")
	if got.Task == "" || got.Task == string(other.Task) || len(w.tasks()) != 2 {
		t.Errorf("%+v beside %s", got, other.Task)
	}
}

func TestATaskOfATriggerDoesNotFireItAgain(t *testing.T) {
	t.Parallel()
	w := triggered(t, nil)
	ended := func(id string, task any) events.Event {
		return events.Event{ID: id, Source: events.Own, Kind: "task-ended", At: time.Now(),
			Body: []byte(fmt.Sprintf(`{"task": %q}`, task))}
	}
	person := w.submit(run("fw-a1")).Task
	first := w.fire(ended("o1", person), "own")
	if first.Task == "" {
		t.Fatalf("the end of a person's task: %+v", first)
	}
	if got := w.fire(ended("o2", first.Task), "own"); got.Task != "" ||
		!strings.Contains(got.Why, "stems from a task of this trigger (own)") {
		t.Errorf("its own task: %+v", got)
	}
	look := w.fire(alerting("o3", "acme", "disk", "fw-a1"), "look")
	chained := w.fire(ended("o4", look.Task), "own")
	if chained.Task == "" {
		t.Errorf("the task of another trigger: %+v", chained)
	}
	var l api.FiringList
	w.call("GET", "/v1/firings?event=o4", nil, &l)
	if len(l.Firings) != 1 || !slices.Equal(l.Firings[0].Stems, []string{"look", "own"}) {
		t.Errorf("%+v", l)
	}
	if got := w.fire(ended("o5", "0000000001"), "own"); got.Task != "" ||
		!strings.Contains(got.Why, "not known which triggers led to the event") {
		t.Errorf("a task that is not there: %+v", got)
	}
}

func TestATestSaysWhatWouldHappenAndDoesNothing(t *testing.T) {
	t.Parallel()
	w := triggered(t, nil)
	e := alerting("x", "acme", "disk", "fw-a1")
	ask := api.TriggerTest{Source: e.Source, Kind: e.Kind, Customer: e.Customer, Body: e.Body}
	var got api.TriggerTested
	if res := w.call("POST", "/v1/triggers/test", ask, &got); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	if len(got.Decisions) != 4 || got.Decisions[0].Result != "fires" || got.Decisions[0].Hosts != "fw-a1" ||
		got.Decisions[0].Args["word"] != "disk" || got.Decisions[1].Result != "passes" ||
		!strings.Contains(strings.Join(got.Decisions[1].Why, ""), `source: the event has "alertmanager"`) {
		t.Errorf("%+v", got)
	}
	ask.Kind, ask.Trigger = "resolved", "look"
	got = api.TriggerTested{}
	w.call("POST", "/v1/triggers/test", ask, &got)
	if len(got.Decisions) != 1 || got.Decisions[0].Result != "passes" {
		t.Errorf("%+v", got)
	}
	ask = api.TriggerTest{Source: "weak", Body: []byte(`{}`), Trigger: "weak"}
	got = api.TriggerTested{}
	w.call("POST", "/v1/triggers/test", ask, &got)
	if len(got.Decisions) != 1 || got.Decisions[0].Result != "refused" ||
		!strings.Contains(got.Decisions[0].Why[0], "trigger:weak may not run exec") {
		t.Errorf("%+v", got)
	}
	if list := w.tasks(); len(list) > 0 {
		t.Errorf("a test made tasks: %+v", list)
	}
}
