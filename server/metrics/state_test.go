package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue/hooks"
)

// A number that could not be read is missing, and not 0: so an alarm about a missing number rings,
// and none is told that all is well.
func TestWhatIsNotKnownIsMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		now        State
		has, lacks []string
	}{
		{"nothing", State{Hosts: -1, Looks: Looks{-1, -1}}, []string{"muster_redis_up 0", "muster_redis_writes 0"},
			[]string{"muster_inventory_hosts", "muster_nodes", "muster_children", "muster_history", "muster_groups_frozen",
				"muster_hosts_quarantined"}},
		{"history that nobody could ask about", State{History: &History{Trouble: true}},
			[]string{"muster_history_trouble 1", "muster_inventory_hosts 0"}, []string{"muster_history_away"}},
		{"a spoiled zone", State{Zones: []Zone{{Name: "eu", Spoiled: true, Queued: 3}}},
			[]string{`muster_zone_spoiled{zone="eu"} 1`}, []string{"muster_queue", "muster_zone_frozen", "_ended_"}},
		{"nodes that are gone", State{Nodes: []jobs.Node{
			{State: "running", Children: make([]jobs.Child, 2)}, {State: "gone", Children: make([]jobs.Child, 5)},
			{State: "a word of a later version", Unusual: jobs.Unusual{Doubt: "windows"}}}},
			[]string{"muster_children 2", `muster_nodes{state="gone"} 1`, `muster_nodes{state="other"} 1`,
				"muster_nodes_in_doubt 1"}, []string{"a word"}},
		{"nodes that take less", State{Nodes: []jobs.Node{{State: "running", Limit: 8},
			{State: "running", Limit: 8,
				Unusual: jobs.Unusual{Governor: &jobs.Governor{Children: 3, Kinds: []string{"memory"}}}},
			{State: "running", Limit: 8,
				Unusual: jobs.Unusual{Governor: &jobs.Governor{Starved: true, Kinds: []string{"disk", "later"}}}},
			{State: "running", Limit: 8, Unusual: jobs.Unusual{Paused: &jobs.Pause{}}}, {State: "gone", Limit: 8}}},
			[]string{"muster_nodes_paused 1", `muster_nodes_starved{kind="disk"} 1`, "muster_children_allowed 11",
				`muster_nodes_starved{kind="memory"} 0`}, []string{"later"}},
		{"a zone", State{Zones: []Zone{{Name: "eu", Shut: true, Overdue: 1.5, EndedTasks: 2,
			EndedJobs: map[jobs.Outcome]int64{jobs.Failed: 4}}}},
			[]string{`muster_zone_frozen{zone="eu"} 1`, `muster_jobs_ended_total{outcome="failed",zone="eu"} 4`,
				`muster_jobs_ended_total{outcome="unknown",zone="eu"} 0`, `muster_tasks_ended_total{zone="eu"} 2`,
				`muster_queue_overdue_seconds{zone="eu"} 1.5`}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := scrape(New("1.2.3"), c.now)
			for _, line := range c.has {
				if !strings.Contains(text, "\n"+line+"\n") {
					t.Errorf("no line %s", line)
				}
			}
			for _, word := range c.lacks {
				if strings.Contains(text, word) {
					t.Errorf("it says %s", word)
				}
			}
		})
	}
}

// Each family says in its help what it counts.
func TestEachFamilyHasAHelp(t *testing.T) {
	t.Parallel()
	m := New("1.2.3", "no_token")
	m.Submitted("accepted")
	m.Inventory("published")
	m.Answered("", 404, 1, false)
	m.OpenTasks(map[string]int{"running": 1})
	m.Work.Ended(End{Runbook: "exec", Outcome: jobs.Failed, Began: true})
	text := scrape(m, State{Nodes: []jobs.Node{}, Calls: []hooks.Call{{Name: "get", Buckets: make([]uint64, 99)}},
		Notify: &Notify{Messages: []Messages{{"noc", "waiting", 1, time.Second}}}, Zones: []Zone{{Name: "eu"}},
		Repositories: []Repository{{"rules", true, 2, time.Second}},
		History:      &History{Known: true, Backlog: map[string]float64{"eu": .5}}})
	families := 0
	for line := range strings.Lines(text) {
		if name, help, ok := strings.Cut(strings.TrimPrefix(line, "# HELP "), " "); ok &&
			strings.HasPrefix(line, "# HELP muster_") {
			if families++; !strings.Contains(help, ".") {
				t.Errorf("%s has the help %q", name, help)
			}
		}
	}
	if families != 54 {
		t.Errorf("%d families; this test says 54", families)
	}
	m.OpenTasks(nil)
	if strings.Contains(scrape(m, State{}), "muster_tasks_open{") {
		t.Error("a server that does not count any more still says a number")
	}
}

func scrape(m *Meters, now State) string {
	w := httptest.NewRecorder()
	m.Serve(w, httptest.NewRequest("GET", "/metrics", nil), now)
	return w.Body.String()
}
