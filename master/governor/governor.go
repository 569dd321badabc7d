package governor

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A Kind says which thing a reading measures. The kinds are few, because metrics have a label for
// it.
type Kind string

// The kinds of readings.
const (
	Load     Kind = "load"     // of the last minute, for each core
	Pressure Kind = "pressure" // percent of ten seconds in which all work waited for memory
	Memory   Kind = "memory"   // bytes
	Disk     Kind = "disk"     // bytes
	Inodes   Kind = "inodes"
	Pids     Kind = "pids"  // processes and threads
	Files    Kind = "files" // open ones
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Load, Pressure, Memory, Disk, Inodes, Pids, Files} }

// A Reading holds the measure of one thing.
type Reading struct {
	Kind  Kind
	Where string  // tells several of a kind apart: a control group, a folder; may be empty
	Value float64 // of load and pressure; else what is free
	Total float64 // of what can be used up
}

// Limits says when a machine is starved. A limit of 0 is off.
type Limits struct {
	Load     float64 // for each core: more is too much
	Pressure float64 // percent: more is too much

	// These are percents of the whole that must be free. A percent of much is bounded (see most).
	Memory, Disk, Pids, Files float64
}

// DefaultLimits returns the usual limits. A worker waits for hosts most of the time, so load
// comes from others, and says little: its limit is far up.
func DefaultLimits() Limits {
	return Limits{Load: 32, Pressure: 40, Memory: 5, Disk: 1, Pids: 5, Files: 5}
}

// Validate reports all mistakes at once, each with the name of its key.
func (l Limits) Validate(bad func(is bool, format string, args ...any)) {
	bad(!(l.Load >= 0 && l.Load <= 1000), "load = %v: want 0 (off) to 1000 for each core", l.Load)
	for _, p := range []struct {
		key     string
		percent float64
		most    float64
	}{{"pressure", l.Pressure, 100}, {"memory", l.Memory, 90}, {"disk", l.Disk, 90},
		{"pids", l.Pids, 90}, {"files", l.Files, 90}} {
		bad(!(p.percent >= 0 && p.percent <= p.most), "%s = %v: want 0 (off) to %v percent", p.key,
			p.percent, p.most)
	}
}

const gib = 1 << 30

// stock holds what is known of a kind that can be used up.
type stock struct {
	percent func(Limits) float64
	least   float64 // that must be free, however small the whole is
	most    float64 // that must be free, however large the whole is
	need    float64 // of one child; 0: children do not use it up
	unit    string
}

var stocks = map[Kind]stock{
	Memory: {func(l Limits) float64 { return l.Memory }, 0, gib, 64 << 20, "bytes"},
	Disk:   {func(l Limits) float64 { return l.Disk }, 0, gib, 0, "bytes"},
	Inodes: {func(l Limits) float64 { return l.Disk }, 0, 10_000, 0, "inodes"},
	Pids:   {func(l Limits) float64 { return l.Pids }, 10, 1000, 24, "processes and threads"},
	Files:  {func(l Limits) float64 { return l.Files }, 64, 10_000, 64, "files"},
}

// A Reason says why a node takes less than it could.
type Reason struct {
	Kind Kind
	Text string
}

// A Verdict says how much work a node may take.
type Verdict struct {
	Starved  bool     // nothing
	Children int      // at most, those that run counted; never below that number
	Why      []Reason // it is starved, or may have fewer children than configured
}

// A Governor remembers of what its machine was short, so that a node does not change its mind at
// each look.
type Governor struct {
	limits Limits
	short  map[string]time.Duration // until when at least
}

// New returns a governor of a machine that lacks nothing.
func New(l Limits) *Governor { return &Governor{limits: l, short: map[string]time.Duration{}} }

const (
	// rest is the time for which a machine that was short of something takes nothing, however
	// soon it has enough again.
	rest = 10 * time.Second

	// A machine that was short of something must have so much more of it, or so much less load.
	enough = 1.25
	calm   = 0.9
)

