package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
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
	over := make(chan struct{})
	go func() {
		defer close(over)
		for version := 1; version <= 40; version++ {
			put(version)
		}
	}()
	versions := regexp.MustCompile("version-[0-9]+")
	seen := map[string]bool{}
	for last := false; !last; {
		select {
		case <-over:
			last = true // one more, after all of it
		default:
		}
		do := run("fw-a[1,2]")
		do.Runbook, do.Args = "act", nil
		do.Rollout = &jobs.RolloutAsk{Stages: jobs.Stages{Waves: []string{"1", "100%"}, Health: "look"}}
		spec, err := b.queue.Spec(t.Context(), b.submit(do).Task)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		found := versions.FindAllString(string(text), -1)
		if len(found) < 2 || len(slices.Compact(slices.Sorted(slices.Values(found)))) != 1 {
			t.Errorf("a task has %q: want both runbooks, of one version", found)
		}
		seen[found[0]] = true
		if last && found[0] != "version-40" {
			t.Errorf("the last task has %q, after the last apply", found)
		}
	}
	if len(seen) < 3 {
		t.Errorf("the tasks have %d versions: want some of them submitted between two applies", len(seen))
	}
}
