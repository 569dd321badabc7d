package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/windows"
)

const firmware = `
name: flash
window: required
expect: 30m
reserve: 10m
disruptive: true
repeatable: true
steps: [{name: a, run: "true"}]
`

// agreed puts windows in force.
func (w *world) agreed(text string) {
	w.t.Helper()
	var out api.WindowsChanged
	body := api.WindowsRequest{Files: []windows.File{{Name: "w.yaml", Content: text}},
		Pruning: windows.Pruning{All: true}}
	if r := w.call(http.MethodPut, "/v1/windows", body, &out); r.StatusCode != http.StatusOK {
		w.t.Fatalf("windows: %s", r.Status)
	}
}

// dry returns the answer to a submit with --dry-run.
func (w *world) dry(b api.Submit) (out api.Submitted) {
	w.t.Helper()
	b.DryRun = true
	if r := w.call(http.MethodPost, "/v1/tasks", b, &out); r.StatusCode != http.StatusOK {
		w.t.Fatalf("dry run: %s", r.Status)
	}
	return out
}

// nights is a window of customer acme that opens each night, at an hour that is not now.
func nights() (text string, opens time.Time) {
	opens = time.Now().UTC().Truncate(time.Hour).Add(5 * time.Hour)
	return "windows:\n- {name: nights, customer: acme, zone: UTC, start: \"" + opens.Format("4 15") +
		" * * *\", length: 90m, approval: none}\n", opens
}

func TestASubmitOfWindowedWorkWaitsForItsWindow(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{firmware}})
	on := func(selector string, change ...func(*api.Submit)) api.Submit {
		b := api.Submit{Runbook: "flash", On: selector, As: "alice"}
		for _, c := range change {
			c(&b)
		}
		return b
	}
	refused := func(b api.Submit, want ...string) {
		t.Helper()
		var p problem
		if r := w.call(http.MethodPost, "/v1/tasks", b, &p); r.StatusCode != http.StatusUnprocessableEntity {
			t.Fatalf("got %s", r.Status)
		}
		for _, text := range want {
			if !strings.Contains(p.words(), text) {
				t.Errorf("%q is not in %s", text, p.words())
			}
		}
	}
	refused(on("fw001"), "no approved window for 1 of 1 hosts: fw001", "there is no window: ask the customer for one")
	text, opens := nights()
	w.agreed(text)
	refused(on("fw001,vpn1"), "no approved window for 1 of 2 hosts: vpn1", "leave them out with skip_closed")
	refused(on("vpn1", func(b *api.Submit) { b.SkipClosed = true }), "no approved window for 1 of 1 hosts")
	if tasks, err := w.queue.Tasks(t.Context(), 10); err != nil || len(tasks) != 0 {
		t.Fatalf("%d tasks are queued, %v", len(tasks), err)
	}

	dry := w.dry(on("all", func(b *api.Submit) { b.SkipClosed, b.DryRun = true, true }))
	p := dry.Windows
	if dry.Closed != "vpn1" || dry.Total != 3 || p == nil || p.Seconds != 1800 || p.Reserve != 600 ||
		len(p.Openings) != 1 || p.Openings[0].Count != 3 || !p.Openings[0].Start.Equal(opens) {
		t.Errorf("the plan is %+v, windows %+v", dry, p)
	}
	got := w.submit(on("all", func(b *api.Submit) { b.SkipClosed, b.Expire = true, "1h" }))
	if got.Total != 3 || got.Closed != "vpn1" || got.Windows == nil {
		t.Errorf("got %+v", got)
	}
	for _, job := range w.jobsOf(got.Task) {
		if !job.Due.Equal(opens) || job.State != jobs.Queued {
			t.Errorf("%s is %s, due at %s: want %s", job.Host, job.State, job.Due, opens)
		}
	}
	// A task that needs no window waits for none, unless the submit asks for it.
	plain := api.Submit{Runbook: "exec", On: "vpn1", Args: map[string]string{"cmd": "id"}, As: "alice"}
	if got := w.submit(plain); got.Windows != nil {
		t.Errorf("got %+v", got.Windows)
	}
	plain.Window, plain.Expect = true, "5m"
	refused(plain, "no approved window")
}

