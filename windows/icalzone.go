package windows

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// find returns the zone that a TZID names. It prefers the time zone database, because files carry
// old rules, and falls back to the zone that the file defines.
func (r *icalReader) find(id string) (Zone, error) {
	if z, err := LoadZone(id); err == nil {
		return z, nil
	}
	if z, ok := r.zones[id]; ok {
		return z, nil
	}
	// "/example.org/20260101/Europe/Zurich" has a prefix that makes the name unique.
	for rest := strings.TrimPrefix(id, "/"); ; {
		_, after, ok := strings.Cut(rest, "/")
		if !ok {
			return Zone{}, fmt.Errorf("TZID %q is no IANA zone, and the file has no VTIMEZONE of it",
				word(id))
		}
		if z, err := LoadZone(after); err == nil {
			return z, nil
		}
		rest = after
	}
}

// zone reads a VTIMEZONE.
func (r *icalReader) zone(c component) {
	id, ok := c.one("TZID")
	if !ok {
		r.mistake(c.line, "a VTIMEZONE without TZID")
		return
	}
	var all []transition
	for _, part := range c.components {
		if part.name != "STANDARD" && part.name != "DAYLIGHT" {
			continue
		}
		more, err := r.transitions(part)
		if err != nil {
			r.errs = append(r.errs, err)
			return
		}
		all = append(all, more...)
	}
	if len(all) == 0 {
		r.mistake(c.line, "VTIMEZONE %s has no STANDARD or DAYLIGHT with a time", word(id.value))
		return
	}
	r.zones[id.value] = Zone{name: id.value, rules: newTable(all)}
}

// A transition is a change of the offset.
type transition struct {
	at           int64 // in seconds of Unix
	before, then int64 // the offsets before and after it
}

// transitions returns the transitions of one observance. Its onset is read on the clocks before
// it.
func (r *icalReader) transitions(c component) ([]transition, error) {
	var offsets [2]int64
	for i, name := range []string{"TZOFFSETFROM", "TZOFFSETTO"} {
		p, ok := c.one(name)
		if !ok {
			return nil, mistakeAt(c.line, "%s without %s", c.name, name)
		}
		var err error
		if offsets[i], err = parseOffset(p.value); err != nil {
			return nil, mistakeAt(p.line, "%s: %v", name, err)
		}
	}
	start, ok := c.one("DTSTART")
	if !ok {
		return nil, mistakeAt(c.line, "%s without DTSTART", c.name)
	}
	m, err := parseMoment(start.value, Zone{})
	if err != nil {
		return nil, mistakeAt(start.line, "DTSTART: %v", err)
	}
	walls := []Wall{m.wall}
	before := Zone{name: "before", rules: fixed(offsets[0])}
	for _, p := range c.all("RRULE") {
		rule, err := parseRule(p, m.wall, before)
		if err != nil {
			return nil, err
		}
		// Rules of Outlook begin in 1601: of transitions that are long past, the last one is enough.
		const longOver = Wall(946_684_800) // 2000-01-01
		c := rule.from(rule.Start)
		for w, ok := c.next(); ok; w, ok = c.next() {
			if w < longOver {
				walls = walls[:0]
			}
			walls = append(walls, w)
		}
	}
	for _, p := range c.all("RDATE") {
		for value := range strings.SplitSeq(p.value, ",") {
			m, err := parseMoment(value, Zone{})
			if err != nil {
				return nil, mistakeAt(p.line, "RDATE: %v", err)
			}
			walls = append(walls, m.wall)
		}
	}
	var all []transition
	for _, w := range walls {
		all = append(all, transition{int64(w) - offsets[0], offsets[0], offsets[1]})
	}
	return all, nil
}

// A table holds the spans of a zone, in order and without holes.
type table []span

func newTable(all []transition) table {
	slices.SortFunc(all, func(a, b transition) int { return int(min(max(a.at-b.at, -1), 1)) })
	spans := table{{from: always, to: never, offset: all[0].before}}
	for _, t := range all {
		last := &spans[len(spans)-1]
		switch {
		case t.then == last.offset:
		case t.at <= last.from:
			last.offset = t.then
		default:
			last.to = t.at
			spans = append(spans, span{from: t.at, to: never, offset: t.then})
		}
	}
	return spans
}

func (t table) at(unix int64) span {
	i, found := slices.BinarySearchFunc(t, unix, func(s span, at int64) int {
		return int(min(max(s.from-at, -1), 1))
	})
	if !found {
		i--
	}
	return t[max(i, 0)]
}

// fixed holds an offset that never changes.
type fixed int64

func (f fixed) at(int64) span { return span{from: always, to: never, offset: int64(f)} }

// parseOffset reads +0100 and -053000.
func parseOffset(s string) (int64, error) {
	for _, form := range []string{"-0700", "-070000"} {
		if t, err := time.Parse(form, s); err == nil {
			_, offset := t.Zone()
			if math.Abs(float64(offset)) <= 18*3600 {
				return int64(offset), nil
			}
		}
	}
	return 0, fmt.Errorf("offset %q: want +0100", word(s))
}
