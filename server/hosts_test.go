package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

// order drains or undrains, which must work.
func (w *world) order(verb, on, reason string) api.DrainAnswer {
	w.t.Helper()
	var out api.DrainAnswer
	body := api.DrainRequest{On: on, OrderRequest: api.OrderRequest{Reason: reason}}
	if res := w.call("POST", "/v1/hosts/"+verb, body, &out); res.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s: %s", verb, on, res.Status)
	}
	return out
}

func (w *world) hosts(on string) api.HostList {
	w.t.Helper()
	var l api.HostList
	w.call("GET", "/v1/hosts?fold=true&on="+url.QueryEscape(on), nil, &l)
	return l
}

func TestDrainedHostsAreLeftOut(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	d := w.order("drain", "fw00[1-2]", "new disks")
	if d.Changed != "fw[001-002]" || d.Count != 2 || d.Already != "" ||
		d.Note != "drained by alice (unproven): new disks" {
		t.Errorf("drain: %+v", d)
	}
	if d = w.order("drain", "fw*", ""); d.Changed != "fw003" || d.Already != "fw[001-002]" {
		t.Errorf("drain of more: %+v", d)
	}
	var no problem
	if res := w.call("POST", "/v1/hosts/drain", api.DrainRequest{On: ""}, &no); res.StatusCode != 422 ||
		!strings.Contains(no.words(), `body.on: selector "": is empty`) {
		t.Errorf("nobody named: %s, %+v", res.Status, no)
	}
	if d = w.order("undrain", "fw003,vpn1", "done"); d.Changed != "fw003" || d.Already != "vpn1" || d.Count != 1 {
		t.Errorf("undrain: %+v", d)
	}
	for on, want := range map[string]string{"all": "fw003,vpn1", "fw*": "fw003", "{drained}": "fw[001-002]",
		"customer=acme,!drained": "fw003", "": "fw[001-003],vpn1", "fw*&(vpn1,{drained})": "fw[001-002]"} {
		if l := w.hosts(on); l.Folded != want || l.Total != len(l.Hosts) {
			t.Errorf("%q lists %s, want %s", on, l.Folded, want)
		}
	}
	l := w.hosts("fw*")
	if l.LeftOut.Drained != "fw[001-002]" || len(l.Drained) != 0 {
		t.Errorf("left out: %+v", l)
	}
	if l = w.hosts("{drained}"); !strings.HasSuffix(l.Drained["fw001"].Note, "new disks") {
		t.Errorf("why: %+v", l.Drained)
	}

	task := w.submit(run("fw*"))
	if task.Total != 1 || task.LeftOut.Drained != "fw[001-002]" {
		t.Errorf("submit: %+v", task)
	}
	var p problem
	res := w.call("POST", "/v1/tasks", run("fw001,fw002"), &p)
	if res.StatusCode != 422 || !strings.Contains(p.words(), "no host but drained ones, fw[001-002]") {
		t.Errorf("submit on drained hosts: %s %s", res.Status, p.words())
	}
	if task = w.submit(run("{drained}&fw001")); task.Total != 1 {
		t.Errorf("submit on a drained host by its label: %+v", task)
	}
	if d = w.order("drain", "fw00[1,3]", ""); fmt.Sprint(d.Open) == "[]" || len(d.Open) != 2 {
		t.Errorf("open jobs: %v, want one of each task", d.Open)
	}
}

func TestARetryLeavesDrainedHostsOut(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := w.submit(run("fw00[1-2]")).Task
	w.work("default", func(string) jobs.Result { return jobs.Result{Outcome: jobs.Failed} })
	w.order("drain", "fw001", "")
	var r api.Retried
	path := "/v1/tasks/" + string(task) + "/retry"
	w.call("POST", path, api.RetryRequest{DryRun: true}, &r)
	if r.Hosts != "fw002" || r.LeftOut.Drained != "fw001" {
		t.Errorf("retry: %+v", r)
	}
	w.order("drain", "fw002", "")
	var p problem
	if w.call("POST", path, nil, &p); !strings.Contains(p.words(), "all of these hosts are drained: fw[001-002]") {
		t.Errorf("retry on drained hosts: %s", p.words())
	}
}