func TestTheEstimateOfHistoryGoesBeforeThatOfTheRunbook(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{firmware}})
	text, _ := nights()
	w.agreed(text)
	b := api.Submit{Runbook: "flash", On: "fw001", As: "alice", DryRun: true}
	field := w.dry(b).Ran.Work + "||acme"
	long := map[string]string{field: `{"p50_ns":1,"p90_ns":4000000000000,"n":10}`}
	if err := w.queue.SaveEstimates(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if got := w.dry(b).Windows; got.Seconds != 4000 || got.Openings[0].Count != 1 {
		t.Errorf("got %+v", got)
	}
	long[field] = `{"p50_ns":1,"p90_ns":5000000000000,"n":10}` // and ten minutes to go back
	if err := w.queue.SaveEstimates(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	var p problem
	if w.call(http.MethodPost, "/v1/tasks", b, &p); !strings.Contains(p.words(), "has no opening of 1h33m20s") {
		t.Errorf("got %s", p.words())
	}
}

// A freeze is known at submit; who goes against it says why, and that is kept.
func TestAFreezeIsOverriddenWithAReason(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	until := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Second)
	w.agreed("freezes:\n- {name: outage, customer: acme, zone: UTC, from: 2020-01-01, until: " +
		until.Format("2006-01-02 15:04:05") + ", reason: INC-7}\n")
	b := api.Submit{Runbook: "exec", On: "fw001,vpn1", Args: map[string]string{"cmd": "id"}, As: "alice"}
	got := w.submit(b)
	for _, job := range w.jobsOf(got.Task) {
		if frozen := job.Host == "fw001"; job.Due.Equal(until) != frozen {
			t.Errorf("%s is due at %s", job.Host, job.Due)
		}
	}
	b.OverrideFreeze = " it is the cause\n"
	got = w.submit(b)
	for _, job := range w.jobsOf(got.Task) {
		if job.Due.After(time.Now()) {
			t.Errorf("%s is due at %s", job.Host, job.Due)
		}
	}
	spec, err := w.queue.Spec(t.Context(), got.Task)
	if err != nil || spec.Override != "alice: it is the cause" {
		t.Errorf("got %q, %v", spec.Override, err)
	}
	for _, zone := range []string{"default", "eu"} {
		list, _, err := w.queue.Events(t.Context(), zone, "", 1000, 0)
		found := 0
		for _, e := range list {
			detail, _ := e.Detail.(map[string]any)
			if e.Event == "override-freeze" && e.Object == string(got.Task) && detail["note"] == spec.Override {
				found++
			}
		}
		if err != nil || found != 1 {
			t.Errorf("%d events in zone %s, %v", found, zone, err)
		}
	}
}

