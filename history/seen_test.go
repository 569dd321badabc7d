package history_test

import (
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/history"
	"muster/history/part"
	"muster/jobs"
	"muster/testkit/sqltest"
)

// isSeen is the rule for parts by its words.
func isSeen(parts []part.Part, j api.PastJob) bool {
	return parts == nil || slices.ContainsFunc(parts, func(p part.Part) bool {
		if customer, has := p.Hosts[j.Host]; p.Hosts != nil && (!has || customer != j.Customer) {
			return false
		}
		return !slices.ContainsFunc(p.Runbooks, func(list []string) bool {
			return !slices.ContainsFunc(list, func(glob string) bool {
				ok, _ := path.Match(glob, j.Runbook)
				return ok
			})
		})
	})
}

// walk reads all pages of a list.
func walk(t *testing.T, s *history.Store, f history.Filter) []string {
	t.Helper()
	var all []string
	for cursor := ""; ; {
		list, next, err := s.Jobs(t.Context(), f, cursor, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range list {
			all = append(all, string(j.ID))
		}
		if next != "" && len(list) < 7 {
			t.Fatalf("a page of %d has another behind it", len(list))
		}
		if cursor = next; next == "" {
			return all
		}
	}
}

// The query leaves out what somebody may not see: pages are full, and together they have the jobs of the
// rule, whatever else is asked.
func TestPagesHaveWhatIsSeenAndNothingElse(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		b := history.Batch{}
		for i := range 240 {
			id := taskID(i / 12)
			j := job(id, fmt.Sprintf("fw%02d", i%12), jobs.Outcomes()[i%3], 0)
			j.Finished, j.Customer = at(0), []string{"acme", "bolt", "", "100%"}[i%4]
			if i >= 200 && i%12 == 0 {
				j.Customer = "bolt" // the host has changed hands
			}
			j.Runbook = []string{"dns_roll", "dnsxroll", "firewall", "fir?w*"}[i/12%4]
			b.Ended = append(b.Ended, j)
		}
		store(t, s, b)
		hosts := func(customers ...string) map[string]string {
			all := map[string]string{}
			for i := range 12 {
				if c := []string{"acme", "bolt", "", "100%"}[i%4]; slices.Contains(customers, c) {
					all[fmt.Sprintf("fw%02d", i)] = c
				}
			}
			return all
		}
		for name, parts := range map[string][]part.Part{
			"all": nil, "nothing": {}, "no host": {{Hosts: hosts()}}, "acme": {{Hosts: hosts("acme")}},
			"two": {{Hosts: hosts("acme", "bolt")}}, "of nobody": {{Hosts: hosts("")}}, "sign": {{Hosts: hosts("100%")}},
			"runbook": {{Runbooks: [][]string{{"dns_*"}}}}, "one": {{Runbooks: [][]string{{"dns?roll", "x"}, {"*x*"}}}},
			"of acme": {{Hosts: hosts("acme"), Runbooks: [][]string{{"fire*"}}}},
			"parts":   {{Hosts: hosts("acme"), Runbooks: [][]string{{"fire*"}}}, {Hosts: hosts("bolt")}},
			"whole":   {{}, {Hosts: hosts("bolt")}},
		} {
			for ask, f := range map[string]history.Filter{"any": {}, "bolt": {Customer: "bolt"}, "host": {Host: "fw00"},
				"task": {Task: taskID(7)}, "failed": {Outcome: jobs.Outcomes()[1]},
				"runbook": {Runbook: "firewall", Operator: "alice"}} {
				var want []string
				for _, id := range walk(t, s, f) {
					i := slices.IndexFunc(b.Ended, func(j api.PastJob) bool { return string(j.ID) == id })
					if isSeen(parts, b.Ended[i]) {
						want = append(want, id)
					}
				}
				f.Seen = parts
				if diff := cmp.Diff(want, walk(t, s, f)); diff != "" {
					t.Errorf("%s of %s: %s", ask, name, diff)
				}
			}
		}
	})
}

// A page of one customer is found by its index, as if the caller had asked for the customer.
func TestAPageOfWhatIsSeenIsFoundByItsIndex(t *testing.T) {
	t.Parallel()
	f := history.Filter{Seen: []part.Part{{Hosts: map[string]string{"fw0042": "c042", "fw0142": "c042"}}}}
	s := ready(t, sqltest.SQLite(t)) // PostgreSQL plans by what is there
	fillTables(t, s, 1)
	lines, err := history.Explain(t.Context(), s, f)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(lines, "SEARCH jobs USING INDEX jobs_customer (customer=?)") ||
		slices.Contains(lines, "USE TEMP B-TREE FOR ORDER BY") {
		t.Errorf("the plan: %q", lines)
	}
}
