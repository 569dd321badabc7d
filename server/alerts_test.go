package server_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/api"
	"muster/jobs"
	"muster/testkit/promtest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

const monitoring = "../etc/monitoring"

// An alert is one rule of etc/monitoring.
type alert struct {
	Alert       string
	Expr        string
	Labels      struct{ Severity string }
	Annotations struct{ Summary, Page string }
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	text, err := os.ReadFile(monitoring + "/muster.rules.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil || len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatalf("%v: %d groups", err, len(file.Groups))
	}
	return file.Groups[0].Rules
}

// promtool agrees with the rules, each has a case in which it fires and one in which it is silent,
// and each has a section that says what it means and what to do.
func TestTheRulesOfAlertsHold(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"check", "rules", "muster.rules.yml"}, {"test", "rules", "muster.test.yml"}} {
		if text, err := promtest.Tool(t, monitoring, args...); err != nil {
			t.Errorf("promtool %s: %v: %s", strings.Join(args, " "), err, text)
		}
	}
	var cases struct {
		Tests []struct {
			Name  string
			Cases []struct {
				Alertname string
				Fires     []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	text, err := os.ReadFile(monitoring + "/muster.test.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &cases)
	}
	if err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, one := range cases.Tests {
		for _, c := range one.Cases {
			fires[c.Alertname] = fires[c.Alertname] || len(c.Fires) > 0
			silent[c.Alertname] = silent[c.Alertname] || len(c.Fires) == 0
		}
	}
	page, err := os.ReadFile("../docs/ALERTS.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(page), "\n## ")[1:] {
		name, body, _ := strings.Cut(s, "\n")
		sections[name] = body
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !silent[a.Alert] {
			t.Errorf("muster.test.yml lacks a case in which %s fires, or one in which it is silent", a.Alert)
		}
		if want := "docs/ALERTS.md#" + strings.ToLower(a.Alert); a.Annotations.Page != want || a.Annotations.Summary == "" {
			t.Errorf("%s has the annotations %+v, want the page %s", a.Alert, a.Annotations, want)
		}
		body := sections[a.Alert]
		if delete(sections, a.Alert); !strings.Contains(body, "It means: ") || !strings.Contains(body, "Do:\n\n- ") {
			t.Errorf("docs/ALERTS.md does not say of %s what it means and what to do", a.Alert)
		}
		if !strings.Contains(strings.ToLower(body), strings.ToLower(a.Labels.Severity)) {
			t.Errorf("docs/ALERTS.md says of %s another severity than %s", a.Alert, a.Labels.Severity)
		}
	}
	for name := range sections {
		t.Errorf("docs/ALERTS.md has %s, and no rule does", name)
	}
}

// relay lets Prometheus reach the socket of a server. It returns its address, and what ends it.
func (m *monitored) relay(t *testing.T) (addr string, end func()) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, text, err := m.try("GET", r.URL.Path, nil, nil)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
		w.WriteHeader(res.StatusCode)
		_, _ = w.Write(text)
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().(*net.TCPAddr).String(), srv.Close
}

// elsewhere has the alerts whose condition does not come about in the house of this test, with the
// test that brings about the metric, or the reason. promtool tests the rules of all.
var elsewhere = map[string]string{
	"MusterRedisSlow":          "needs minutes of slow answers",
	"MusterZoneFrozen":         "needs children that hold jobs over a restart of Redis",
	"MusterNodeClockWrong":     "needs a machine with a wrong clock: server/metrics",
	"MusterJobsLate":           "needs 15 minutes",
	"MusterWindowMissed":       "needs a window: TestAMissedWindowIsCounted",
	"MusterHistoryLosesEvents": "needs 500,000 events: server/outage_test.go has the ratio",
	"MusterAuditRefusesOrders": "needs a full disk: server/audit_test.go",
	"MusterAuditLost":          "needs a full disk: server/audit_test.go",
	"MusterAuditUnsigned":      "needs ten minutes: server/auditlog/watch_test.go",
	"MusterAuditSinkAway":      "needs 15 minutes: the page of metrics has the lag",
	"MusterNotificationsStuck": "needs 15 minutes: the page of metrics has the age",
	"MusterTimetableInDoubt":   "needs a server that signs: server/adopt_test.go",
	"MusterNotProven":          "needs nodes with keys: server/proofs_test.go",
	"MusterGlassBroken":        "needs signatures: server/glass_test.go",
}

// Each alert fires by a real fault, as a real Prometheus sees it that scrapes a real server, and
// before the faults none does. The dashboard asks only for series that are there.
func TestFaultsFireTheAlerts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a Prometheus looks at eleven faults")
	}
	t.Parallel()
	m := startMonitored(t)
	addr, end := m.relay(t)
	p := promtest.Start(t, addr)
	rules := alerts(t)
	firing := func(a alert) bool {
		n, err := p.Query(a.Expr)
		if err != nil {
			t.Fatalf("%s: %v", a.Alert, err)
		}
		return n > 0
	}
	m.manned()
	waitFor(t, "a scrape", func() bool { n, err := p.Query("muster_zone_nodes == 1"); return n == 2 && err == nil })
	for _, a := range rules {
		waitFor(t, a.Alert+" is silent", func() bool { return !firing(a) })
	}
	m.submit(run("fw001"))
	m.work("default", succeed)
	m.says(t, `muster_job_ends_total{outcome="succeeded",runbook="exec"} 1`)

	fired := map[string]bool{}
	for _, fault := range m.faults(t, end) {
		fault.cause()
		for _, a := range rules {
			if slices.Contains(fault.fires, a.Alert) {
				fired[a.Alert] = true
				waitFor(t, fault.what+" fires "+a.Alert, func() bool {
					if fault.goesOn != nil {
						fault.goesOn()
					}
					return firing(a)
				})
			}
		}
		if fault.cure != nil {
			fault.cure()
			for _, a := range rules {
				if slices.Contains(fault.clears, a.Alert) {
					waitFor(t, a.Alert+" clears", func() bool { return !firing(a) })
				}
			}
		}
		if fault.what == "work goes wrong" { // all is there, and the house still answers
			dashboardHolds(t, p)
		}
	}
	for _, a := range rules {
		if fired[a.Alert] == (elsewhere[a.Alert] != "") {
			t.Errorf("%s: fired here: %t, elsewhere: %q", a.Alert, fired[a.Alert], elsewhere[a.Alert])
		}
	}
}

