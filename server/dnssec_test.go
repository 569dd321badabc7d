package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
)

// dnssecOf returns what a caller sees of the keys of DNS zones.
func (w *world) dnssecOf(question, token string) (l api.DNSSECList) {
	w.t.Helper()
	res, text := w.raw("GET", "/v1/dnssec"+question, nil, bearing(token))
	if err := json.Unmarshal(text, &l); err != nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s", res.Status, text)
	}
	return l
}

// The keys of a zone are those that the newest job saw, for whoever sees that job; history has them
// when Redis has not, and the page shows the same without running what a host said.
func TestKeysOfZonesAreShownToWhoSeesTheirHosts(t *testing.T) {
	t.Parallel()
	w, store := scoped(t)
	said := "== step 1 of 1: status ==\nkey       4711  KSK ECDSAP256SHA256 active\n" +
		"DS        <script>alert(1)</script>\nexample.com validates everywhere; no rollover is under way\n"
	ask := func(on, zone string) api.Submit {
		return api.Submit{Runbook: "dnssec-status", On: on, Args: map[string]string{"zone": zone}}
	}
	w.submit(ask("fw-a1", "Example.com."))
	w.submit(ask("fw-b1", "bolt.example"))
	w.work("default", func(string) jobs.Result {
		r := succeed("")
		r.Output = []byte(said)
		return r
	})
	kept(t, store, 2)
	w.submit(api.Submit{Runbook: "dnssec", On: "fw-a1", Args: map[string]string{"zone": "example.com", "key": "zsk"}})

	operator := w.token("operator")
	all := w.dnssecOf("", operator)
	if len(all.Zones) != 2 || all.Zones[0].Name != "bolt.example" || all.Zones[1].Name != "example.com" {
		t.Fatalf("zones: %+v", all.Zones)
	}
	z := all.Zones[1]
	if z.Host != "fw-a1" || z.Status == nil || len(z.Status.Keys) != 1 || z.Status.Keys[0].Tag != 4711 ||
		!strings.Contains(z.Status.Said, "validates everywhere") {
		t.Errorf("example.com: %+v", z.Status)
	}
	if z.Roll == nil || z.Roll.Kind != "zsk" || z.Roll.State == jobs.Ended || z.Roll.Old != "" {
		t.Errorf("its rollover, which waits: %+v", z.Roll)
	}
	if l := w.dnssecOf("?name=BOLT.example.", operator); len(l.Zones) != 1 || l.Zones[0].Host != "fw-b1" {
		t.Errorf("one by its name: %+v", l.Zones)
	}
	acme := w.token("operator-acme")
	own := w.dnssecOf("", acme)
	if len(own.Zones) != 1 || own.Zones[0].Host != "fw-a1" {
		t.Errorf("who sees acme alone sees %+v", own.Zones)
	}
	if l := w.dnssecOf("", w.token("label")); len(l.Zones) != 0 {
		t.Errorf("who sees another runbook alone sees %+v", l.Zones)
	}
	header := bearing(acme)
	header.Set("Accept", "text/html")
	_, raw := w.raw("GET", "/dnssec", nil, header) // as it is: page would undo what is escaped
	page := string(raw)
	for _, want := range []string{"4711", "example.com", "Rollover of the zsk", "&lt;script&gt;alert"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, never := range []string{"<script>alert", "bolt.example"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
}
