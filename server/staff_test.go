package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
)

// manned has a node work on both zones, as its beats say.
func (w *world) manned() {
	w.t.Helper()
	n := jobs.Node{ID: "n1", State: "running", Zones: []string{"default", "eu"},
		Seen: jobs.Time{Time: time.Now()}}
	if err := w.queue.Beat(w.t.Context(), n); err != nil {
		w.t.Fatal(err)
	}
}

// Where no node works on the zone of a task all views of it say so, since when, and what to do.
// Health says it where a zone has work, or ever had a node: a new house has neither.
func TestAllViewsSayThatNoNodeWorks(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	health := func() string {
		t.Helper()
		var h api.Health
		w.call(http.MethodGet, "/v1/health", nil, &h)
		return h.Status
	}
	if text := health(); text != "ok" {
		t.Errorf("a new house: %q", text)
	}
	id := w.submit(api.Submit{Runbook: "exec", On: "fw001,fw002", Args: map[string]string{"cmd": "id"},
		As: "alice"}).Task
	of := "/v1/tasks/" + string(id)
	views := func() map[string]string {
		t.Helper()
		var (
			l    api.LackList
			sum  api.Summary
			job  api.JobDetail
			list api.JobList
			q    api.QueueInfo
		)
		w.call(http.MethodGet, of+"/waits", nil, &l)
		w.call(http.MethodGet, of+"/summary", nil, &sum)
		w.call(http.MethodGet, of+"/jobs", nil, &list)
		w.call(http.MethodGet, "/v1/jobs/"+string(id)+":fw001", nil, &job)
		w.call(http.MethodGet, "/v1/queue", nil, &q)
		lacks := func(list []jobs.Lack) (text string) {
			for _, l := range list {
				if l.Order && l.Count == 2 && l.Hosts == "fw[001-002]" {
					text += l.Why
				}
			}
			return text
		}
		return map[string]string{"waits": lacks(l.Waits), "summary": lacks(sum.Waits), "job": job.Why,
			"jobs": list.Jobs[1].Why, "queue": q.Zones[0].NoNode, "health": health(),
			"pauses": w.pauses("").NoNode["default"], "of the task": w.pauses("?task=" + string(id)).NoNode["default"]}
	}
	check := func(when, want string) {
		t.Helper()
		for view, text := range views() {
			quiet := want == "" && (text == "" || view == "health" && text == "ok")
			if !quiet && (want == "" || !strings.Contains(text, want)) {
				t.Errorf("%s: %s says %q, want %q", when, view, text, want)
			}
		}
	}
	check("at first", "no node works on zone default, and none has yet, as far as is known: start one")
	w.manned()
	check("with a node", "")
	if err := w.queue.NoteStaff(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.queue.Gone(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	check("without it", "no node works on zone default since 20")
	w.call(http.MethodPost, of+"/cancel", api.OrderRequest{As: "alice"}, nil)
	if text := health(); !strings.Contains(text, "no node works on zone default since 20") {
		t.Errorf("without work: %q", text)
	}
}

// A plan says before a submit that no node works on a zone of its hosts.
func TestAPlanSaysThatNoNodeWorks(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	notes := func() string {
		t.Helper()
		var plan api.Foresight
		w.call(http.MethodPost, "/v1/plan", api.Submit{Runbook: "exec", On: "fw001,fw002",
			Args: map[string]string{"cmd": "id"}, As: "alice"}, &plan)
		return strings.Join(plan.Notes, "; ")
	}
	if text := notes(); !strings.Contains(text, "no node works on zone default, and none has yet") {
		t.Errorf("without a node the plan says %q", text)
	}
	w.manned()
	if text := notes(); strings.Contains(text, "no node works") {
		t.Errorf("with a node the plan says %q", text)
	}
}

// A dry run asks what would keep jobs of its zones from starting, and is told of nothing else.
func TestPausesOfZonesNameThoseWithoutANode(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	pauses := func(zones string) (l api.PauseList) {
		t.Helper()
		w.call(http.MethodGet, "/v1/pauses?zones="+zones, nil, &l)
		return l
	}
	w.call(http.MethodPost, "/v1/zones/default/pause", api.OrderRequest{As: "alice", Reason: "later"}, nil)
	if l := pauses("default,dmz"); len(l.NoNode) != 2 || !strings.Contains(l.NoNode["dmz"], "no node works on zone dmz") ||
		!strings.Contains(l.Zones["default"], "later") {
		t.Errorf("without a node: %+v", l)
	}
	w.manned()
	if l := pauses("default,dmz"); l.NoNode["default"] != "" || l.NoNode["dmz"] == "" {
		t.Errorf("with a node on default: %+v", l)
	}
	if l := pauses("dmz"); len(l.Zones) != 0 {
		t.Errorf("the pause of another zone is named: %+v", l)
	}
}
