package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster/jobs"
)

// coupled returns two runbooks whose texts belong together: the work of a task, and the health check
// between its waves.
func coupled(version int) string {
	var docs []string
	for _, name := range []string{"act", "look"} {
		docs = append(docs, fmt.Sprintf("kind: runbook\nname: %s\nsteps:\n  - {name: say, run: \"echo version-%d\"}\n",
			name, version))
	}
	return strings.Join(docs, "---\n")
}

// A task that somebody submits while runbooks change has the runbooks from before the apply, or those
// from after it, and never one of each.
func TestATaskHasAllRunbooksOfOneApply(t *testing.T) {
	t.Parallel()
	a, b := two(t)
	put := func(version int) {
		if _, status, words := a.applyTo(ofText(coupled(version)), nil); status != http.StatusOK {
			t.Errorf("apply: %d %s", status, words)
		}
	}
	put(0)
	last, enough, over := 0, make(chan struct{}), make(chan struct{})
	stop := sync.OnceFunc(func() { close(enough) })
	t.Cleanup(func() {
		stop()
		<-over
	})
	go func() {
		defer close(over)
		for {
			select {
			case <-enough:
				return
			default:
			}
			last++
			put(last)
		}
	}()
	seen := map[string]bool{}
	for len(seen) < 10 {
		seen[versionOfTask(b)] = true
	}
	stop()
	<-over
	if got, want := versionOfTask(b), fmt.Sprintf("version-%d", last); got != want {
		t.Errorf("after the last apply a task has %s, want %s", got, want)
	}
}

var versionWord = regexp.MustCompile("version-[0-9]+")

// versionOfTask submits a task, and returns the version of the runbooks that are frozen in it.
func versionOfTask(w *world) string {
	w.t.Helper()
	do := run("fw-a[1,2]")
	do.Runbook, do.Args = "act", nil
	do.Rollout = &jobs.RolloutAsk{Stages: jobs.Stages{Waves: []string{"1", "100%"}, Health: "look"}}
	spec, err := w.queue.Spec(w.t.Context(), w.submit(do).Task)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		w.t.Fatal(err)
	}
	found := versionWord.FindAllString(string(text), -1)
	if len(found) < 2 || len(slices.Compact(slices.Sorted(slices.Values(found)))) != 1 {
		w.t.Fatalf("a task has %q: want both runbooks, of one version", found)
	}
	return found[0]
}
