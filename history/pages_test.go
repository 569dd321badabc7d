package history_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/history"
	"muster/jobs"
)

// filters returns all filters for lists of more than one task, with values that occur, and values
// that never occur together.
func filters() []history.Filter {
	var list []history.Filter
	middle := begin.Add(30 * time.Second)
	for set := range 1 << 4 {
		for _, outcome := range []jobs.Outcome{"", jobs.Failed, jobs.Succeeded, jobs.RolledBack} {
			for _, to := range []time.Time{{}, middle} {
				f := history.Filter{Outcome: outcome, To: to}
				for i, p := range []struct {
					into  *string
					value string
				}{{&f.Customer, "c007"}, {&f.Operator, "o3"}, {&f.Runbook, "r4"}, {&f.Host, "fw0042"}} {
					if set&(1<<i) != 0 {
						*p.into = p.value
					}
				}
				list = append(list, f)
			}
		}
	}
	return list
}

// blocksMax bounds the blocks of 8 KiB that a page of 51 jobs may read: one for each job, and some
// for the index, because a third condition is checked after the index of the first two.
const blocksMax = 130

var blocks = regexp.MustCompile(`shared (?:hit=(\d+))? ?(?:read=(\d+))?`)

// A fleet has ten million jobs after a year. A query for two values that never occur together must
// not read all of them.
func TestAPageIsFoundByItsIndexWhateverIsAsked(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		n := 1
		if history.IsPostgres(s) {
			n = 60_000 // its plans go by what is there
		}
		fillTables(t, s, n)
		for _, f := range filters() {
			lines, err := history.Explain(t.Context(), s, f)
			if err != nil {
				t.Fatal(err)
			}
			plan := strings.Join(lines, "\n")
			name := fmt.Sprintf("%+v", f)
			if !history.IsPostgres(s) {
				if strings.Contains(plan, "TEMP B-TREE") || !strings.Contains(plan, "USING INDEX") || len(lines) != 1 {
					t.Errorf("%s: want one index and nothing to sort:\n%s", name, plan)
				}
				continue
			}
			used := 0
			for _, number := range blocks.FindStringSubmatch(plan)[1:] {
				n, _ := strconv.Atoi(number) // digits, or nothing
				used += n
			}
			if used > blocksMax {
				t.Errorf("%s: %d blocks were read, want at most %d:\n%s", name, used, blocksMax, plan)
			}
		}
	})
}