type brokenThing struct {
	what          string
	cause, cure   func()
	goesOn        func() // happens again and again until the alerts fire; nil: nothing
	fires, clears []string
}

// faults lists how the house is broken, in an order in which each can still be seen.
func (m *monitored) faults(t *testing.T, end func()) []brokenThing {
	order := func(path string) func() {
		return func() { m.raw("POST", path, map[string]any{"reason": "a test"}, nil) }
	}
	return []brokenThing{
		{what: "work goes wrong", cause: func() { m.failed(t) }, fires: []string{"MusterJobsFail", "MusterJobsUnknown",
			"MusterGroupFrozen", "MusterWorkersLost"}},
		{what: "a halt", cause: order("/v1/halt"), fires: []string{"MusterHalted"},
			cure: order("/v1/lift"), clears: []string{"MusterHalted"}},
		{what: "a wrong inventory", cause: func() { m.reload(t, true) }, cure: func() { m.reload(t, false) },
			fires: []string{"MusterInventoryRefused", "MusterTrouble"}, clears: []string{"MusterInventoryRefused"}},
		{what: "a node that is ill", cause: func() { m.ill(); m.submit(run("fw003")) }, fires: []string{"MusterNodeInDoubt",
			"MusterNodeStarved", "MusterNodeHasMessage", "MusterZoneUnserved"}, cure: m.manned,
			clears: []string{"MusterNodeInDoubt", "MusterNodeStarved", "MusterNodeHasMessage", "MusterZoneUnserved"}},
		{what: "a node whose beat has ended", cause: func() { m.redis.Do(t, "DEL", "muster:{hub}:node:n1") },
			fires: []string{"MusterNodeGone"}, cure: m.manned, clears: []string{"MusterNodeGone"}},
		{what: "somebody guesses", cause: func() {
			for range 40 {
				m.raw("GET", "/v1/tasks", nil, bearing("muster_nobody"))
			}
		}, fires: []string{"MusterLoginsRefused"}},
		{what: "no room in Redis", cause: func() { m.redis.Do(t, "CONFIG", "SET", "maxmemory", "1") },
			fires: []string{"MusterRedisRefusesWrites"}, clears: []string{"MusterRedisRefusesWrites"},
			cure: func() { m.redis.Do(t, "CONFIG", "SET", "maxmemory", "0") }},
		{what: "the databases are away", cause: func() {
			if err := m.store.Close(); err != nil {
				t.Fatal(err)
			}
			if err := m.log.Close(); err != nil {
				t.Fatal(err)
			}
			m.submit(run("fw002"))
		}, fires: []string{"MusterHistoryAway", "MusterAuditAway"}},
		{what: "a foreign key", cause: func() { m.redis.Do(t, "SET", "muster:{eu}:queue", "no set") },
			fires: []string{"MusterZoneSpoiled"}, cure: func() { m.redis.Do(t, "DEL", "muster:{eu}:queue") },
			clears: []string{"MusterZoneSpoiled"}},
		{what: "Redis is away", cause: m.redis.Kill, goesOn: func() { m.raw("GET", "/v1/tasks", nil, nil) },
			fires: []string{"MusterRedisAway", "MusterRedisCallsBreak", "MusterServerFails"}},
		{what: "the server is away", cause: end, fires: []string{"MusterServerAway"}},
	}
}

