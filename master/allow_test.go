package master

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"muster/jobs"
)

// Each part of an allowance bounds what begins.
func TestAnAllowanceBoundsWhatBegins(t *testing.T) {
	t.Parallel()
	at := func(n int) *jobs.Governor { return &jobs.Governor{Children: n} }
	busy := func(ready, starting int) slots {
		l := slots{}
		for range ready {
			l[string(rune('a'+len(l)))] = &slot{child: &child{ready: true}}
		}
		for range starting {
			l[string(rune('a'+len(l)))] = &slot{call: &call{Kind: callTake}}
		}
		return l
	}
	const now = time.Minute
	for name, c := range map[string]struct {
		allowed Allowance
		slots   slots
		begun   time.Duration
		want    time.Duration
		limit   int // of 8 configured
	}{
		"nothing":        {Allowance{}, busy(7, 0), now - 1, now, 8},
		"fewer children": {Allowance{Governor: at(3)}, busy(2, 0), 0, now, 3},
		"more children":  {Allowance{Governor: at(30)}, busy(2, 0), 0, now, 8},
		"starved": {Allowance{Governor: &jobs.Governor{Starved: true, Children: 8, Why: []string{"disk"}}}, nil, 0,
			never, 8},
		"paused":           {Allowance{Paused: &jobs.Pause{Note: "alice"}}, nil, 0, never, 8},
		"two start":        {Allowance{Cores: 1}, busy(3, 2), 0, never, 8},
		"one starts":       {Allowance{Cores: 1}, busy(3, 1), 0, now, 8},
		"a later round":    {Allowance{Cores: 2}, busy(4, 0), now - 10*time.Millisecond, now + 6*time.Millisecond, 8},
		"within the round": {Allowance{Cores: 2}, busy(4, 1), now, now, 8},
		"the first round":  {Allowance{Cores: 2}, nil, 0, now, 8},
	} {
		if got := c.allowed.wait(c.slots, nil, c.begun, now); got != c.want {
			t.Errorf("%s: the next begins at %s, want %s", name, got, c.want)
		}
		if got := c.allowed.limit(8); got != c.limit {
			t.Errorf("%s: %d children, want %d", name, got, c.limit)
		}
	}
}

// Slots that wait for a zone that is away keep nothing from the others, but for memory: there are
// never more than twice as many.
func TestAZoneThatIsAwayHoldsNoPlaces(t *testing.T) {
	t.Parallel()
	n := &node{cfg: Config{Children: 2, Zones: []string{"default", "eu", "us"}}, face: newFace(nil),
		slots: slots{}, children: &nursery{}}
	n.face.failing["zone eu"] = true
	take := func(zone string) *slot { return &slot{zone: zone, call: &call{Kind: callTake}} }
	for i, c := range []struct {
		more            *slot
		limit, starting int
	}{
		{take("default"), 2, 1},
		{take("eu"), 3, 1},
		{&slot{zone: "eu", call: &call{Kind: callLose}}, 4, 1},
		{&slot{zone: "us", child: &child{ready: true, report: jobs.Report{Away: true}}}, 4, 1},
		{&slot{zone: "us", child: &child{report: jobs.Report{Away: true}}}, 4, 2},
	} {
		n.slots[strconv.Itoa(i)] = c.more
		if got := n.slots.limit(n); got != c.limit {
			t.Errorf("%d slots: at most %d, want %d", i+1, got, c.limit)
		}
		if got := n.slots.starting(n.face.failing); got != c.starting {
			t.Errorf("%d slots: %d start, want %d", i+1, got, c.starting)
		}
	}
	n.children.allowed.Governor = &jobs.Governor{Children: 1}
	if got := n.slots.limit(n); got != 1 {
		t.Errorf("where the machine bears one: at most %d", got)
	}
	n.children.allowed.Governor, n.cfg.Zones = nil, []string{"eu", "us"}
	if got := n.slots.limit(n); got != 2 {
		t.Errorf("without another zone: at most %d, want 2", got)
	}
}

// A node that is starved or paused takes nothing, says why, and lets its jobs run; afterwards it
// goes on.
func TestAStarvedNodeTakesNothingAndEndsNothing(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]Allowance{
		"starved": {Governor: &jobs.Governor{Starved: true, Children: 2, Why: []string{"disk"}, Kinds: []string{"disk"}}},
		"paused":  {Paused: &jobs.Pause{Note: "alice: new cables"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, nil)
			first := r.put("default", "hold-1")
			r.works(t, first...)
			r.m.Allow(held)
			r.until(t, "the child was told to end, and the record says why", func() bool {
				return r.drains == 1 && (r.beat.Paused != nil || r.beat.Governor != nil && r.beat.Governor.Starved)
			})
			left := r.put("default", "ok-2", "ok-3")
			r.release(first[0])
			r.ends(t, first...)
			r.until(t, "the child has ended", func() bool { return len(r.beat.Children) == 0 })
			r.mu.Lock()
			if len(r.due["default"]) != 2 {
				t.Errorf("%d jobs are left, want both", len(r.due["default"]))
			}
			r.mu.Unlock()
			r.m.Allow(Allowance{})
			r.ends(t, left...)
		})
	}
}

// A node that may have fewer children has no more of them.
func TestANodeKeepsToItsAllowance(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) { r.cfg.Children = 4 })
	r.m.Allow(Allowance{Governor: &jobs.Governor{Children: 1, Why: []string{"memory"}}, Cores: 1})
	ids := r.put("default", hosts("hold", 3)...)
	r.until(t, "one child works", func() bool {
		return len(r.beat.Children) == 1 && r.beat.Governor != nil && r.running[ids[0]]
	})
	r.m.Allow(Allowance{})
	r.works(t, ids...)
	for _, id := range ids {
		r.release(id)
	}
	r.ends(t, ids...)
}

// A node that stands in for others works for their zone too, until it does not.
func TestANodeStandsInForAZone(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	there := r.put("zrh", "hold-1")
	r.m.Allow(Allowance{Zones: []string{"zrh"}})
	r.works(t, there...)
	r.until(t, "its record says so", func() bool {
		return slices.Equal(r.beat.Standby, []string{"zrh"}) && slices.Equal(r.beat.Zones, []string{"default", "zrh"})
	})
	r.m.Allow(Allowance{})
	r.until(t, "the child is told to end", func() bool { return r.drains == 1 })
	left := r.put("zrh", "ok-2")
	r.release(there[0])
	r.ends(t, there...)
	r.ends(t, r.put("default", "ok-3")...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended[left[0]] > 0 {
		t.Error("a job of the zone was taken after the end")
	}
}
