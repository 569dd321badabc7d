package staff_test

import (
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/staff"
)

func TestAZoneSaysThatNoNodeWorksOnIt(t *testing.T) {
	t.Parallel()
	at := jobs.Time{Time: time.Date(2026, 11, 23, 16, 18, 46, 0, time.UTC)}
	node := func(id, state string, zones ...string) jobs.Node {
		return jobs.Node{ID: id, State: state, Zones: zones, Seen: at}
	}
	last := map[string]jobs.Time{"a": at}
	for name, c := range map[string]struct {
		nodes []jobs.Node
		last  map[string]jobs.Time
		open  int64
		hosts bool
		want  string // what Missing contains; empty: it is empty
		alarm bool
	}{
		"one works":          {[]jobs.Node{node("n1", "running", "b", "a")}, last, 1, true, "", false},
		"it works elsewhere": {[]jobs.Node{node("n1", "running", "b")}, last, 0, true, "a since " + at.String(), true},
		"it is gone":         {[]jobs.Node{node("n1", "gone", "a")}, last, 0, true, "since " + at.String(), true},
		"it drains":          {[]jobs.Node{node("n1", "draining", "a")}, last, 0, true, "(n1 is draining)", true},
		"another one works": {[]jobs.Node{node("n1", "stopping", "a"), node("n2", "running", "a")}, nil, 1,
			true, "", false},
		"a new house":             {nil, nil, 0, true, "none has yet", false},
		"a new house with work":   {nil, nil, 1, true, "none has yet", true},
		"a zone without hosts":    {nil, last, 0, false, "since ", false},
		"work without hosts":      {nil, last, 1, false, "since ", true},
		"nothing of it was known": {[]jobs.Node{node("n1", "running", "a")}, nil, 1, true, "", false},
	} {
		z := staff.Zone{Zone: "a"}
		if known := staff.Count(c.nodes, c.last)["a"]; known != nil {
			z = *known
		}
		z.Zone, z.Open = "a", c.open
		got := z.Missing()
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || z.Alarming(c.hosts) != c.alarm {
			t.Errorf("%s: %q, alarm %t; want %q, %t", name, got, z.Alarming(c.hosts), c.want, c.alarm)
		}
		if got != "" && !strings.HasPrefix(got, "no node works on zone a") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The time at which a node last worked is the newest of the stored one and those in the nodes'
// records.
func TestStaffKnowsTheNewestBeat(t *testing.T) {
	t.Parallel()
	then := jobs.Time{Time: time.Unix(1000, 0)}
	now := jobs.Time{Time: time.Unix(2000, 0)}
	got := staff.Count([]jobs.Node{{ID: "n1", State: "running", Zones: []string{"a", "b"}, Seen: now}},
		map[string]jobs.Time{"a": then, "c": then})
	for zone, want := range map[string]jobs.Time{"a": now, "b": now, "c": then} {
		if got[zone].Last != want {
			t.Errorf("zone %s: %s, want %s", zone, got[zone].Last, want)
		}
	}
}

// A zone whose nodes live and take nothing says which they are, and why.
func TestAZoneSaysWhyItsNodesTakeNothing(t *testing.T) {
	t.Parallel()
	starved := &jobs.Governor{Starved: true, Why: []string{"no disk"}}
	little := &jobs.Governor{Children: 1, Why: []string{"little memory"}}
	z := staff.Count([]jobs.Node{
		{ID: "n1", State: "running", Zones: []string{"a"},
			Unusual: jobs.Unusual{Paused: &jobs.Pause{Note: "paused by alice: cables"}}},
		{ID: "n2", State: "running", Zones: []string{"a"}, Unusual: jobs.Unusual{Governor: starved}},
		{ID: "n3", State: "running", Zones: []string{"b"}, Unusual: jobs.Unusual{Governor: little}},
	}, nil)
	got := z["a"].Missing()
	for _, part := range []string{"n1 is paused by alice: cables", "n2 takes nothing: no disk"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
	if z["b"].Missing() != "" || z["b"].Working != 1 {
		t.Errorf("a node with fewer children works: %+v", z["b"])
	}
}
