package server_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

// factsOf ends every job with facts; those of some hosts are nonsense.
func factsOf(os string, nonsense ...string) func(string) jobs.Result {
	return func(host string) jobs.Result {
		r := succeed(host)
		r.Output = []byte("motd\nfact ID=" + os + "\nfact kernel=6.1.0\nfact end\n")
		for _, n := range nonsense {
			if host == n {
				r.Output = []byte("fact ID=debian\x1b[31m\nfact end\n")
			}
		}
		return r
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	var list api.FactList
	w.call("GET", "/v1/facts?on=fw*", nil, &list)
	if len(list.Hosts) != 0 || list.None != "fw[001-003]" {
		t.Errorf("at first: %+v", list)
	}
	task := w.submit(api.Submit{Runbook: "facts", On: "fw001,fw002"})
	w.work("default", factsOf("debian", "fw002"))
	var got api.Gathered
	path := "/v1/tasks/" + string(task.Task) + "/facts"
	w.call("POST", path, nil, &got)
	if got.Kept != 1 || len(got.Bad) != 1 || got.Bad[0].Host != "fw002" ||
		!strings.Contains(got.Bad[0].Error, "not printable") {
		t.Errorf("gathered: %+v", got)
	}
	w.call("GET", "/v1/facts?on=fw*", nil, &list)
	if len(list.Hosts) != 1 || list.None != "fw[002-003]" {
		t.Fatalf("then: %+v", list)
	}
	f := list.Hosts[0]
	if f.Host != "fw001" || f.Facts["os"] != "debian" || f.Facts["kernel"] != "6.1.0" ||
		f.Task != task.Task || f.Inventory != task.Inventory || f.At.IsZero() || f.Age > 3600 || f.Stale {
		t.Errorf("fw001: %+v", f)
	}
	// They are labels for selectors; those of the inventory stay what they are.
	var hosts api.HostList
	for on, want := range map[string]string{"fact.os=debian": "fw001", "fw*!{fact.os=debian}": "fw002,fw003",
		"{fact.kernel=6.1.0}&fw*": "fw001", "!fact.os,customer=acme": ""} {
		w.call("GET", "/v1/hosts?on="+url.QueryEscape(on), nil, &hosts)
		var names []string
		for _, h := range hosts.Hosts {
			names = append(names, h.Name)
			if h.Labels["fact.os"] != "" {
				t.Errorf("%s shows facts as labels: %v", h.Name, h.Labels)
			}
		}
		if got := strings.Join(names, ","); want != "" && got != want {
			t.Errorf("%s picks %s, want %s", on, got, want)
		}
	}
	if done := w.submit(run("fact.os=debian")); done.Total != 1 {
		t.Errorf("a task on facts has %d hosts", done.Total)
	}
	w.work("default", succeed)
	// Younger facts count, and an older task does not bring its own back.
	w.submit(api.Submit{Runbook: "facts", On: "fw001"})
	w.work("default", factsOf("wall"))
	if err := w.server.Duty(t.Context()); err != nil {
		t.Error(err)
	}
	w.call("POST", path, nil, &got)
	if w.call("GET", "/v1/facts?on=fw001", nil, &list); list.Hosts[0].Facts["os"] != "wall" {
		t.Errorf("later: %+v", list)
	}
	if w.call("GET", "/v1/hosts?on=fact.os%3Dwall", nil, &hosts); len(hosts.Hosts) != 1 {
		t.Errorf("selectors know older facts: %+v", hosts)
	}
	if res := w.call("GET", "/v1/hosts?on=fact.os%3Ddebian", nil, nil); res.StatusCode != 422 {
		t.Errorf("of facts that are no more: %s", res.Status)
	}
}

func TestFactsAreOfThatRunbookOnly(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := w.submit(run("fw001"))
	w.work("default", factsOf("evil"))
	if err := w.server.Duty(t.Context()); err != nil {
		t.Error(err)
	}
	var p problem
	if res := w.call("POST", "/v1/tasks/"+string(task.Task)+"/facts", nil, &p); res.StatusCode != 422 ||
		!strings.Contains(p.words(), "ran exec") {
		t.Errorf("gather: %s, %s", res.Status, p.words())
	}
	var list api.FactList
	if w.call("GET", "/v1/facts", nil, &list); len(list.Hosts) != 0 {
		t.Errorf("kept: %+v", list)
	}
	if res := w.call("POST", "/v1/tasks/0000000000/facts", nil, &p); res.StatusCode != 404 {
		t.Errorf("of no task: %s", res.Status)
	}
}

// The list of hosts names those that keep no record of attempts, before somebody submits work.
func TestUnfencedHostsAreShown(t *testing.T) {
	t.Parallel()
	list := hosts()
	for i := range list[:3] {
		list[i].Fence = fleet.FenceAuto
	}
	w := start(t, setup{inventory: fixed(list)})
	task := w.submit(api.Submit{Runbook: "facts", On: "fw001,fw002"})
	w.work("default", func(host string) jobs.Result {
		r := succeed(host)
		r.Output = []byte("fact lacks=\nfact end\n")
		if host == "fw002" {
			r.Output = []byte("fact lacks= flock\nfact end\n")
		}
		return r
	})
	w.call("POST", "/v1/tasks/"+string(task.Task)+"/facts", nil, &api.Gathered{})
	var got api.HostList
	w.call("GET", "/v1/hosts?on=fw*", nil, &got)
	want := map[string]string{"fw002": "it lacks flock"}
	if diff := cmp.Diff(want, got.Unfenced); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	var host api.HostInfo
	w.call("GET", "/v1/hosts/fw002", nil, &host)
	if host.Unfenced != "it lacks flock" {
		t.Errorf("fw002 is unfenced because %q", host.Unfenced)
	}
	var plan api.Submitted
	w.call("POST", "/v1/tasks", api.Submit{Runbook: "facts", On: "fw*", DryRun: true}, &plan)
	if plan.Unfenced != "fw002" {
		t.Errorf("the plan names %q as unfenced, want fw002", plan.Unfenced)
	}
}

// A group in which nobody can carry a marker is named before one of its hosts is disturbed.
func TestGroupsThatNobodyMarksAreShown(t *testing.T) {
	t.Parallel()
	list := hosts()
	for i := range list {
		list[i].Group, list[i].Zone, list[i].Fence = fmt.Sprint("pair", i/2), fleet.DefaultZone, fleet.FenceNone
		list[i].Customer = "acme"
	}
	list[1].Fence = fleet.FenceAuto
	w := start(t, setup{inventory: fixed(list)})
	for _, test := range []struct {
		on         string
		disruptive bool
		want       []string
	}{
		{list[0].Name, true, nil}, // the other one of pair0 can
		{list[0].Name + "," + list[2].Name, true, []string{"pair1"}},
		{list[2].Name, false, nil},
	} {
		body := api.Submit{Runbook: "exec", On: test.on, Args: map[string]string{"cmd": "true"},
			Manner: api.Manner{Disruptive: test.disruptive}, DryRun: true}
		var plan api.Submitted
		w.call("POST", "/v1/tasks", body, &plan)
		if !slices.Equal(plan.Unmarked, test.want) {
			t.Errorf("%s, disruptive %t: the plan names %q, want %q", test.on, test.disruptive, plan.Unmarked, test.want)
		}
	}
}
