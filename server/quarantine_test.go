package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
	"muster/jobs/quarantine"
	"muster/jobs/queue"
	"muster/server"
)

// lookRunbook has nothing but a check.
const lookRunbook = `
name: look
timeout: 1m
steps:
  - {name: look, check: "true"}
`

// quarantined returns the hosts in quarantine as a caller sees them.
func (w *world) quarantined(header http.Header) (names []string) {
	w.t.Helper()
	var l api.QuarantineList
	res, text := w.raw("GET", "/v1/quarantine", nil, header)
	if err := json.Unmarshal(text, &l); err != nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s", res.Status, text)
	}
	for _, h := range l.Hosts {
		names = append(names, h.Host+" "+string(h.Job))
	}
	return names
}

// A job ends unknown: its host takes only checks, everything says so, and a check that succeeds
// releases it.
func TestAHostWhoseJobEndsUnknownIsSetAside(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, cfg queue.Config) {
		w := start(t, setup{redis: &cfg, runbooks: []string{lookRunbook},
			conf: server.Config{Quarantine: quarantine.Policy{Unknown: true, Runbooks: []string{"exec"}}}})
		w.submit(run("fw001"))
		g := w.take("default")[0]
		w.end("default", g, jobs.Unknown)
		if got := fmt.Sprint(w.quarantined(nil)); got != "[fw001 "+string(g.Job)+"]" {
			t.Fatalf("in quarantine: %s", got)
		}
		w.wantMetrics("muster_hosts_quarantined 1")
		var h api.HostInfo
		w.call("GET", "/v1/hosts/fw001", nil, &h)
		if h.Drained == nil || h.Drained.Only != "check" ||
			!strings.Contains(h.Drained.Note, "in quarantine: job "+string(g.Job)) {
			t.Errorf("the host says %+v", h.Drained)
		}
		body := run("fw00[1-2]")
		body.DryRun = true
		if out := w.dry(body); out.Total != 1 || out.LeftOut.Drained != "fw001" || len(out.Frozen) != 1 ||
			!strings.Contains(out.Frozen[0], "fw001: in quarantine: job "+string(g.Job)) {
			t.Errorf("a dry run says %+v", out)
		}
		if f := w.foresee(run("fw00[1-2]")); !strings.Contains(strings.Join(f.Notes, "\n"),
			"left out: fw001: in quarantine") {
			t.Errorf("a plan says %v", f.Notes)
		}
		body = run("{drained}&fw001")
		if res, text := w.raw("POST", "/v1/tasks", body, nil); res.StatusCode != http.StatusUnprocessableEntity ||
			!strings.Contains(string(text), "hosts in quarantine take only checks: fw001") {
			t.Errorf("picked by name: %s %s", res.Status, text)
		}
		check := api.Submit{Runbook: "look", On: "fw00[1-2]"}
		if out := w.submit(check); out.Total != 2 {
			t.Errorf("a check is on %d hosts", out.Total)
		}
		for _, g := range w.take("default") {
			w.end("default", g, jobs.Succeeded)
		}
		if got := w.quarantined(nil); len(got) > 0 {
			t.Errorf("after a clean check: %v", got)
		}
		if out := w.submit(run("fw001")); out.Total != 1 {
			t.Errorf("after the release: %+v", out)
		}
	})
}

// Rights are those of the hosts, and without a policy only a person sets a host aside.
func TestAPersonSetsOwnHostsAside(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy())
	w := start(t, setup{inventory: fixed(twoCustomers()), more: func(d *server.Deps) { d.Policy = policy }})
	w.submit(run("fw-b1"))
	w.end("default", w.take("default")[0], jobs.Unknown)
	if got := w.quarantined(nil); len(got) > 0 {
		t.Errorf("without a policy: %v", got)
	}
	acme := bearing(w.token("operator-acme"))
	body := api.DrainRequest{On: "all", OrderRequest: api.OrderRequest{Reason: "strange"}}
	if did := w.order("quarantine", "fw-b1", "strange"); did.Changed != "fw-b1" {
		t.Errorf("set aside: %+v", did)
	}
	res, text := w.raw("POST", "/v1/hosts/quarantine", body, acme)
	var did api.DrainAnswer
	if err := json.Unmarshal(text, &did); err != nil || res.StatusCode != http.StatusOK || did.Changed != "fw-a[1-2]" {
		t.Errorf("of the own customer: %s %s", res.Status, text)
	}
	if got := fmt.Sprint(w.quarantined(acme)); got != "[fw-a1  fw-a2 ]" {
		t.Errorf("acme sees %s", got)
	}
	body.On = "fw-b1"
	if res, text = w.raw("POST", "/v1/hosts/unquarantine", body, acme); res.StatusCode < 400 {
		t.Errorf("acme releases a host of another: %s %s", res.Status, text)
	}
	if did := w.order("unquarantine", "all", "looked"); did.Count != 3 || did.Already == "" {
		t.Errorf("released: %+v", did)
	}
}

func TestWhatIsRememberedOfAHostIsDropped(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := w.submit(api.Submit{Runbook: "facts", On: "fw001"})
	w.work("default", factsOf("debian"))
	gather := "/v1/tasks/" + string(task.Task) + "/facts"
	w.call("POST", gather, nil, nil)
	clears := func(status int) (did api.ClearedHost, words string) {
		t.Helper()
		res, text := w.raw("POST", "/v1/hosts/fw001/clear", why("another machine"), nil)
		if res.StatusCode != status {
			t.Fatalf("clear: %s %s, want %d", res.Status, text, status)
		}
		json.Unmarshal(text, &did)
		return did, string(text)
	}
	if res, _ := w.raw("POST", "/v1/hosts/fw001/clear", why(""), nil); res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %s", res.Status)
	}
	w.submit(run("fw001"))
	g := w.take("default")[0]
	if _, words := clears(http.StatusConflict); !strings.Contains(words, string(g.Job)) {
		t.Errorf("while a job has the host: %s", words)
	}
	w.end("default", g, jobs.Succeeded)
	if did, _ := clears(http.StatusOK); did.Facts != 2 || did.At.IsZero() {
		t.Errorf("dropped: %+v", did)
	}
	w.call("POST", gather, nil, nil) // the old task has them still
	var list api.FactList
	if w.call("GET", "/v1/facts?on=fw001", nil, &list); len(list.Hosts) > 0 {
		t.Errorf("they came back: %+v", list)
	}
	if did, _ := clears(http.StatusOK); did.Facts != 0 {
		t.Errorf("dropped again: %+v", did)
	}
}
