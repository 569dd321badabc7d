package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"muster/cli"
	"muster/testkit/apitest"
)

func TestEventsInterruptedAreSilent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/events": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {}\n\n")
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}})
	if code, _, words := musterWith(ctx, a.URL, "events"); code != cli.ExitInterrupted || words != "" {
		t.Errorf("exit %d, %q, want 130 and no word", code, words)
	}
}

func TestEventsOfATaskThatIsNotThereAreAnError(t *testing.T) {
	t.Parallel()
	unknown := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/events": apitest.Streams(": muster\n\n"),
		"GET /v1/tasks/" + apitest.ATask: apitest.Deny(404, `{"detail": "there is no such task"}`)})
	code, _, words := muster(t, unknown.URL, "events", "--task", apitest.ATask)
	if code != cli.ExitNotAll || !strings.Contains(words, "no such task") {
		t.Errorf("a task that is not there: exit %d, %q", code, words)
	}
}