// A window that is changed takes those along that wait for it, as it says itself.
func TestJobsFollowTheirChangedWindow(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{firmware}})
	base := time.Now().UTC().Truncate(time.Hour)
	open := func(hours time.Duration, more string) {
		t.Helper()
		w.agreed("windows:\n- {name: nights, customer: acme, zone: UTC, start: \"0 " +
			base.Add(hours*time.Hour).Format("15") + " * * *\", length: 90m, approval: none" + more + "}\n")
		if err := w.server.Duty(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	open(5, "")
	submit := func(change func(*api.Submit)) jobs.TaskID {
		b := api.Submit{Runbook: "flash", On: "customer=acme", As: "alice"}
		change(&b)
		return w.submit(b).Task
	}
	now := submit(func(*api.Submit) {})
	later := submit(func(b *api.Submit) { b.At = jobs.Time{Time: base.Add(20 * time.Hour)} })
	want := func(task jobs.TaskID, hours time.Duration) {
		t.Helper()
		for _, job := range w.jobsOf(task) {
			if at := base.Add(hours * time.Hour); job.State != jobs.Queued || !job.Due.Equal(at) || !job.Next.Equal(at) {
				t.Errorf("%s is %s, due at %s, next at %s: want %s", job.ID, job.State, job.Due, job.Next, at)
			}
		}
	}
	want(now, 5)
	want(later, 29)
	open(8, "") // later
	want(now, 8)
	want(later, 32)
	open(3, "") // earlier, but not before it was asked for
	want(now, 3)
	want(later, 27)
	if err := w.server.Duty(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(now, 3)
	moved := w.appointed()
	open(3, ", cutoff: 1m") // which changes nothing for these: each keeps its place behind the opening
	if n := w.appointed() - moved; n != 0 || moved < 4 {
		t.Errorf("%d jobs were moved before, and %d by a change that is none for them", moved, n)
	}
	open(4, ", on_change: cancel")
	for _, job := range append(w.jobsOf(now), w.jobsOf(later)...) {
		if job.Outcome != jobs.Cancelled || !strings.Contains(job.Error, "its window is not open any more at") {
			t.Errorf("%s is %s, %s: %s", job.ID, job.State, job.Outcome, job.Error)
		}
	}
}

// appointed returns the number of jobs that got another appointment so far.
func (w *world) appointed() (n int) {
	w.t.Helper()
	for _, zone := range []string{"default", "eu"} {
		list, _, err := w.queue.Events(w.t.Context(), zone, "", 1000, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range list {
			if e.Event == "appoint" {
				n++
			}
		}
	}
	return n
}

// A lift brings the jobs back that a freeze has deferred.
func TestALiftedFreezeBringsJobsBack(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := w.submit(api.Submit{Runbook: "exec", On: "fw001", Args: map[string]string{"cmd": "id"}, As: "alice"}).Task
	far := time.Now().Add(6 * time.Hour)
	reply, err := w.queue.Step(t.Context(), "default", jobs.Step{Node: "n", Slot: "1", Request: "a", Want: 1})
	if err != nil || len(reply.Jobs) != 1 {
		t.Fatalf("take: %+v, %v", reply, err)
	}
	g := reply.Jobs[0]
	_, err = w.queue.Step(t.Context(), "default", jobs.Step{Node: "n", Slot: "1", Request: "b", Results: []jobs.Result{
		{Job: g.Job, Token: g.Token, Kind: jobs.KindDefer, Until: jobs.MicrosOf(far)}}})
	if err != nil {
		t.Fatal(err)
	}
	w.agreed("freezes: []\nwindows: [{name: x, customer: beta, zone: UTC, start: '0 2 * * *', length: 1h}]\n")
	if err := w.server.Duty(t.Context()); err != nil {
		t.Fatal(err)
	}
	if job := w.jobsOf(task)[0]; job.State != jobs.Deferred || job.Due.After(time.Now()) {
		t.Errorf("it is %s, due at %s", job.State, job.Due)
	}
}

// A freeze with an end gives a job its time at submit. A lift, or an earlier end, takes it back.
func TestALiftedFreezeBringsJobsBackThatBeganToWaitAtSubmit(t *testing.T) {
	t.Parallel()
	for _, whose := range []string{"customer: acme", "site: x", "host: fw001"} {
		t.Run(whose, func(t *testing.T) {
			t.Parallel()
			w := start(t, setup{})
			now := time.Now().UTC().Truncate(time.Second)
			in := func(hours int) time.Time { return now.Add(time.Duration(hours) * time.Hour) }
			freeze := func(until time.Time) {
				t.Helper()
				w.agreed("windows: [{name: x, customer: beta, zone: UTC, start: '0 2 * * *', length: 1h}]\n" +
					"freezes:\n- {name: f, " + whose + ", zone: UTC, from: 2020-01-01, until: " +
					until.Format("2006-01-02 15:04:05") + "}\n")
			}
			submit := func(at time.Time) jobs.TaskID {
				return w.submit(api.Submit{Runbook: "exec", On: "fw001", As: "alice", At: jobs.Time{Time: at},
					Args: map[string]string{"cmd": "id"}}).Task
			}
			freeze(in(6))
			soon, later, last := submit(time.Time{}), submit(in(2)), submit(in(20))
			want := func(task jobs.TaskID, at time.Time) {
				t.Helper()
				if err := w.server.Duty(t.Context()); err != nil {
					t.Fatal(err)
				}
				job := w.jobsOf(task)[0]
				if job.State != jobs.Queued || !job.Next.Equal(at) || !job.Due.Equal(at) {
					t.Errorf("it is %s, due at %s, next at %s: want %s", job.State, job.Due, job.Next, at)
				}
			}
			want(soon, in(6))
			want(later, in(6))
			want(last, in(20))
			freeze(in(8))
			want(soon, in(8))
			want(later, in(8))
			freeze(in(4))
			want(soon, in(4))
			want(later, in(4))
			w.agreed("windows: [{name: x, customer: beta, zone: UTC, start: '0 3 * * *', length: 1h}]\n")
			want(later, in(2))
			want(last, in(20))
			if job := w.jobsOf(soon)[0]; job.State != jobs.Queued || job.Next.After(time.Now()) {
				t.Errorf("it is %s, next at %s", job.State, job.Next)
			}
		})
	}
}

// After a lift the job of a schedule begins at its place within the jitter, and not before.
func TestALiftedFreezeGivesAJobItsPlaceInTheJitterBack(t *testing.T) {
	t.Parallel()
	f := newFired(t, func(e *windows.Entry) { e.Jitter, e.On = "3h0m0s", "fw001,fw002" })
	freezes := func(list ...windows.FreezeOrder) {
		t.Helper()
		is, err := f.Timetable(t.Context())
		if err == nil {
			_, err = f.SetTimetable(t.Context(), windows.Timetable{Version: is.Version, Freezes: list}, jobs.Alert{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	until := f.now.Add(6 * time.Hour)
	freezes(windows.FreezeOrder{Name: "f", Level: "customer", Of: "acme", From: f.now.Add(-time.Hour), Until: until})
	got := f.after(time.Second)
	e, err := f.Schedule(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	times, err := e.Entry.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	check := func(place func(host string) time.Time) {
		t.Helper()
		if err := f.server.Duty(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"fw001", "fw002"} {
			job, err := f.Job(t.Context(), jobs.NewID(got.Task, host))
			if want := place(host); err != nil || job.Next.Sub(want).Abs() > time.Millisecond {
				t.Errorf("%s is next at %s: want %s, %v", host, job.Next, want, err)
			}
		}
	}
	check(func(string) time.Time { return until })
	freezes()
	check(func(host string) time.Time { return got.Tick.Add(times.Offset(host)) })
}

// A submit that read the timetable before a lift may be complete only after the first look.
func TestASubmitThatALiftOvertookIsBroughtForwardToo(t *testing.T) {
	t.Parallel()
	f := newFired(t, nil)
	now := time.Now()
	f.server.Fix(func() time.Time { return now }, nil)
	_, err := f.SetTimetable(t.Context(), windows.Timetable{}, jobs.Alert{}) // without the freeze
	if err == nil {
		err = f.server.Duty(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	task := jobs.Task{ID: jobs.NewTaskID(now, 1), Spec: jobs.Spec{Runbook: "exec", Operator: "alice",
		Timeout: time.Minute, Expire: 24 * time.Hour},
		Own: map[string]jobs.Micros{"fw001": jobs.MicrosOf(now.Add(6 * time.Hour))}}
	if err := f.Submit(t.Context(), task, map[string][]string{"default": {"fw001"}}, nil); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if err := f.server.Duty(t.Context()); err != nil {
		t.Fatal(err)
	}
	job, err := f.Job(t.Context(), jobs.NewID(task.ID, "fw001"))
	if err != nil || job.Next.After(now.Add(time.Second)) {
		t.Errorf("it is %s, next at %s, %v", job.State, job.Next, err)
	}
}
