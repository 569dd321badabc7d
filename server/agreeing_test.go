package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/windows"
)

// Two customers have hosts at one site. The approval of one opens no host of the other.
func TestEachCustomerOfASiteApprovesForItself(t *testing.T) {
	t.Parallel()
	hosts := acme(2)
	hosts[1].Name, hosts[1].Customer = "globex1", "globex"
	for i := range hosts {
		hosts[i].Labels = map[string]string{"site": "zrh1"}
	}
	w := start(t, setup{inventory: fixed([]fleet.Host{hosts[0], hosts[1]})})
	text := "windows:\n- {name: site, site: zrh1, zone: UTC, start: '0 * * * *', length: 1h}\n" +
		"- {name: own, customer: globex, zone: UTC, start: '0 * * * *', length: 1h}\n"
	var out api.WindowsChanged
	body := api.WindowsRequest{Files: []windows.File{{Name: "w.yaml", Content: text}}}
	w.call(http.MethodPut, "/v1/windows", body, &out)
	if len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "where acme and globex have hosts") {
		t.Errorf("it says %q", out.Notes)
	}
	span := func(customer string) api.ApproveRequest {
		now := time.Now()
		return api.ApproveRequest{Customer: customer, From: jobs.Time{Time: now.Add(-2 * time.Hour)},
			Until: jobs.Time{Time: now.Add(24 * time.Hour)}}
	}
	for customer, want := range map[string]string{"": "where acme and globex have hosts: say which",
		"initech": "customer initech has no host of site zrh1: want acme or globex"} {
		r, answer := w.raw(http.MethodPost, "/v1/windows/site/approve", span(customer), nil)
		if r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(answer), want) {
			t.Errorf("by %q: %s %s", customer, r.Status, answer)
		}
	}
	if r, answer := w.raw(http.MethodPost, "/v1/windows/own/approve", span("acme"), nil); r.StatusCode != 422 ||
		!strings.Contains(string(answer), "acme cannot approve it") {
		t.Errorf("by a stranger: %s %s", r.Status, answer)
	}
	var a api.Approved
	w.call(http.MethodPost, "/v1/windows/site/approve", span("acme"), &a)
	w.call(http.MethodPost, "/v1/windows/own/approve", span(""), nil)
	if a.Customer != "acme" {
		t.Errorf("it is approved as %+v", a)
	}
	for host, want := range map[string]string{hosts[0].Name: "site", "globex1": "own"} {
		var of api.HostWindows
		w.call(http.MethodGet, "/v1/hosts/"+host+"/windows", nil, &of)
		if !of.Now.Open || len(of.Windows) != 1 || of.Windows[0].Name != want {
			t.Errorf("%s: open %t, %+v", host, of.Now.Open, of.Windows)
		}
		if (len(of.Others) == 1) != (host == "globex1") {
			t.Errorf("%s: of others are %+v", host, of.Others)
		}
	}
}
