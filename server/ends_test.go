package server_test

import (
	"strings"
	"testing"

	"muster/api"
)

// Jobs that end while another server has the duty of counting, or none has, are counted all the
// same, and a server that begins later has the same count.
func TestEveryServerCountsAllThatEnded(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(hosts())})
	w.submit(api.Submit{Runbook: "facts", On: "fw*"})
	w.work("default", succeed) // no duty was done before, between or after
	_, text := w.raw("GET", "/metrics", nil, nil)
	for _, line := range []string{
		`muster_jobs_ended_total{outcome="succeeded",zone="default"} 2`,
		`muster_jobs_ended_total{outcome="failed",zone="default"} 0`,
		`muster_jobs_ended_total{outcome="succeeded",zone="eu"} 0`,
		`muster_tasks_ended_total{zone="default"} 1`, `muster_tasks_ended_total{zone="eu"} 0`,
		"# TYPE muster_jobs_ended_total counter", "do not add them up",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %s", line)
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}
