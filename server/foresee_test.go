package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/history"
	"muster/jobs"
	"muster/testkit/sqltest"
	"muster/windows"
)

// windowedBook wants a window, and is expected to take 20 s.
const windowedBook = `
name: upgrade
description: in a window
window: required
disruptive: true
expect: 20s
timeout: 5m
steps:
  - {name: go, run: "true", timeout: 1m}
`

// twoMinutes is a window of customer acme each night.
const twoMinutes = `windows:
- {name: nightly, customer: acme, zone: UTC, start: "0 2 * * *", length: 2m, approval: none}
`

func acme(n int) []fleet.Host {
	list := many(n)
	for i := range list {
		list[i].Customer, list[i].Labels = "acme", map[string]string{"model": "x200"}
	}
	return list
}

// beat lets a node be there, with so many slots.
func (w *world) beat(slots int) {
	w.t.Helper()
	n := jobs.Node{ID: "n1", State: "running", Zones: []string{"default"}, Limit: slots, Slots: 1,
		Seen: jobs.Time{Time: time.Now()}}
	if err := w.queue.Beat(w.t.Context(), n); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) foresee(body api.Submit) api.Foresight {
	w.t.Helper()
	var f api.Foresight
	if res, text := w.raw("POST", "/v1/plan", body, nil); res.StatusCode != http.StatusOK {
		w.t.Fatalf("plan: %s %s", res.Status, text)
	}
	w.call("POST", "/v1/plan", body, &f)
	return f
}

// Show 2 of the windows, foretold: two minutes, 20 s, 10 slots: 60 hosts a night.
func TestAPlanTellsHowManyFitIntoEachWindow(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(200)), runbooks: []string{windowedBook}})
	w.beat(10)
	apply := api.WindowsRequest{Files: []windows.File{{Name: "w.yaml", Content: twoMinutes}}}
	if res, text := w.raw("PUT", "/v1/windows", apply, nil); res.StatusCode != 200 {
		t.Fatalf("windows: %s %s", res.Status, text)
	}
	f := w.foresee(api.Submit{Runbook: "upgrade", On: "all"})
	var hosts []string
	for _, o := range f.Openings {
		hosts = append(hosts, fmt.Sprint(o.Hosts))
	}
	if got := strings.Join(hosts, " "); got != "60 60 60 20" || f.Never != 0 || f.Hosts != 200 {
		t.Errorf("a night each: %s of %d, %d never; notes %q", got, f.Hosts, f.Never, f.Notes)
	}
	if len(f.Slots) != 1 || f.Slots[0] != (api.SlotNeed{Zone: "default", Slots: 10, Want: 34}) {
		t.Errorf("slots %+v", f.Slots)
	}
	if len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "on 200 hosts it never succeeded with these arguments") {
		t.Errorf("notes %q", f.Notes)
	}
	if list, err := w.queue.Tasks(t.Context(), 10); err != nil || len(list) != 0 {
		t.Errorf("a plan made tasks: %+v, %v", list, err)
	}
	apply.Files[0].Content, apply.All = strings.Replace(twoMinutes, "acme", "other", 1), true
	if res, text := w.raw("PUT", "/v1/windows", apply, nil); res.StatusCode != 200 {
		t.Fatalf("windows: %s %s", res.Status, text)
	}
	f = w.foresee(api.Submit{Runbook: "upgrade", On: "all"})
	if f.Never != 200 || len(f.Left) != 1 || f.Left[0].Hosts != "h[0000-0199]" || !f.Done.IsZero() ||
		!strings.Contains(f.Left[0].Why, "there is no window") {
		t.Errorf("without a window: %+v", f)
	}
}

// The flags of a submit about windows and freezes hold for its plan, too.
func TestAPlanKnowsOfWindowsAndFreezesAsASubmitDoes(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(40))})
	w.beat(10)
	until := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Second)
	w.agreed(strings.Replace(twoMinutes, "2m", "2h", 1) +
		"freezes:\n- {name: outage, customer: acme, zone: UTC, from: 2020-01-01, until: " +
		until.Format("2006-01-02 15:04:05") + "}\n")
	b := run("all")
	if f := w.foresee(b); !f.Begins.Equal(until) || len(f.Openings) != 0 {
		t.Errorf("frozen until %s, and it begins at %s, %+v", until, f.Begins, f.Openings)
	}
	b.OverrideFreeze = " it is the cause\n"
	if f := w.foresee(b); !f.Begins.Before(until) || !strings.HasSuffix(strings.Join(f.Notes, "; "), "it is the cause") {
		t.Errorf("it begins at %s, notes %q", f.Begins, f.Notes)
	}
	b.Window = true
	f := w.foresee(b)
	if len(f.Openings) == 0 || f.Openings[0].Start.UTC().Hour() != 2 {
		t.Errorf("outside of its window: %+v, %+v", f.Openings, f.Left)
	}
}

