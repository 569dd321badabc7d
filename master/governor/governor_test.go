package governor_test

import (
	"strings"
	"testing"
	"time"

	"muster/master/governor"
)

const gib = 1 << 30

func limits() governor.Limits { return governor.DefaultLimits() }

// Each reading alone starves a machine of four cores, lowers its number of children, or does neither.
func TestOneReadingDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reading governor.Reading
		starved bool
		most    int // children, of 16 allowed, while 2 are at work
		why     string
	}{
		"calm":          {governor.Reading{Kind: governor.Load, Value: 1}, false, 16, ""},
		"load":          {governor.Reading{Kind: governor.Load, Value: 33}, true, 16, "load is 33.0 for each core"},
		"no pressure":   {governor.Reading{Kind: governor.Pressure, Value: 40}, false, 16, ""},
		"pressure":      {governor.Reading{Kind: governor.Pressure, Value: 41}, true, 16, "at most 40.0 may be"},
		"much memory":   {governor.Reading{Kind: governor.Memory, Value: 8 * gib, Total: 16 * gib}, false, 16, ""},
		"little memory": {governor.Reading{Kind: governor.Memory, Value: gib, Total: 16 * gib}, false, 5, "room for 3"},
		"no memory": {governor.Reading{Kind: governor.Memory, Value: gib / 2, Total: 16 * gib}, true, 16,
			"of 16.0 Gi bytes"},
		"large": {governor.Reading{Kind: governor.Memory, Value: 3 * gib, Total: 1024 * gib}, false, 16, ""},
		"a full disk": {governor.Reading{Kind: governor.Disk, Where: "/x", Value: 1 << 20, Total: gib}, true, 16,
			"disk of /x: 1.0 Mi of 1.0 Gi bytes free, and 10.2 Mi must be"},
		"a disk":         {governor.Reading{Kind: governor.Disk, Value: 2 * gib, Total: 1024 * gib}, false, 16, ""},
		"no inodes":      {governor.Reading{Kind: governor.Inodes, Value: 9, Total: 1000}, true, 16, "9 of 1000 inodes"},
		"few pids":       {governor.Reading{Kind: governor.Pids, Value: 60, Total: 200}, false, 4, "room for 2"},
		"no pids":        {governor.Reading{Kind: governor.Pids, Value: 9, Total: 20}, true, 16, "10 must be"},
		"no files":       {governor.Reading{Kind: governor.Files, Value: 0, Total: 1000}, true, 16, "0 of 1000 files"},
		"nothing of it":  {governor.Reading{Kind: governor.Pids, Value: 0, Total: 0}, false, 16, ""},
		"no free memory": {governor.Reading{Kind: governor.Memory, Value: 0, Total: gib}, true, 16, "0 of 1.0 Gi"},
	} {
		v := governor.New(limits()).Judge(0, []governor.Reading{c.reading}, 2, 16)
		if v.Starved != c.starved || v.Children != c.most || !strings.Contains(strings.Join(v.Texts(), ";"), c.why) ||
			(c.why == "") != (len(v.Why) == 0) {
			t.Errorf("%s: %+v, want starved %t, %d children, %q", name, v, c.starved, c.most, c.why)
		}
	}
}

// A limit of 0 is off, whatever was measured.
func TestALimitOfZeroIsOff(t *testing.T) {
	t.Parallel()
	g := governor.New(governor.Limits{})
	var all []governor.Reading
	for _, k := range governor.Kinds() {
		all = append(all, governor.Reading{Kind: k, Value: 0, Total: 100})
	}
	all = append(all, governor.Reading{Kind: governor.Load, Where: "x", Value: 1e9})
	if v := g.Judge(0, all, 0, 16); v.Starved || v.Children != 16 || len(v.Why) != 0 {
		t.Errorf("%+v", v)
	}
}

// Running children are never too many: the verdict concerns others.
func TestRunningChildrenStay(t *testing.T) {
	t.Parallel()
	v := governor.New(limits()).Judge(0, []governor.Reading{
		{Kind: governor.Pids, Value: 11, Total: 200}, {Kind: governor.Memory, Value: gib, Total: 16 * gib}}, 9, 16)
	if v.Starved || v.Children != 9 {
		t.Errorf("%+v, want 9 children", v)
	}
	if v = governor.New(limits()).Judge(0, nil, 20, 16); v.Children != 16 {
		t.Errorf("after a reload to fewer: %+v", v)
	}
}

// A machine that was short of something takes nothing until it has clearly enough, and for a while
// after the last look at which it had not.
func TestAMachineRecoversSlowly(t *testing.T) {
	t.Parallel()
	g := governor.New(limits())
	for i, step := range []struct {
		at      time.Duration
		free    float64 // MiB of 1 GiB; the limit is 51.2
		starved bool
	}{
		{0, 52, false}, {1, 51, true}, {2, 52, true}, // above the limit, not clearly
		{60, 63, true}, {61, 65, true}, // clearly enough, but just now
		{69, 65, true}, {70, 65, false}, {71, 52, false}, {72, 51, true},
	} {
		v := g.Judge(step.at*time.Second, []governor.Reading{{Kind: governor.Memory, Value: step.free * (1 << 20),
			Total: gib}}, 0, 16)
		if v.Starved != step.starved {
			t.Errorf("step %d: %+v, want starved %t", i, v, step.starved)
		}
	}
	load := governor.New(limits())
	for i, step := range []struct {
		at      time.Duration
		load    float64
		starved bool
	}{{0, 32, false}, {1, 33, true}, {20, 30, true}, {31, 28, false}, {32, 32, false}} {
		v := load.Judge(step.at*time.Second, []governor.Reading{{Kind: governor.Load, Value: step.load}}, 0, 16)
		if v.Starved != step.starved {
			t.Errorf("load, step %d: %+v, want starved %t", i, v, step.starved)
		}
	}
}

// A thing that cannot be measured any more holds nothing back.
func TestAReadingThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	g := governor.New(limits())
	full := []governor.Reading{{Kind: governor.Disk, Where: "/x", Value: 0, Total: gib}}
	if v := g.Judge(0, full, 0, 4); !v.Starved {
		t.Fatalf("%+v", v)
	}
	if v := g.Judge(1, nil, 0, 4); v.Starved {
		t.Errorf("%+v", v)
	}
}

// The more children run, the fewer begin at once, and the later.
func TestStartsShrinkWithWork(t *testing.T) {
	t.Parallel()
	for running, want := range map[int]int{0: 20, 1: 19, 10: 10, 17: 3, 18: 2, 100: 2} {
		if got := governor.Starting(4, running); got != want {
			t.Errorf("%d running: %d may start, want %d", running, got, want)
		}
	}
	for running, want := range map[int]time.Duration{0: 0, 1: time.Millisecond, 10: 100 * time.Millisecond,
		50: 2500 * time.Millisecond, 100: 10 * time.Second, 1000: 10 * time.Second} {
		if got := governor.Delay(running); got != want {
			t.Errorf("%d running: %s, want %s", running, got, want)
		}
	}
}

// All reasons are told at once, and each kind once to metrics.
func TestAllReasonsAreTold(t *testing.T) {
	t.Parallel()
	v := governor.New(limits()).Judge(0, []governor.Reading{{Kind: governor.Load, Value: 99},
		{Kind: governor.Disk, Where: "/a", Total: 1}, {Kind: governor.Disk, Where: "/b", Total: 1}}, 0, 4)
	if len(v.Texts()) != 3 || len(v.Kinds()) != 2 {
		t.Errorf("%v of kinds %v", v.Texts(), v.Kinds())
	}
}
