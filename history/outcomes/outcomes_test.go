package outcomes_test

import (
	"cmp"
	"os"
	"slices"
	"testing"
	"time"

	"muster/api"
	"muster/history"
	"muster/history/outcomes"
	"muster/jobs"
	"muster/jobs/outliers"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	sqltest.Done()
	os.Exit(code)
}

// Jobs are counted by their work and their node, in both databases.
func TestJobsAreCountedByNode(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]history.Config{"sqlite": sqltest.SQLite(t),
		"postgres": sqltest.Shared(t).Config(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sqltest.Ready(t, cfg)
			at := time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)
			minute := func(n int) jobs.Time { return jobs.Time{Time: at.Add(time.Duration(n) * time.Minute)} }
			b := history.Batch{Zone: "eu", Last: "9-0", Entries: 9}
			for _, j := range []struct {
				host, customer, node string
				outcome              jobs.Outcome
				began, ended         int // minutes
			}{
				{"fw1", "acme", "n1/7", jobs.Succeeded, 2, 9},
				{"fw2", "acme", "n1/8", jobs.Failed, 2, 9},
				{"fw3", "acme", "n2/7", jobs.Cancelled, 2, 9},   // says nothing
				{"fw4", "acme", "n2/7", jobs.Unreachable, 2, 3}, // ended before
				{"fw5", "bolt", "n2/7", jobs.Unknown, 0, 9},     // began before
				{"fw6", "bolt", "n2/7", jobs.Unknown, 6, 9},
			} {
				past := api.PastJob{Customer: j.customer}
				past.ID, past.Host, past.Zone = jobs.NewID("0wcy7y2fb2", j.host), j.host, "eu"
				past.Runbook, past.State, past.Outcome = "firewall", jobs.Ended, j.outcome
				past.Node, past.Attempt = j.node, 1
				past.Started, past.Finished = minute(j.began), minute(j.ended)
				b.Ended = append(b.Ended, past)
			}
			if _, err := s.Put(t.Context(), b, at); err != nil {
				t.Fatal(err)
			}
			got, err := outcomes.Since(t.Context(), s, minute(5).Time, minute(1).Time)
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(got, func(a, b outliers.Count) int { return cmp.Compare(a.Node, b.Node) })
			work := func(customer string) outliers.Work {
				return outliers.Work{Task: "0wcy7y2fb2", Zone: "eu", Customer: customer, Runbook: "firewall"}
			}
			want := []outliers.Count{{Work: work("acme"), Node: "n1", Jobs: 2, Failed: 1},
				{Work: work("bolt"), Node: "n2", Jobs: 1, Failed: 1}}
			if !slices.Equal(got, want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}
