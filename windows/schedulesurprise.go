package windows

import (
	"fmt"
	"time"
)

// Surprises lists the effects of a schedule that may surprise its author within the [Horizon].
func (s Schedule) Surprises(now time.Time) []string {
	if s.Times.every > 0 {
		return s.surpriseInExcept(now)
	}
	out := s.Times.surprises()
	if s.Zone.at(now.Unix()).to < now.Add(Horizon).Unix() {
		out = append(out, s.surpriseOfClocks(now)...)
	}
	return append(out, s.surpriseInExcept(now)...)
}

// surpriseOfClocks reports the first nights on which an hour is left out or occurs twice.
func (s Schedule) surpriseOfClocks(now time.Time) []string {
	var gap, fold Wall
	begin, end := s.Zone.Wall(now), s.Zone.Wall(now.Add(Horizon))
	for w := range s.Times.walls(begin) {
		if w > end || gap != 0 && fold != 0 {
			break
		}
		switch r := s.Zone.resolve(w); {
		case r.times == 0 && gap == 0:
			gap = w
		case r.times > 1 && fold == 0:
			fold = w
		}
	}
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	hourly := s.Times.words == nil && s.Times.hour&starBit != 0
	switch {
	case gap == 0:
	case hourly || s.Policy.Gap == GapSkip:
		say("it does not come at %s: the clocks are set past that hour", gap)
	default:
		at, _ := s.Zone.Instant(gap, s.Policy)
		say("at %s the clocks are set past its time: it comes at %s", gap, s.Zone.Wall(at))
	}
	which := "first"
	if s.Policy.Fold == FoldSecond {
		which = "second"
	}
	switch {
	case fold == 0:
	case hourly:
		say("it comes in both hours that read %s: where the hour is * each hour that passes counts, "+
			"whatever gap and fold say", fold)
	default:
		say("%s comes twice that night: it comes at the %s of the two", fold, which)
	}
	return out
}

// surpriseInExcept reports days in Except that leave nothing out.
func (s Schedule) surpriseInExcept(now time.Time) []string {
	var out []string
	whole := s
	whole.Except = nil
	for _, d := range s.Except {
		begin := unix(s.Zone.resolve(d.First).first)
		if begin.Before(now) || begin.After(now.Add(Horizon)) {
			continue
		}
		if t, ok := first(whole.Ticks(begin)); !ok || s.Zone.Wall(t) >= d.after() {
			out = append(out, fmt.Sprintf("except %s leaves out nothing: it does not come then", d))
		}
	}
	return out
}
