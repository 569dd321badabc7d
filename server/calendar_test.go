package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/windows"
)

// apply puts a file of windows in force.
func (w *world) apply(text string) {
	w.t.Helper()
	body := api.WindowsRequest{Files: []windows.File{{Name: "w.yaml", Content: text}}}
	if res, said := w.raw("PUT", "/v1/windows", body, nil); res.StatusCode != http.StatusOK {
		w.t.Fatalf("windows: %s %s", res.Status, said)
	}
}

// proposal of an opening of acme, an hour long, which begins in an hour.
func proposal(name string) api.ProposeRequest {
	start := time.Now().UTC().Add(time.Hour).Truncate(time.Minute)
	return api.ProposeRequest{Name: name, Customer: "acme", Zone: "UTC",
		Start: start.Format("2006-01-02 15:04"), Length: "1h"}
}

// Somebody of a customer proposes, another one approves, and neither reaches another customer.
func TestPeopleOfACustomerProposeAndApprove(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	w.apply("windows:\n- {name: bolts, customer: bolt, zone: UTC, start: every day 02:00, length: 1h, " +
		"approval: required}\n")
	operator, approver := bearing(w.token("operator-acme")), bearing(w.token("approver-acme"))
	ask := func(header http.Header, path string, body any) (int, string) {
		t.Helper()
		res, text := w.raw("POST", path, body, header)
		return res.StatusCode, string(text)
	}
	check, bolt := proposal("night"), proposal("for-bolt")
	check.Check = true
	bolt.Customer = "bolt"
	for _, c := range []struct {
		name   string
		header http.Header
		path   string
		body   any
		want   int
	}{
		{"who may not order", approver, "/v1/windows/propose", proposal("night"), 403},
		{"another customer", operator, "/v1/windows/propose", bolt, 422},
		{"only a check", operator, "/v1/windows/propose", check, 200},
		{"it", operator, "/v1/windows/propose", proposal("night"), 200},
		{"a name that is taken", operator, "/v1/windows/propose", proposal("night"), 409},
		{"the name of another customer's", operator, "/v1/windows/propose", proposal("bolts"), 409},
		{"what is over", operator, "/v1/windows/propose", api.ProposeRequest{Name: "old", Customer: "acme", Zone: "UTC",
			Start: "2020-01-01 02:00", Length: "1h"}, 422},
		{"an hour that is left out", operator, "/v1/windows/propose", api.ProposeRequest{Name: "gap", Customer: "acme",
			Zone: "Europe/Berlin", Start: "2027-03-28 02:00", Length: "1h"}, 422},
		{"no zone", operator, "/v1/windows/propose", api.ProposeRequest{Name: "nowhere", Customer: "acme",
			Zone: "Mars/Olympus", Start: "2090-01-01 02:00", Length: "1h"}, 422},
	} {
		if got, text := ask(c.header, c.path, c.body); got != c.want {
			t.Errorf("%s: %d, want %d: %s", c.name, got, c.want, text)
		}
	}
	all := func(header http.Header) (c api.Calendar) {
		t.Helper()
		_, text := w.raw("GET", "/v1/calendar", nil, header)
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return c
	}
	c := all(approver)
	if len(c.Openings) != 1 || c.Openings[0].Window != "night" || c.Openings[0].Approved || !c.Openings[0].Asks ||
		strings.Join(c.Customers, " ") != "acme" {
		t.Fatalf("the approver of acme sees %+v", c)
	}
	start := c.Openings[0].Start
	yes := api.ApproveRequest{Hash: c.Openings[0].Hash, Starts: []jobs.Time{start}}
	if got, text := ask(operator, "/v1/windows/night/approve", yes); got != 403 {
		t.Errorf("who proposed it approves it without the right: %d %s", got, text)
	}
	if got, text := ask(approver, "/v1/windows/bolts/approve", yes); got != 404 || strings.Contains(text, "bolt\"") {
		t.Errorf("a window of bolt: %d %s", got, text)
	}
	got, text := ask(approver, "/v1/windows/night/approve", yes)
	var a api.Approved
	if got != 200 || json.Unmarshal([]byte(text), &a) != nil || a.Occurrences != 1 || a.Version != 0 {
		t.Fatalf("approve: %d %s", got, text)
	}
	if c = all(operator); !c.Openings[0].Approved || c.Openings[0].Approval != a.ID {
		t.Errorf("after the approval: %+v", c.Openings)
	}
	if got, text := ask(bearing(w.token("approver-bolt")), "/v1/approvals/"+a.ID+"/withdraw", nil); got == 200 {
		t.Errorf("somebody else withdraws it: %s", text)
	}
	if got, text := ask(approver, "/v1/approvals/"+a.ID+"/withdraw", nil); got != 200 {
		t.Errorf("withdraw: %d %s", got, text)
	}
	if c = all(operator); c.Openings[0].Approved {
		t.Error("it is approved after the approval was withdrawn")
	}
}

