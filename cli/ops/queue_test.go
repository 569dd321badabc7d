package ops

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

func TestAPictureFitsTheTerminal(t *testing.T) {
	t.Parallel()
	var q api.QueueInfo
	if err := json.Unmarshal([]byte(apitest.SharedQueue), &q); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 10, 0, 12, 0, time.UTC)
	for _, width := range []int{20, 40, 60, 80, 200} {
		s := &cli.Session{Screen: &cli.Screen{OutTerm: true, Width: func() int { return width },
			Now: func() time.Time { return now }}}
		lines := strings.Split(strings.TrimSpace(picture(s.Screen, q.Zones[0])), "\n")
		for _, line := range lines {
			if len([]rune(line)) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		if width < 60 {
			continue
		}
		big, small := strings.Count(lines[1], "#"), strings.Count(lines[2], "#")
		if len(lines) != 5 || big < 10 || small != 1 || !strings.HasSuffix(lines[1], " 2972, 28 running") {
			t.Errorf("%d columns:\n%s", width, strings.Join(lines, "\n"))
		}
		// b has a high priority: twice as many turns as a, until its four jobs have their places.
		if next := lines[3]; !strings.HasPrefix(next, "next: ") || strings.Count(next, "b") != 4 ||
			strings.LastIndex(next, "b") > len("next: ")+8 || !strings.HasPrefix(lines[1], "a ") {
			t.Errorf("%d columns: %q", width, next)
		}
		if width > 100 && !strings.Contains(lines[4], "reordered 4.0s ago") {
			t.Errorf("%q", lines[4])
		}
	}
}

func TestAZoneThatWasNeverReorderedSaysNothing(t *testing.T) {
	t.Parallel()
	if words := reorderedWords(jobs.Reordered{}, time.Now()); words != "" {
		t.Errorf("%q", words)
	}
	if words := reorderedWords(jobs.Reordered{Now: true}, time.Now()); words != "being reordered now" {
		t.Errorf("%q", words)
	}
}

// Off a terminal a queue that only grows older has no new line, and a zone that is gone has one.
func TestOnlyAChangeOfTheQueueIsALine(t *testing.T) {
	t.Parallel()
	var q api.QueueInfo
	if err := json.Unmarshal([]byte(apitest.SharedQueue), &q); err != nil {
		t.Fatal(err)
	}
	for _, asJSON := range []bool{false, true} {
		said := map[string]string{}
		s := &cli.Session{Screen: &cli.Screen{JSON: asJSON, Now: time.Now}}
		lines := func(zones []api.Zone, stands ...string) int {
			text, err := changes(s, zones, stands, said)
			if err != nil || strings.Contains(text, "\x1b") {
				t.Fatalf("%v: %q", err, text)
			}
			return strings.Count(text, "\n")
		}
		older, more := slices.Clone(q.Zones), slices.Clone(q.Zones)
		older[0].Overdue++
		more[0].Queued++
		stands := map[bool]int{false: 1, true: 0}[asJSON]
		for i, got := range []int{lines(q.Zones) - 1, lines(older), lines(more) - 1,
			lines(more, "everything is halted") - stands, lines(more, "everything is halted"), lines(nil) - 1,
			lines(nil)} {
			if got != 0 {
				t.Errorf("json %t: look %d has %d lines too many", asJSON, i+1, got)
			}
		}
	}
}
