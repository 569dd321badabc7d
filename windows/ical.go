package windows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds for one file.
const (
	eventsMax   = 1000
	mistakesMax = 20
)

// ReadICal reads the events of an iCalendar file (RFC 5545): DTSTART, DTEND or DURATION, RRULE,
// RDATE, EXDATE, moved and cancelled repetitions, VTIMEZONE. Times without a zone belong to the
// given zone. The error reports all mistakes, with lines.
func ReadICal(b []byte, zone Zone) ([]Event, error) {
	return readICal(b, &icalReader{floating: zone})
}

func readICal(b []byte, r *icalReader) ([]Event, error) {
	calendars, err := readCalendar(b)
	if err != nil {
		return nil, err
	}
	r.zones = map[string]Zone{}
	for _, c := range calendars {
		for _, part := range c.components {
			if part.name == "VTIMEZONE" {
				r.zone(part)
			}
		}
	}
	for _, c := range calendars {
		if !r.inForce(c) {
			continue
		}
		for _, part := range c.components {
			if part.name == "VEVENT" && len(r.errs) < mistakesMax {
				r.event(part)
			}
		}
	}
	events := r.together()
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	if len(events) == 0 && len(r.doubts) == 0 {
		return nil, errors.New("there is no event in it")
	}
	return events, nil
}

// icalReader collects the events of a file.
type icalReader struct {
	floating Zone
	// for a freeze: a doubtful time is frozen; else a doubtful time does not open a window
	freeze bool
	zones  map[string]Zone // zones of VTIMEZONE
	found  []icalEvent
	moved  []moved
	errs   []error
	doubts []error // times that open no window, because it is not certain that they were meant to
}

func (r *icalReader) mistake(line int, format string, args ...any) {
	r.errs = append(r.errs, mistakeAt(line, format, args...))
}

// doubt notes a time that opens no window.
func (r *icalReader) doubt(line int, format string, args ...any) {
	r.doubts = append(r.doubts, mistakeAt(line, format, args...))
}

// length reads DTEND − DTSTART, or DURATION. Without both an event lasts a day or no time.
func (r *icalReader) length(c component, from moment, e *Event) error {
	if p, ok := c.one("DTEND"); ok {
		to, err := r.moment(p)
		if err != nil {
			return err
		}
		e.Length = to.at().Sub(from.at())
		if from.days {
			e.Length = time.Duration(to.wall-from.wall) * time.Second
		} else {
			e.Clock = from.zone.Wall(to.at()) - from.wall
		}
		if e.Length <= 0 || from.days != to.days {
			return mistakeAt(p.line, "DTEND is not after DTSTART")
		}
		return nil
	}
	if p, ok := c.one("DURATION"); ok {
		var err error
		if e.Length, err = parseDuration(p.value); err != nil {
			return mistakeAt(p.line, "%v", err)
		}
		// Days and weeks belong to the calendar: a day ends at the reading of its start.
		if strings.ContainsAny(p.value, "DWdw") {
			e.Clock = Wall(e.Length / time.Second)
		}
		return nil
	}
	if !from.days {
		return mistakeAt(c.line, "an event without DTEND and DURATION: how long is it?")
	}
	e.Length = day * time.Second
	return nil
}

// repeat adds RRULE and RDATE, and removes EXDATE. It refuses whatever it understands only in
// part, because an exception that is not read would open a window to which nobody agreed.
func (r *icalReader) repeat(c component, e *Event) error {
	if p, ok := c.one("EXRULE"); ok {
		return mistakeAt(p.line, "EXRULE is not read: want EXDATE")
	}
	for _, p := range c.all("RRULE") {
		rule, err := parseRule(p, e.Starts[0], e.Zone)
		if err != nil {
			return err
		}
		if _, ok := rule.from(rule.Start).next(); !ok {
			return mistakeAt(p.line, "RRULE %q never comes", word(p.value))
		}
		e.Rules = append(e.Rules, rule)
	}
	for _, p := range c.all("RDATE") {
		if err := r.more(p, e); err != nil {
			return err
		}
	}
	slices.Sort(e.Starts)
	e.Starts = slices.Compact(e.Starts)
	slices.SortFunc(e.Instants, time.Time.Compare)
	for _, p := range c.all("EXDATE") {
		moments, err := r.moments(p)
		if err != nil {
			return err
		}
		for _, m := range moments {
			e.without(m)
		}
	}
	return nil
}