// Judge looks at all that was measured at an instant, with so many children at work of limit that
// the configuration allows.
func (g *Governor) Judge(now time.Duration, all []Reading, running, limit int) Verdict {
	v := Verdict{Children: limit}
	seen := map[string]bool{}
	for _, r := range all {
		key := string(r.Kind) + " " + r.Where
		seen[key] = true
		text, off := g.shortage(key, r)
		switch {
		case off:
			delete(g.short, key)
		case text != "":
			g.short[key] = now + rest
			v.Starved = true
			v.Why = append(v.Why, Reason{r.Kind, text})
		case now < g.short[key]:
			v.Starved = true
			v.Why = append(v.Why, Reason{r.Kind, name(r) + " has recovered just now"})
		default:
			delete(g.short, key)
			g.room(&v, r, running)
		}
	}
	for key := range g.short { // what cannot be measured any more cannot recover
		if !seen[key] {
			delete(g.short, key)
		}
	}
	v.Children = max(v.Children, min(running, limit))
	return v
}

// shortage explains why a machine is short of something; empty: it is not. off says that nobody
// asks.
func (g *Governor) shortage(key string, r Reading) (text string, off bool) {
	until, was := g.short[key]
	was = was && until > 0
	if s, is := stocks[r.Kind]; is {
		if s.percent(g.limits) == 0 || !(r.Total > 0) {
			return "", true
		}
		floor := s.floor(g.limits, r.Total)
		want := floor
		if was {
			want = min(floor*enough, r.Total)
		}
		if r.Value >= want {
			return "", false
		}
		return fmt.Sprintf("%s: %s of %s %s free, and %s must be", name(r), amount(s.unit, r.Value),
			amount(s.unit, r.Total), s.unit, amount(s.unit, want)), false
	}
	most, unit := g.limits.Load, "for each core"
	if r.Kind == Pressure {
		most, unit = g.limits.Pressure, "% of the time"
	}
	if most == 0 || math.IsNaN(r.Value) {
		return "", true
	}
	if was {
		most *= calm
	}
	if r.Value <= most {
		return "", false
	}
	return fmt.Sprintf("%s is %.1f %s, and at most %.1f may be", name(r), r.Value, unit, most), false
}

// floor returns how much of a whole must be free.
func (s stock) floor(l Limits, total float64) float64 {
	return min(max(total*s.percent(l)/100, s.least), s.most)
}

// room lowers the number of children to those for which there is room.
func (g *Governor) room(v *Verdict, r Reading, running int) {
	s := stocks[r.Kind]
	if s.need == 0 {
		return
	}
	more := math.Floor((r.Value - s.floor(g.limits, r.Total)) / s.need)
	if more >= float64(v.Children-running) {
		return
	}
	v.Children = running + int(more)
	v.Why = append(v.Why, Reason{r.Kind, fmt.Sprintf("%s: %s of %s %s free, room for %d more children",
		name(r), amount(s.unit, r.Value), amount(s.unit, r.Total), s.unit, int(more))})
}

// name returns a kind, and where it was measured.
func name(r Reading) string {
	if r.Where == "" {
		return string(r.Kind)
	}
	return string(r.Kind) + " of " + r.Where
}

// amount writes a number, bytes in the largest unit of which there is one.
func amount(unit string, n float64) string {
	if unit != "bytes" {
		return fmt.Sprintf("%.0f", n)
	}
	for _, u := range []struct {
		size float64
		name string
	}{{gib, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}} {
		if n >= u.size {
			return fmt.Sprintf("%.1f %s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.0f", n)
}

// Starting returns how many children may start at once, on a machine with so many cores where so
// many others run.
func Starting(cores, running int) int { return max(5*cores-running, cores/2, 1) }

// delayMax bounds Delay.
const delayMax = 10 * time.Second

// Delay returns the time between two rounds of starts on a node where so many children run:
// running² ms, so that nodes with less work are quicker to take more.
func Delay(running int) time.Duration {
	ms := min(int64(running)*int64(running), int64(delayMax/time.Millisecond))
	return time.Duration(ms) * time.Millisecond
}

// Kinds returns the kinds of the reasons, each once.
func (v Verdict) Kinds() []Kind {
	var list []Kind
	for _, w := range v.Why {
		if !slices.Contains(list, w.Kind) {
			list = append(list, w.Kind)
		}
	}
	return list
}

// Texts returns the reasons of a verdict.
func (v Verdict) Texts() []string {
	var list []string
	for _, w := range v.Why {
		list = append(list, w.Text)
	}
	return list
}
