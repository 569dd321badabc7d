package metrics

import (
	"fmt"
	"strings"
	"testing"

	"muster/jobs"
)

// Runbooks, events and outcomes that nobody has heard of make no series of their own.
func TestLabelsOfWorkAreBounded(t *testing.T) {
	t.Parallel()
	m := New("1.2.3")
	for i := range 50 {
		m.Work.Ended(End{Runbook: fmt.Sprint("r", i), Outcome: jobs.Succeeded, Began: true,
			Times: jobs.Times{jobs.Acting: 2, jobs.Queueing: 7, jobs.InWindow: 3600}})
		m.Work.Happened(fmt.Sprint("e", i))
	}
	m.Work.Ended(End{Runbook: "r1", Outcome: "a later word", Missed: true})
	text := scrape(m, State{})
	for _, line := range []string{`muster_job_ends_total{outcome="succeeded",runbook="other"} 10`,
		`muster_job_ends_total{outcome="other",runbook="r1"} 1`, `muster_events_total{event="other"} 50`,
		`muster_events_total{event="lost"} 0`, "muster_windows_missed_total 1",
		`muster_job_took_seconds_bucket{outcome="succeeded",runbook="r1",le="1"} 0`,
		`muster_job_took_seconds_bucket{outcome="succeeded",runbook="r1",le="3"} 1`,
		`muster_job_use_seconds_sum{use="queued"} 350`, `muster_job_use_seconds_count{use="gate"} 0`} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, word := range []string{"a later word", `"e1"`, `runbook="r45"`,
		`muster_job_took_seconds_count{outcome="other"`} {
		if strings.Contains(text, word) {
			t.Errorf("it says %s", word)
		}
	}
}