func (m *monitored) reload(t *testing.T, broken bool) {
	t.Helper()
	m.broken.Store(broken)
	if err := m.server.Stock().Reload(t.Context()); (err != nil) != broken {
		t.Fatal(err)
	}
}

// failed has jobs fail, one end unknown in a group, and a worker die with one in hand.
func (m *monitored) failed(t *testing.T) {
	t.Helper()
	for range 6 {
		m.submit(run("fw001,fw002"))
	}
	code := 1
	m.work("default", func(string) jobs.Result { return jobs.Result{Outcome: jobs.Failed, ExitCode: &code} })
	m.submit(run("fw002"))
	if reply, err := m.queue.Step(t.Context(), "default", jobs.Step{Node: "n1", Slot: "9", Want: 1,
		Request: "lost"}); err != nil || len(reply.Jobs) != 1 {
		t.Fatalf("%+v, %v", reply, err)
	}
	if lost, err := m.queue.Lose(t.Context(), "default", jobs.Loss{Node: "n1", Slot: "9", Why: "killed"}); err != nil ||
		len(lost) != 1 {
		t.Fatalf("%v, %v", lost, err)
	}
	m.submit(api.Submit{Runbook: "upset", On: "fw001"})
	m.work("default", func(string) jobs.Result {
		return jobs.Result{Outcome: jobs.Unknown, Error: "the connection broke"}
	})
}

// dashboardHolds evaluates each expression of the dashboard, and looks for the series in it.
func dashboardHolds(t *testing.T, p *promtest.Prometheus) {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile(monitoring + "/muster.dashboard.json")
	if err == nil {
		err = json.Unmarshal(text, &board)
	}
	if err != nil || len(board.Panels) == 0 {
		t.Fatalf("%v: %d panels", err, len(board.Panels))
	}
	names, err := p.Names()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer("$__rate_interval", "1m", "$zone", ".*")
	for _, panel := range board.Panels {
		shown := func() (n int) {
			for _, target := range panel.Targets {
				some, err := p.Query(words.Replace(target.Expr))
				if err != nil {
					t.Fatalf("panel %s: %v: %s", panel.Title, err, target.Expr)
				}
				n += some
			}
			return n
		}
		if n := shown(); n == 0 {
			waitFor(t, "the panel "+panel.Title+" shows something", func() bool { return shown() > 0 })
		}
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(`muster_[a-z_]+`).FindAllString(target.Expr, -1) {
				if !slices.Contains(names, name) && name != "muster_notify_waiting_seconds" {
					t.Errorf("panel %s asks for %s, which no server says", panel.Title, name)
				}
			}
		}
	}
}

// A job that expires although it waited for a window counts as missed, and one that waited for a
// worker does not.
func TestAMissedWindowIsCounted(t *testing.T) {
	t.Parallel()
	mini, cfg := redistest.StartMini(t)
	w := start(t, setup{redis: &cfg, history: openHistory(t, sqltest.SQLite(t))})
	body := run("fw001,fw002")
	body.Expire = "1m"
	task := w.submit(body)
	reply, err := w.queue.Step(t.Context(), "default", jobs.Step{Node: "n", Slot: "1", Request: "a", Want: 1})
	if err != nil || len(reply.Jobs) != 1 {
		t.Fatalf("take: %+v, %v", reply, err)
	}
	g := reply.Jobs[0]
	_, err = w.queue.Step(t.Context(), "default", jobs.Step{Node: "n", Slot: "1", Request: "b", Results: []jobs.Result{
		{Job: g.Job, Token: g.Token, Kind: jobs.KindDefer, Until: jobs.MicrosOf(time.Now().Add(time.Hour))}}})
	if err != nil {
		t.Fatal(err)
	}
	mini.SetTime(task.Submitted.Add(2 * time.Hour))
	if err := w.server.Duty(t.Context()); err != nil {
		t.Fatal(err)
	}
	(&monitored{world: w}).says(t, `muster_job_ends_total{outcome="expired",runbook="exec"} 2`)
	(&monitored{world: w}).says(t, "muster_windows_missed_total 1\n")
}
