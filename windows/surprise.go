package windows

import (
	"fmt"
	"strings"
	"time"
)

// Surprises lists the effects of a window that may surprise its author within the [Horizon].
func (w Window) Surprises(now time.Time) []string {
	var out []string
	for _, r := range w.Times.Recurrences {
		out = append(out, r.surprises()...)
		if r.hour&starBit != 0 && w.changesClocks(now) {
			out = append(out, fmt.Sprintf("start %q: of an hour that comes twice only one is open, and of "+
				"one that is left out none", r))
		}
	}
	out = append(out, w.surpriseInExcept(now)...)
	out = append(out, w.surpriseAtEnd(now)...)
	return append(out, w.surpriseInGap(now)...)
}

// surprises reports surprising days of cron text or of words.
func (r Recurrence) surprises() []string {
	if r.words != nil {
		return r.words.surpriseInWords(r.text)
	}
	parts := strings.Fields(r.text)
	if strings.HasPrefix(r.text, "@") || len(parts) < len(fields)-1 {
		return nil
	}
	dayOf, weekday := parts[len(parts)-3], parts[len(parts)-1]
	plain := func(s string) bool { return s == "*" || s == "?" }
	switch {
	case plain(dayOf) || plain(weekday):
		return nil
	case (r.dayOf|r.weekday)&starBit != 0:
		return []string{fmt.Sprintf("%q is on days on which both the day of the month (%s) and the "+
			"weekday (%s) hold, because one of them begins with *, as in cron(8) of Debian", r, dayOf,
			weekday)}
	}
	return []string{fmt.Sprintf("%q is on each day on which the day of the month (%s) or the weekday "+
		"(%s) holds: either is enough, as in cron(8)", r, dayOf, weekday)}
}

// changesClocks reports whether the clocks of the window's zone change within the horizon.
func (w Window) changesClocks(now time.Time) bool {
	return w.Zone.at(now.Unix()).to < now.Add(Horizon).Unix()
}

// surpriseAtEnd reports occurrences that are left out where the validity of the window ends.
func (w Window) surpriseAtEnd(now time.Time) []string {
	if w.Until == 0 || w.Zone.Wall(now) >= w.Until {
		return nil
	}
	endless := w
	endless.Until = 0
	from := unix(w.Zone.resolve(w.Until).first).Add(-lengthMax)
	for o := range endless.Occurrences(later(from, now)) {
		start, end := w.Zone.Wall(o.Start), w.Zone.Wall(o.End)
		switch {
		case start >= w.Until+day:
			return nil
		case start < w.Until && end > w.Until:
			return []string{fmt.Sprintf("its opening of %s reaches past until %s, and does not count", start,
				w.Until)}
		}
	}
	return nil
}

// surpriseInExcept reports days in Except that leave out another day's occurrence, or nothing.
func (w Window) surpriseInExcept(now time.Time) []string {
	var out []string
	whole := w
	whole.Times.Except = nil
	for _, d := range w.Times.Except {
		begin := unix(w.Zone.resolve(d.First).first)
		if begin.Before(now) || begin.After(now.Add(Horizon)) {
			continue
		}
		any := false
		for o := range whole.Occurrences(begin) {
			start := w.Zone.Wall(o.Start)
			if start >= d.after() {
				break
			}
			if any = true; start < d.First {
				out = append(out, fmt.Sprintf("except %s: its opening of %s reaches into that day, and does "+
					"not count", d, start))
			}
		}
		if !any {
			out = append(out, fmt.Sprintf("except %s leaves out nothing: it is not open then", d))
		}
	}
	return out
}

// surpriseInGap reports the first night on which a start is in an hour that is left out, so that
// the window is shorter.
func (w Window) surpriseInGap(now time.Time) []string {
	if w.Gap == GapSkip || w.Length == 0 {
		return nil
	}
	last := w.Zone.Wall(now.Add(Horizon))
	for _, r := range w.Times.Recurrences {
		for wall := range r.walls(w.Zone.Wall(now)) {
			if wall > last {
				break
			}
			at := w.Zone.resolve(wall)
			if at.times > 0 {
				continue
			}
			o, open := w.occurrence(begin{at: unix(at.first), wall: wall})
			switch {
			case w.From > wall || w.Until != 0 && w.Until < wall+day:
			case !open:
				return []string{fmt.Sprintf("it is not open at %s: the clocks are set past its start, and "+
					"its length of %s is over by then", wall, w.Length)}
			case o.End.Sub(o.Start) < w.Length:
				return []string{fmt.Sprintf("it is open for %s only at %s: the clocks are set past its start, "+
					"and it ends when it would have", o.End.Sub(o.Start), wall)}
			}
		}
	}
	return nil
}
