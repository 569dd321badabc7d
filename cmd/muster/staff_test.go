package main

import (
	"net/http"
	"strings"
	"testing"

	"muster/testkit/apitest"
)

// The server's words about a zone without a node appear in the queue, above tables, and with the
// task; a view that shows them with the task does not show them twice.
func TestViewsShowThatNoNodeWorks(t *testing.T) {
	t.Parallel()
	const words = `no node works on zone a\u001b since 2026-11-23T16:18:46.000Z: see its nodes`
	queued := `{"task": "0wcy7y2fb2", "runbook": "exec", "operator": "alice", "state": "queued", "total": 1,
		"outcomes": {}, "zones": ["a"]}`
	a := apitest.New(t, map[string]http.HandlerFunc{
		"GET /v1/queue":  apitest.Answer(`{"zones": [{"zone": "a", "no_node": "` + words + `"}]}`),
		"GET /v1/pauses": apitest.Answer(`{"no_node": {"a": "` + words + `"}}`),
		"GET /v1/tasks":  apitest.Answer(`{"tasks": [` + queued + `]}`),
		"POST /v1/tasks": apitest.Answer(queued),
		"GET /v1/tasks/0wcy7y2fb2/summary": apitest.Answer(`{"task": ` + queued + `, "groups": [], "waits": [{"order": true,
			"count": 1, "hosts": "fw1", "why": "` + words + `"}]}`)})
	want := strings.ReplaceAll(words, `\u001b`, `\x1b`)
	_, out, said := muster(t, a.URL, "queue")
	apitest.WantParts(t, "queue", out, want)
	apitest.WantParts(t, "above it", said, want)
	_, _, said = muster(t, a.URL, "tasks")
	apitest.WantParts(t, "above tasks", said, want)
	_, _, said = muster(t, a.URL, "run", "exec", "all", "--arg", "cmd=true", "--detach")
	apitest.WantParts(t, "a submit", said, "waits: "+want)
	_, _, said = muster(t, a.URL, "run", "exec", "all", "--arg", "cmd=true", "--dry-run")
	apitest.WantParts(t, "a dry run", said, "would wait: "+want)
	_, out, said = muster(t, a.URL, "task", "0wcy7y2fb2")
	apitest.WantParts(t, "task", out, "1 waiting: fw1\n  "+want)
	if said != "" {
		t.Errorf("task says it twice: %q", said)
	}
}
