package zones

import (
	"testing"
	"time"

	"muster/jobs"
)

func TestRest(t *testing.T) {
	t.Parallel()
	const poll = 10 * time.Second
	for _, test := range []struct {
		name  string
		reply jobs.Reply
		want  time.Duration
	}{
		{"jobs", jobs.Reply{Status: jobs.StatusJobs}, 0},
		{"more", jobs.Reply{Status: jobs.StatusMore}, 0},
		{"nothing", jobs.Reply{Status: jobs.StatusNext, Now: 5}, poll},
		{"soon", jobs.Reply{Status: jobs.StatusNext, Now: 5, Next: 2_000_005}, 2 * time.Second},
		{"late", jobs.Reply{Status: jobs.StatusNext, Now: 5, Next: 60_000_005}, poll},
		{"past", jobs.Reply{Status: jobs.StatusNext, Now: 5, Next: 3}, 0},
		{"frozen", jobs.Reply{Status: jobs.StatusFrozen, Now: 5, Next: 1_000_005}, time.Second},
		{"frozen without end", jobs.Reply{Status: jobs.StatusFrozen, Now: 5}, poll},
		{"halted", jobs.Reply{Status: jobs.StatusHalted, Now: 5, Next: 6}, poll},
	} {
		if got := rest(test.reply, poll); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestZoneFollowsWhatAChildHasHeard(t *testing.T) {
	t.Parallel()
	const poll = 10 * time.Second
	// At 100 s of the boot clock Redis' clock said 7,000,000 µs.
	z := Zone{Name: "a"}
	if due := z.Quiet(9_000_000, time.Second, poll); due != 11*time.Second {
		t.Errorf("without an answer yet: due %s, want the poll", due)
	}
	z.Busy = true
	z.Answered(jobs.Reply{Status: jobs.StatusNext, Now: 7_000_000}, 100*time.Second, poll)
	if z.Busy || z.Due != 110*time.Second {
		t.Errorf("busy %v, due %s, want the poll", z.Busy, z.Due)
	}
	for at, want := range map[jobs.Micros]time.Duration{
		0:          113 * time.Second, // nothing is queued
		9_000_000:  102 * time.Second, // has passed already
		12_000_000: 105 * time.Second,
		99_000_000: 113 * time.Second, // no later than the poll
	} {
		if due := z.Quiet(at, 103*time.Second, poll); due != want {
			t.Errorf("next at %d: due %s, want %s", at, due, want)
		}
	}

	z.Hint(101 * time.Second)
	for asked, want := range map[time.Duration]time.Duration{
		100 * time.Second: 103 * time.Second, // the child asked before the hint came
		102 * time.Second: 109 * time.Second,
	} {
		z.Heard(109*time.Second, asked, 103*time.Second)
		if z.Due != want {
			t.Errorf("a child asked at %s: due %s, want %s", asked, z.Due, want)
		}
	}

	z.Busy = true
	z.Hint(104 * time.Second)
	z.Answered(jobs.Reply{Status: jobs.StatusNext, Now: 11_000_000}, 105*time.Second, poll)
	if z.Due != 105*time.Second {
		t.Errorf("a hint while a call was under way: due %s, want at once", z.Due)
	}
}

func TestNextZone(t *testing.T) {
	t.Parallel()
	const now = 100 * time.Second
	one := func(name string, looked time.Duration) *Zone {
		return &Zone{Name: name, Known: true, Looked: looked}
	}
	for name, test := range map[string]struct {
		zones Zones
		slots string // a letter for each slot in use: its zone
		want  string
	}{
		"none": {Zones{}, "", ""},
		"none is due": {Zones{{Name: "a", Known: true, Due: now + 1},
			{Name: "b", Known: true, Busy: true}, {Name: "c"},
			{Name: "d", Known: true, Asked: now + 1}}, "", ""},
		"the one that is due":  {Zones{{Name: "a", Known: true, Due: now + 1}, {Name: "b", Known: true}}, "", "b"},
		"looked at before":     {Zones{one("a", 2), one("b", 1)}, "", "b"},
		"with fewer slots":     {Zones{one("a", 1), one("b", 2)}, "aab", "b"},
		"with as many slots":   {Zones{one("a", 1), one("b", 2)}, "ba", "a"},
		"others do not matter": {Zones{one("a", 1), one("b", 2)}, "xxx", "a"},
	} {
		used := map[string]int{}
		for _, zone := range test.slots {
			used[string(zone)]++
		}
		got := ""
		if z := test.zones.Next(now, used); z != nil {
			got = z.Name
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