func TestAPlanKnowsTheQueueAndTheLastSuccesses(t *testing.T) {
	t.Parallel()
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{inventory: fixed(acme(40)), history: store})
	for i := range 3 {
		w.learn(store, i, 7*time.Second)
	}
	// The figures of the hub count: workers admit by them. The historian writes the same.
	w.estimated(7*time.Second, 7*time.Second, 3)
	first := w.submit(run("all")).Task
	var p problem
	res := w.call("POST", "/v1/plan", api.Submit{Runbook: "nothing", On: ""}, &p)
	if res.StatusCode != 422 || len(p.Errors) < 2 {
		t.Errorf("mistakes: %s %s", res.Status, p.words())
	}
	f := w.foresee(run("h000*"))
	if f.Never != 10 || len(f.Left) != 1 || !strings.Contains(f.Left[0].Why, "no worker serves its zone") {
		t.Errorf("without a node: %+v", f)
	}
	w.beat(10)
	f = w.foresee(run("h000*"))
	// 50 jobs of 7 s on 10 slots. After 14 s the queue is overloaded, and both take turns.
	if took := f.Done.Sub(f.At.Time); took != 28*time.Second || f.Never != 0 || len(f.Notes) != 0 {
		t.Errorf("done after %s: %+v", took, f)
	}
	if want := (api.TakenTime{Model: "x200", Customer: "acme", Hosts: 10, Usual: 7, Most: 7, Successes: 3}); len(
		f.Takes) != 1 || f.Takes[0] != want {
		t.Errorf("it is taken to need %+v, want %+v", f.Takes, want)
	}
	if len(f.Others) != 1 || f.Others[0].Task != first || f.Others[0].Waiting != 40 ||
		f.Others[0].Done.Sub(f.At.Time) != 35*time.Second {
		t.Errorf("the queue: %+v", f.Others)
	}
	var c api.Calibration
	w.call("GET", "/v1/plan/calibration", nil, &c)
	if c.Plans != 4 || len(c.Compared) != 0 {
		t.Errorf("calibration %+v", c)
	}
	w.submit(run("h000*"))
	waitFor(t, "the task of the plan", func() bool {
		w.call("GET", "/v1/plan/calibration", nil, &c)
		return len(c.Compared) == 1 && c.Compared[0].Expected == 28*time.Second
	})
}

// execWork is a name for what run runs.
func (w *world) execWork() string {
	w.t.Helper()
	b := run("all")
	b.DryRun = true
	return w.dry(b).Ran.Work
}

// learn stores a success, as an earlier task had it.
func (w *world) learn(store *history.Store, i int, took time.Duration) {
	w.t.Helper()
	id := jobs.NewID(jobs.TaskID(fmt.Sprintf("0wcy00000%d", i)), "h0000")
	end := jobs.Time{Time: time.Now()}
	j := api.PastJob{JobInfo: jobs.JobInfo{ID: id, Host: id.Host(), State: jobs.Ended, Attempt: 1,
		Outcome: jobs.Succeeded, Started: jobs.Time{Time: end.Add(-took)}, Finished: end}, Zone: "past",
		Runbook: "exec", Customer: "acme", Model: "x200",
		Asked: &api.Asked{Ran: &jobs.Ran{Work: w.execWork()}}}
	zone := fmt.Sprint("past", i)
	_, err := store.Put(w.t.Context(), history.Batch{Zone: zone, Last: "1-0", Ended: []api.PastJob{j}}, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
}

// estimated saves the time that exec takes on the hosts of acme, as the historian does.
func (w *world) estimated(p50, p90 time.Duration, n int) {
	w.t.Helper()
	text := fmt.Sprintf(`{"p50_ns":%d,"p90_ns":%d,"n":%d}`, p50, p90, n)
	if err := w.queue.SaveEstimates(w.t.Context(), map[string]string{w.execWork() + "|x200|acme": text}); err != nil {
		w.t.Fatal(err)
	}
}