// more adds the times of an RDATE.
func (r *icalReader) more(p property, e *Event) error {
	if strings.Contains(p.value, "/") {
		return mistakeAt(p.line, "RDATE with a period is not read: want an event of its own")
	}
	moments, err := r.moments(p)
	if err != nil {
		return err
	}
	for _, m := range moments {
		switch {
		case m.days && !e.Days && r.freeze:
			r.wholeDay(m, e)
		case m.days != e.Days && !r.freeze:
			r.doubt(p.line, "RDATE %s is a %s, and its event has %s: it is not opened then", word(p.value),
				kindOf(m.days), kindOf(e.Days)+"s")
		case m.days || m.zone.same(e.Zone):
			e.Starts = append(e.Starts, m.wall)
		default:
			// Kept as an instant: when the clocks change, its reading may occur twice.
			e.Instants = append(e.Instants, m.at())
		}
	}
	return nil
}

func kindOf(days bool) string {
	if days {
		return "date"
	}
	return "time"
}

// wholeDay freezes a whole day, because nobody knows when on that day an event begins, and the
// length of the event behind it.
func (r *icalReader) wholeDay(m moment, e *Event) {
	r.found = append(r.found, icalEvent{Event: Event{UID: e.UID, Summary: e.Summary, Zone: e.Zone,
		Days: true, Starts: []Wall{m.wall}, Length: day*time.Second + e.Length}, extra: true})
}

// A moment is the value of a property of type DATE or DATE-TIME.
type moment struct {
	wall Wall
	zone Zone
	days bool // a date without a time
}

func (m moment) at() time.Time { return unix(m.zone.resolve(m.wall).first) }

func (r *icalReader) moment(p property) (moment, error) {
	zone := r.floating
	if id := p.params["TZID"]; id != "" {
		var err error
		if zone, err = r.find(id); err != nil {
			return moment{}, mistakeAt(p.line, "%s: %v", p.name, err)
		}
	}
	m, err := parseMoment(p.value, zone)
	if err != nil {
		return moment{}, mistakeAt(p.line, "%s: %v", p.name, err)
	}
	return m, nil
}

// moments reads the values of a list.
func (r *icalReader) moments(p property) ([]moment, error) {
	var all []moment
	for value := range strings.SplitSeq(p.value, ",") {
		p.value = value
		m, err := r.moment(p)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func parseMoment(s string, zone Zone) (moment, error) {
	text := strings.ToUpper(s)
	if t, err := time.Parse("20060102T150405Z", text); err == nil {
		return moment{wall: Wall(t.Unix()), zone: Zone{}}, nil
	}
	if t, err := time.Parse("20060102T150405", text); err == nil {
		return moment{wall: Wall(t.Unix()), zone: zone}, nil
	}
	if t, err := time.Parse("20060102", text); err == nil {
		return moment{wall: Wall(t.Unix()), zone: zone, days: true}, nil
	}
	return moment{}, fmt.Errorf("%q is no time of iCalendar: want 20261224T220000", word(s))
}

// parseDuration reads P1W, P1D, PT2H30M.
func parseDuration(s string) (time.Duration, error) {
	wrong := fmt.Errorf("duration %q: want PT2H30M, P1D or P1W", word(s))
	s = strings.ToUpper(s)
	rest, ok := strings.CutPrefix(strings.TrimPrefix(s, "+"), "P")
	if !ok || rest == "" || len(s) > 20 {
		return 0, wrong
	}
	units := map[byte]time.Duration{'W': 7 * day * time.Second, 'D': day * time.Second}
	var total time.Duration
	n, digits := 0, 0
	for i := range len(rest) {
		switch c := rest[i]; {
		case c == 'T' && digits == 0:
			units = map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second}
		case '0' <= c && c <= '9' && digits < 5:
			n, digits = n*10+int(c-'0'), digits+1
		case units[c] > 0 && digits > 0:
			total += time.Duration(n) * units[c]
			n, digits = 0, 0
		default:
			return 0, wrong
		}
	}
	if digits > 0 || total <= 0 || total > 366*day*time.Second {
		return 0, wrong
	}
	return total, nil
}
