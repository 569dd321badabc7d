package inner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/jobs"
)

// stock is an inventory of two customers.
var stock = map[string]fleet.Host{
	"a1": {Name: "a1", Address: "10.0.0.1", Customer: "acme", Zone: "z", Group: "pair", User: "root"},
	"a2": {Name: "a2", Address: "10.0.0.2", Customer: "acme", Zone: "z", Group: "pair"},
	"b1": {Name: "b1", Address: "10.0.0.3", Customer: "bolt", Zone: "z"},
	"n1": {Name: "n1", Address: "10.0.0.4", Zone: "z"},
}

func find(name string) (fleet.Host, bool) {
	h, there := stock[name]
	return h, there
}

func body(t *testing.T, e Told) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(e.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func ended(hosts map[string]jobs.Outcome) (jobs.TaskInfo, []jobs.JobInfo) {
	t := jobs.TaskInfo{Task: "t1", Runbook: "firewall", State: jobs.TaskEnded, Total: len(hosts),
		Outcomes: jobs.NewCounts()}
	var list []jobs.JobInfo
	for name, o := range hosts {
		t.Outcomes[o]++
		list = append(list, jobs.JobInfo{ID: jobs.NewID("t1", name), Host: name, Outcome: o,
			State: jobs.Ended})
	}
	slices.SortFunc(list, func(a, b jobs.JobInfo) int { return strings.Compare(a.Host, b.Host) })
	return t, list
}

// The event of a task belongs to a customer only if all of its hosts do.
func TestTheEndOfATaskIsOfTheCustomerOfAllItsHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hosts             map[string]jobs.Outcome
		customer, outcome string
		bad               string
	}{
		{map[string]jobs.Outcome{"a1": jobs.Succeeded, "a2": jobs.Succeeded}, "acme", "succeeded", "<nil>"},
		{map[string]jobs.Outcome{"a1": jobs.Succeeded, "a2": jobs.Unknown}, "acme", "mixed", "[a2]"},
		{map[string]jobs.Outcome{"a1": jobs.Failed, "b1": jobs.Failed}, "", "failed", "[a1 b1]"},
		{map[string]jobs.Outcome{"a1": jobs.Succeeded, "n1": jobs.Succeeded}, "", "succeeded", "<nil>"},
		{map[string]jobs.Outcome{"a1": jobs.Succeeded, "gone": jobs.Succeeded}, "", "succeeded", "<nil>"},
	} {
		task, list := ended(c.hosts)
		e := OfTask(task, list, find)
		b := body(t, e)
		if e.Customer != c.customer || b["outcome"] != c.outcome || fmt.Sprint(b["not_succeeded"]) != c.bad ||
			b["task"] != "t1" || e.Kind != TaskEnded {
			t.Errorf("%v: customer %q: %s", c.hosts, e.Customer, e.Body)
		}
		if again := OfTask(task, list[:1], find); again.ID != e.ID || len(list) > 1 && again.Customer != "" {
			t.Errorf("told again with fewer jobs: %+v", again)
		}
	}
}

// An event of many hosts names none, so that no trigger takes a part of them for all.
func TestAnEventOfManyHostsNamesNone(t *testing.T) {
	t.Parallel()
	hosts := map[string]jobs.Outcome{}
	for i := range namesMax + 1 {
		hosts[fmt.Sprint("h", i)] = jobs.Failed
	}
	task, list := ended(hosts)
	if b := body(t, OfTask(task, list, find)); b["hosts"] != nil || b["not_succeeded"] != nil ||
		b["total"] != float64(namesMax+1) {
		t.Errorf("%v", b)
	}
}

func TestChangesOfHosts(t *testing.T) {
	t.Parallel()
	before := map[string]fleet.Host{"a1": stock["a1"], "a2": stock["a2"], "b1": stock["b1"]}
	moved, other := stock["a1"], stock["b1"]
	moved.Address, moved.HostKeys = "10.9.9.9", []string{"ssh-ed25519 AAAA"}
	other.Customer = "acme"
	after := map[string]fleet.Host{"a1": moved, "b1": other, "n1": stock["n1"]}
	var got []string
	at := Versions{From: "v1", To: "v2", Step: 7, At: time.Unix(1, 0)}
	for _, c := range Changes(before, after) {
		e := OfHost(c, at)
		got = append(got, fmt.Sprintf("%s %s %q %v", e.Kind, c.Name, e.Customer, body(t, e)["fields"]))
		if strings.Contains(string(e.Body), "root") || strings.Contains(string(e.Body), "ssh-") {
			t.Errorf("the event says how muster logs in: %s", e.Body)
		}
		later := at
		later.Step++
		if OfHost(c, at).ID != e.ID || OfHost(c, later).ID == e.ID {
			t.Error("the same change has two ids, or another one the same id")
		}
	}
	want := []string{`host-changed a1 "acme" [address host_keys]`, `host-removed a2 "acme" <nil>`,
		`host-changed b1 "" [customer]`, `host-added n1 "" <nil>`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if list := Changes(after, after); len(list) > 0 {
		t.Errorf("nothing changed: %+v", list)
	}
}

// Numbers that always differ are no change.
func TestAFactThatIsMeasuredDoesNotChange(t *testing.T) {
	t.Parallel()
	f := jobs.HostFacts{Host: "a1", Task: "t1", At: jobs.Time{Time: time.Unix(1, 0)},
		Facts: map[string]string{"os": "debian", "uptime": "5", "disk_free": "1", "clock_offset": "0"}}
	if e, ok := OfFacts(f, map[string]string{"os": "debian"}, find); ok {
		t.Errorf("%s", e.Body)
	}
	f.Facts["kernel"] = "6.12"
	e, ok := OfFacts(f, map[string]string{"os": "bookworm", "arch": "arm64"}, find)
	b := body(t, e)
	if !ok || e.Customer != "acme" || fmt.Sprint(b["names"]) != "[arch kernel os]" ||
		!strings.Contains(string(e.Body), `"os":{"from":"bookworm","to":"debian"}`) || b["task"] != "t1" {
		t.Errorf("%s of %q", e.Body, e.Customer)
	}
}

func TestAMissedWindowIsToldToEachCustomer(t *testing.T) {
	t.Parallel()
	h := jobs.Happening{ID: "5-0", Zone: "z", Event: "end", Object: "t1:a1",
		Detail: map[string]any{"outcome": "expired"}}
	if !Expired(h) {
		t.Error("the end of a job that has expired")
	}
	job := func(host string, o jobs.Outcome, window float64) jobs.JobInfo {
		j := jobs.JobInfo{Host: host, Outcome: o}
		j.Times = jobs.Times{jobs.InWindow: window}
		return j
	}
	list := OfMissed(h, jobs.TaskInfo{Task: "t1"}, []jobs.JobInfo{job("a1", jobs.Expired, 9),
		job("a2", jobs.Expired, 0), job("b1", jobs.Expired, 1), job("n1", jobs.Succeeded, 9)}, find)
	var got []string
	for _, e := range list {
		got = append(got, e.Customer+fmt.Sprint(body(t, e)["hosts"]))
	}
	if want := []string{"acme[a1]", "bolt[b1]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
