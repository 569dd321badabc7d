package server_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/history"
	"muster/history/ledger"
	"muster/internal/repofile"
	"muster/jobs"
	"muster/master/governor"
	"muster/notify"
	"muster/server"
	"muster/server/anchor"
	"muster/server/auditlog"
	"muster/server/gitops"
	"muster/server/scribe"
	"muster/testkit/gittest"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// monitored is a whole house: Redis, history, an audit log with a sink that takes nothing, a
// receiver of notifications that takes nothing, and the means to break each.
type monitored struct {
	*world
	redis  *redistest.Server
	store  *history.Store // of history
	log    *history.Store // of the audit log
	spool  string         // the folder of the audit log
	broken atomic.Bool    // the inventory has mistakes
}

// members are hosts of two zones, two of them in a group.
func members() []fleet.Host {
	list := hosts()
	for i := range 2 {
		list[i].Group = "pair"
	}
	return list
}

func startMonitored(t *testing.T, more ...func(*server.Deps)) *monitored {
	t.Helper()
	m := &monitored{redis: redistest.StartServer(t), spool: t.TempDir()}
	cfg := m.redis.Config()
	m.store, m.log = openHistory(t, sqltest.SQLite(t)), openHistory(t, sqltest.SQLite(t))
	rules, err := notify.Parse(fleet.Source{Name: "n", Data: []byte(`
receivers:
  desk: {program: {argv: [/bin/false]}}
rules:
  - {name: ends, what: task-ended, to: desk}
`)})
	if err != nil {
		t.Fatal(err)
	}
	inventory := func() (*fleet.Inventory, error) {
		if m.broken.Load() {
			return nil, errBroken
		}
		return fleet.New(members())
	}
	m.world = start(t, setup{redis: &cfg, history: m.store, inventory: inventory, runbooks: []string{upset},
		wrap: func(q *queuetest.Queue) everything { return q },
		more: func(d *server.Deps) {
			d.Audit = m.auditLog(t)
			d.Notify = func() (*notify.Rules, error) { return rules, nil }
			for _, change := range more {
				change(d)
			}
		}})
	return m
}

// upset is a runbook that disturbs its host.
const upset = "name: upset\ndisruptive: true\nsteps: [{name: a, run: 'true'}]\n"

// auditLog is an audit log whose one sink is a port where nobody listens.
func (m *monitored) auditLog(t *testing.T) auditlog.Log {
	t.Helper()
	log := auditlog.Log{Ledger: ledger.New(m.log), Keys: keyring25519(t)}
	signer, _, err := log.Keys()
	if err != nil {
		t.Fatal(err)
	}
	log.Scribe = scribe.New(scribe.Needs{Book: log.Ledger, Dir: m.spool, Sign: signer.Entry,
		Who: func() string { return "s1" }, Log: hclog.NewNullLogger(), Now: time.Now, Patience: time.Hour})
	log.Anchor, err = anchor.New(anchor.Needs{Ledger: log.Ledger, Keys: log.Keys, Dir: m.spool,
		Config: anchor.Config{Sinks: []string{"syslog:tcp:127.0.0.1:1"}}, Log: hclog.NewNullLogger(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// scrape returns what the server tells Prometheus.
func (m *monitored) scrape() string {
	m.t.Helper()
	_, text := m.raw("GET", "/metrics", nil, nil)
	return string(text)
}

// says waits until a scrape has a line that begins so.
func (m *monitored) says(t *testing.T, line string) (text string) {
	t.Helper()
	waitFor(t, line, func() bool {
		text = m.scrape()
		return strings.Contains(text, "\n"+line)
	})
	return text
}

// ill has a node say that a lot is wrong with it.
func (m *monitored) ill() {
	m.t.Helper()
	err := m.queue.Beat(m.t.Context(), jobs.Node{ID: "n1", State: "running", Zones: []string{"default", "eu"},
		Note: "children die", Clock: jobs.Clock{Skew: -3}, Unusual: jobs.Unusual{Doubt: "trust",
			Governor: &jobs.Governor{Starved: true, Kinds: []string{string(governor.Disk)}}}})
	if err != nil {
		m.t.Fatal(err)
	}
}

// families reads the types and labels of a scrape: name to type and labels.
func families(text string) map[string]string {
	kinds, labels := map[string]string{}, map[string]map[string]bool{}
	for line := range strings.Lines(text) {
		if name, kind, ok := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " "); ok && strings.HasPrefix(line, "# TYPE ") {
			kinds[name] = strings.TrimSpace(kind)
			labels[name] = map[string]bool{}
			continue
		}
		name, rest, _ := strings.Cut(line, "{")
		if kinds[name] == "" {
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		}
		for _, l := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(rest, -1) {
			if l[1] != "le" && labels[name] != nil {
				labels[name][l[1]] = true
			}
		}
	}
	out := map[string]string{}
	for name, kind := range kinds {
		if strings.HasPrefix(name, "muster_") {
			out[name] = kind + " of " + strings.Join(slices.Sorted(maps.Keys(labels[name])), ", ")
		}
	}
	return out
}

// withRepository has the server follow a repository with one entry.
func withRepository(t *testing.T) func(*server.Deps) {
	t.Helper()
	repo := gittest.New(t)
	repo.Write("acme.yaml", "kind: window\nname: nights\ncustomer: acme\nzone: UTC\n"+
		"start: every day 02:00\nlength: 1h\napproval: none\n")
	repo.Commit("a window")
	set, err := repofile.Parse(fleet.Source{Name: "r.yaml", Data: fmt.Appendf(nil,
		"repositories:\n- {name: rules, url: %q, customers: all}\n", repo.URL())})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	return func(d *server.Deps) {
		d.Repositories = gitops.Config{Folder: folder, Read: func() (*repofile.Set, error) { return set, nil }}
	}
}

// docs/METRICS.md lists each family that a server says, with its type and labels, and no other.
func TestThePageOfMetricsIsTrue(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a house of which all is known, and then lost")
	}
	t.Parallel()
	m := startMonitored(t, withRepository(t))
	real := families(m.says(t, "muster_repository_adrift_entries"))
	m.ill()
	m.submit(run("fw001"))
	m.work("default", succeed)
	m.call("GET", "/v1/tasks", nil, nil)
	m.call("GET", "/v1/tasks", nil, nil)
	maps.Copy(real, families(m.says(t, `muster_job_ends_total{outcome="succeeded",runbook="exec"} 1`)))
	for _, line := range []string{"muster_notify_waiting_seconds", "muster_audit_sink_lag_seconds", "muster_tasks_open"} {
		maps.Copy(real, families(m.says(t, line)))
	}
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
	maps.Copy(real, families(m.says(t, "muster_history_backlog_ratio")))

	page, err := os.ReadFile("../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(muster_[a-z_]+)` \\| (\\w+) \\| ([^|]+) (\\| [^|]+ ){3}\\|$")
	listed := map[string]string{}
	for _, c := range row.FindAllStringSubmatch(string(page), -1) {
		labels := strings.Split(c[3], ", ")
		slices.Sort(labels)
		listed[c[1]] = c[2] + " of " + strings.TrimPrefix(strings.Join(labels, ", "), "–")
	}
	for name, is := range real {
		if listed[name] != is {
			t.Errorf("docs/METRICS.md has %q of %s, which is %q", listed[name], name, is)
		}
	}
	for name := range listed {
		if real[name] == "" {
			t.Errorf("docs/METRICS.md has %s, which no server says", name)
		}
	}
}
