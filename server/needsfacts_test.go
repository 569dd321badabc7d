package server_test

import (
	"strings"
	"testing"

	"muster/api"
)

// A runbook that needs facts is refused before anything is queued, as long as one host has
// not said them, or says something else.
func TestARunbookNeedsFacts(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{`
name: patch
description: only for what it was made for
needs: [fact.kernel, fact.os=debian]
steps:
  - name: patch
    run: 'true'
`}})
	submit := api.Submit{Runbook: "patch", On: "fw001,fw002"}
	refused := func(want ...string) {
		t.Helper()
		var p problem
		if res := w.call("POST", "/v1/tasks", submit, &p); res.StatusCode != 422 {
			t.Fatalf("%s: %s", res.Status, p.words())
		}
		for _, words := range want {
			if !strings.Contains(p.words(), words) {
				t.Errorf("it says %s, without %q", p.words(), words)
			}
		}
	}
	gather := func(on, os string) {
		t.Helper()
		task := w.submit(api.Submit{Runbook: "facts", On: on})
		w.work("default", factsOf(os))
		if err := w.server.Duty(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.call("POST", "/v1/tasks/"+string(task.Task)+"/facts", nil, nil)
	}
	refused("the fact kernel, which is not known of 2 of 2 hosts: fw[001-002]", "the fact os, which")
	gather("fw001", "debian")
	refused("the fact kernel, which is not known of 1 of 2 hosts: fw002")
	gather("fw002", "openbsd")
	refused("the fact os to be debian, and of 1 of 2 hosts it is not: fw002")
	gather("fw002", "debian")
	w.submit(submit)
	w.work("default", succeed)

	// A job counts against limits alone.
	task := w.submit(api.Submit{Runbook: "patch", On: "fw001"})
	if got, err := w.queue.Spec(t.Context(), task.Task); err != nil || len(got.Needs) != 0 {
		t.Errorf("its jobs need %q, %v", got.Needs, err)
	}
}
