package state

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue/read"
)

// The status stays a line that a person can read, however many zones are frozen.
func TestOfManyFrozenZonesSomeAreNamed(t *testing.T) {
	t.Parallel()
	var list []read.Freeze
	for i := range 8 {
		list = append(list, read.Freeze{Zone: "z" + strconv.Itoa(i), Why: "TIME jumped by 60 s",
			Until: jobs.Time{Time: time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)}})
	}
	words := func(list []read.Freeze) string { return strings.Join(frozenWords(list), "; ") }
	got := words(list)
	if !strings.HasPrefix(got, "nothing starts in zone z0 until 2026-11-24T03:00:00") ||
		!strings.Contains(got, "(TIME jumped by 60 s), in 3 more zones: the freeze ends") ||
		strings.Contains(got, "z5") {
		t.Error(got)
	}
	if got = words(list[:5]); strings.Contains(got, "more") || !strings.Contains(got, "z4") {
		t.Error(got)
	}
	got = words(append(list[:1:1], read.Freeze{Zone: "eu"}, read.Freeze{Zone: "us"}))
	if !strings.HasPrefix(got, "Redis has forgotten zone eu, us: it was emptied") ||
		!strings.Contains(got, "; nothing starts in zone z0 until ") {
		t.Error(got)
	}
	if got = words(nil); got != "" {
		t.Error(got)
	}
}