func TestAHostThatTheInventoryCallsDrained(t *testing.T) {
	t.Parallel()
	list := hosts()
	list[0].Labels = map[string]string{fleet.Drained: "true"}
	w := start(t, setup{inventory: fixed(list)})
	if l := w.hosts("all"); l.LeftOut.Drained != "fw001" {
		t.Errorf("all: %+v", l)
	}
	var h api.HostInfo
	w.call("GET", "/v1/hosts/fw001", nil, &h)
	if d := w.order("undrain", "fw001", ""); !h.IsDrained || h.Drained != nil || d.Labelled != "fw001" {
		t.Errorf("%+v, undrain: %+v", h, d)
	}
}

func TestHostsOfEarlierTasks(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := string(w.submit(run("all")).Task)
	w.work("default", func(host string) jobs.Result {
		if host == "fw001" {
			return jobs.Result{Outcome: jobs.Failed}
		}
		return succeed(host)
	})
	// Those of another zone have not ended.
	for on, want := range map[string]string{"task:T/failed": "fw001", "task:T/!failed": "fw002",
		"task:T": "fw[001-003],vpn1", "all!task:T/succeeded": "fw[001,003],vpn1",
		"customer=acme": "fw[001-003]", "{customer=acme}&task:T/failed": "fw001"} {
		if l := w.hosts(strings.ReplaceAll(on, "T", task)); l.Folded != want {
			t.Errorf("%s picks %s, want %s", on, l.Folded, want)
		}
	}
	if got := w.submit(run("task:" + task + "/!succeeded")); got.Total != 1 || !strings.HasPrefix(got.On, "task:") {
		t.Errorf("submit: %+v", got)
	}
	for on, want := range map[string]string{
		"task:" + task + "/timeout": "no job of task " + task + " is known to have ended timeout",
		"task:" + task + "/fialed":  "task:" + task + "/fialed: want one of succeeded, failed",
		"task:0000000000/failed":    "there is no such task",
		"task:x/failed,task:y":      "task:x/failed: ",
	} {
		var p problem
		if w.call("POST", "/v1/tasks", run(on), &p); !strings.Contains(p.words(), want) {
			t.Errorf("%s: %s; want %s", on, p.words(), want)
		}
	}
}

func TestPagesOfHosts(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(many(25))})
	var names []string
	cursor := ""
	for range 10 {
		var l api.HostList
		w.call("POST", "/v1/hosts/query", api.HostQuery{On: "all", Limit: 10, Cursor: cursor, Fold: true}, &l)
		if l.Total != 25 || (l.Folded == "h[0000-0024]") != (cursor == "") {
			t.Errorf("page behind %q: %d in all, folded %q", cursor, l.Total, l.Folded)
		}
		for _, h := range l.Hosts {
			names = append(names, h.Name)
		}
		if cursor = l.Next; cursor == "" {
			break
		}
	}
	if got := fleet.Fold(names); got != "h[0000-0024]" || len(names) != 25 {
		t.Errorf("pages: %d hosts, %s", len(names), got)
	}
}

func TestOneHost(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := w.submit(run("fw001")).Task
	w.order("drain", "fw001", "new disk")
	var h api.HostInfo
	w.call("GET", "/v1/hosts/fw001", nil, &h)
	if h.Name != "fw001" || h.Address != "10.0.0.1" || !h.IsDrained || h.Drained == nil || h.Lock != "" ||
		len(h.Jobs) != 1 || h.Jobs[0].ID != jobs.NewID(task, "fw001") || h.Inventory == "" {
		t.Errorf("fw001: %+v", h)
	}
	for path, want := range map[string]string{
		"fw01": "nearest: fw001", "a%20b": "is not the name of a host", "all": "there is no host all",
	} {
		var p problem
		if res := w.call("GET", "/v1/hosts/"+path, nil, &p); res.StatusCode != 404 ||
			!strings.Contains(p.words(), want) {
			t.Errorf("%s: %s %s; want %s", path, res.Status, p.words(), want)
		}
	}
}
