package ops

import (
	"encoding/json"
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
		if len(lines) != 4 || big < 10 || small != 1 || !strings.HasSuffix(lines[1], " 2972, 28 running") {
			t.Errorf("%d columns:\n%s", width, strings.Join(lines, "\n"))
		}
		if width > 100 && !strings.Contains(lines[3], "reordered 4.0s ago") {
			t.Errorf("%q", lines[3])
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
