package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
)

// A task, a job and the queue name the window for which jobs wait, with its customer, its opening
// and its end, and the number of jobs that wait.
func TestWhatWaitsSaysForWhichWindow(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{firmware}})
	text, opens := nights()
	w.agreed(text)
	got := w.submit(api.Submit{Runbook: "flash", On: "fw001,fw002", As: "alice"})
	want := jobs.Appointment{Task: got.Task, Runbook: "flash", Operator: "alice", Count: 2,
		Windows: []jobs.WindowName{{Name: "nights", For: "customer acme"}}, Opens: jobs.Time{Time: opens},
		Ends: jobs.Time{Time: opens.Add(90 * time.Minute)}, Due: jobs.Time{Time: opens}, Hosts: "fw[001-002]"}
	check := func(where string, a jobs.Appointment) {
		t.Helper()
		a.Due = jobs.Time{Time: a.Due.Truncate(time.Second)} // behind it is its turn among those of its task
		if fmt.Sprint(a) != fmt.Sprint(want) {
			t.Errorf("%s: %+v\nwant %+v", where, a, want)
		}
	}
	var sum api.Summary
	w.call(http.MethodGet, "/v1/tasks/"+string(got.Task)+"/summary", nil, &sum)
	if len(sum.Awaits) != 1 {
		t.Fatalf("the summary has %+v", sum.Awaits)
	}
	check("the summary", sum.Awaits[0])
	var job api.JobDetail
	w.call(http.MethodGet, "/v1/jobs/"+string(jobs.NewID(got.Task, "fw002")), nil, &job)
	if job.Awaits == nil {
		t.Fatal("the job waits for nothing")
	}
	check("the job", *job.Awaits)
	var q api.QueueInfo
	w.call(http.MethodGet, "/v1/queue", nil, &q)
	d := q.Zones[0].Deferred
	if d.Count != 2 || d.More || d.Next.Truncate(time.Second) != opens || len(d.Appointments) != 1 {
		t.Fatalf("the queue has %+v", d)
	}
	check("the queue", d.Appointments[0])
}

// Work that needs no window waits for the end of a freeze; what waits for nothing but a worker,
// or for its own time, waits for no window.
func TestWhatAFreezeHoldsSaysWhichAndUntilWhen(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	until := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Second)
	w.agreed("freezes:\n- {name: outage, customer: acme, zone: UTC, from: 2020-01-01, until: " +
		until.Format("2006-01-02 15:04:05") + ", reason: INC-7}\n")
	b := api.Submit{Runbook: "exec", On: "fw001,vpn1", Args: map[string]string{"cmd": "id"}, As: "alice"}
	frozen := w.submit(b)
	b.On, b.At = "fw001", jobs.Time{Time: until.Add(time.Hour)}
	later := w.submit(b)
	awaits := func(id jobs.TaskID) []jobs.Appointment {
		var sum api.Summary
		w.call(http.MethodGet, "/v1/tasks/"+string(id)+"/summary", nil, &sum)
		return sum.Awaits
	}
	list := awaits(frozen.Task)
	if len(list) != 1 || list[0].Hosts != "fw001" || !list[0].Ends.Equal(until) ||
		!strings.Contains(list[0].Why, "frozen by outage (INC-7) until ") || len(list[0].Windows) != 0 {
		t.Errorf("got %+v", list)
	}
	if list := awaits(later.Task); len(list) != 0 {
		t.Errorf("what begins behind the freeze waits for %+v", list)
	}
}

// A freeze that is still to come holds the work whose time is within it.
func TestWhatAFreezeWillHoldSaysWhichAndUntilWhen(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	now := time.Now().UTC().Truncate(time.Second)
	from, until := now.Add(time.Hour), now.Add(3*time.Hour)
	w.agreed("freezes:\n- {name: outage, customer: acme, zone: UTC, from: " +
		from.Format("2006-01-02 15:04:05") + ", until: " + until.Format("2006-01-02 15:04:05") + "}\n")
	got := w.submit(api.Submit{Runbook: "exec", On: "fw001", Args: map[string]string{"cmd": "id"}, As: "alice",
		At: jobs.Time{Time: from.Add(time.Minute)}})
	var job api.JobDetail
	w.call(http.MethodGet, "/v1/jobs/"+string(jobs.NewID(got.Task, "fw001")), nil, &job)
	if job.Awaits == nil || !job.Awaits.Ends.Equal(until) || !strings.Contains(job.Awaits.Why, "frozen by outage") {
		t.Errorf("the job waits for %+v", job.Awaits)
	}
	var q api.QueueInfo
	w.call(http.MethodGet, "/v1/queue", nil, &q)
	if d := q.Zones[0].Deferred; d.Count != 1 || len(d.Appointments) != 1 || !d.Next.Equal(until) {
		t.Errorf("the queue has %+v", d)
	}
}

// A window that is taken away, or is changed, is what jobs wait for from then on: nobody is told
// of an opening that there is no more.
func TestWhatWaitsFollowsTheTimetable(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{firmware}})
	text, opens := nights()
	w.agreed(text)
	got := w.submit(api.Submit{Runbook: "flash", On: "fw001", As: "alice"})
	awaits := func() jobs.Appointment {
		var sum api.Summary
		w.call(http.MethodGet, "/v1/tasks/"+string(got.Task)+"/summary", nil, &sum)
		if len(sum.Awaits) != 1 {
			t.Fatalf("got %+v", sum.Awaits)
		}
		return sum.Awaits[0]
	}
	// The reserve and the estimate are 40 min: what is shorter is no opening for it.
	w.agreed(strings.Replace(text, "length: 90m", "length: 30m", 1))
	if a := awaits(); !a.Opens.IsZero() || !strings.Contains(a.Why, "has no opening of 40m") {
		t.Errorf("too short: %+v", a)
	}
	w.agreed("windows: []\n")
	if a := awaits(); !a.Opens.IsZero() || !strings.Contains(a.Why, "there is no window for host fw001") {
		t.Errorf("none: %+v", a)
	}
	body := strings.Replace(text, "name: nights", "name: own", 1)
	w.agreed(strings.Replace(body, "customer: acme", "host: fw001", 1))
	if a := awaits(); !a.Opens.Equal(opens) || a.Windows[0].Name != "own" || a.Windows[0].For != "host fw001" {
		t.Errorf("of the host: %+v", a)
	}
}