// A window of a place is there once for each customer who has to approve it.
func TestACalendarTellsCustomersApart(t *testing.T) {
	t.Parallel()
	list := acme(2)
	for i := range list {
		list[i].Labels = map[string]string{"site": "zrh1"}
	}
	list[1].Customer = "bolt"
	w := start(t, setup{inventory: fixed(list)})
	w.apply("windows:\n- {name: night, site: zrh1, zone: Europe/Berlin, start: every day 02:30, length: 2h, " +
		"approval: required}\n" +
		"freezes:\n- {name: peak, customer: bolt, zone: UTC, from: 2027-03-27, until: 2027-03-28, reason: sales}\n")
	var c api.Calendar
	const march = "/v1/calendar?from=2027-03-26T23:00:00Z&until=2027-03-29T22:00:00Z"
	w.call("GET", march, nil, &c)
	if len(c.Openings) != 6 || len(c.Freezes) != 1 {
		t.Fatalf("%d openings, %d freezes: %+v", len(c.Openings), len(c.Freezes), c)
	}
	yes := api.ApproveRequest{Customer: "bolt", Starts: []jobs.Time{c.Openings[0].Start}}
	if res, text := w.raw("POST", "/v1/windows/night/approve", yes, nil); res.StatusCode != 200 {
		t.Fatalf("%s %s", res.Status, text)
	}
	w.call("GET", march+"&customer=bolt", nil, &c)
	if len(c.Openings) != 3 || !c.Openings[0].Approved || c.Openings[0].Frozen != "peak" || c.Openings[1].Approved {
		t.Errorf("of bolt: %+v", c.Openings)
	}
	// 02:30 is left out in this night: it begins at 03:00, and ends at its usual time.
	if o := c.Openings[1]; o.LocalStart[4:20] != "2027-03-28 03:00" || o.Seconds != 90*60 {
		t.Errorf("in the night of the clock change: %+v", o)
	}
	w.call("GET", march+"&customer=acme", nil, &c)
	if len(c.Openings) != 3 || c.Openings[0].Approved || c.Openings[0].Frozen != "" || len(c.Freezes) != 0 {
		t.Errorf("of acme: %+v %+v", c.Openings, c.Freezes)
	}
	const long = "/v1/calendar?from=2027-01-01T00:00:00Z&until=2029-01-01T00:00:00Z"
	if res, _ := w.raw("GET", long, nil, nil); res.StatusCode != 422 {
		t.Errorf("two years at once: %s", res.Status)
	}
}

// Of 100 hosts 60 have their turn in the first night, and the others in the second.
func TestTheNextOpeningIsForetold(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(100)), runbooks: []string{windowedBook}})
	w.beat(10)
	w.apply(strings.Replace(twoMinutes, "length: 2m", "length: 130s", 1))
	task := w.submit(api.Submit{Runbook: "upgrade", On: "all"}).Task
	var o api.OpeningsAhead
	w.call("GET", "/v1/plan/openings", nil, &o)
	if len(o.Openings) != 2 || len(o.Left) != 0 {
		t.Fatalf("%+v", o)
	}
	for i, want := range []int{60, 40} {
		one := o.Openings[i]
		if len(one.Parts) != 1 || one.Parts[0].Task != task || one.Parts[0].Count != want || one.Windows[0] != "nightly" {
			t.Errorf("opening %d: %+v, want %d hosts", i, one, want)
		}
	}
}
