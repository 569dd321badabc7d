package windows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// Bounds of what is worked out. 20,000 repetitions are one a day for 54 years. A rule
// that never holds takes a tenth of a second to be found out. Rules of zones begin in 1601,
// as those of Outlook do, and events in 1970: of what is long over the last is kept.
const (
	longOver    = Wall(946_684_800) // 2000-01-01
	startsMax   = 20_000
	yearMax     = 2100
	eventsMax   = 1000
	mistakesMax = 20
)

// ReadICal reads the events of an iCalendar file (RFC 5545): DTSTART, DTEND or
// DURATION, RRULE, RDATE, EXDATE, moved and cancelled repetitions, VTIMEZONE. Times
// without a zone are of the zone that is given. The error tells all that is wrong,
// with lines.
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
		for _, part := range c.components {
			if part.name == "VEVENT" && len(r.errs) < mistakesMax {
				r.event(part)
			}
		}
	}
	r.replace()
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	if len(r.events) == 0 {
		return nil, errors.New("there is no event in it")
	}
	return r.events, nil
}

// icalReader puts together what is found.
type icalReader struct {
	floating Zone
	kept     bool            // it was taken once, see parseKept
	zones    map[string]Zone // of VTIMEZONE
	events   []Event
	moved    []moved
	errs     []error
	outdated []error // of what is kept, what is refused now
}

// moved is a repetition of an event that is somewhere else, or nowhere.
type moved struct {
	uid  string
	from moment
	to   *Event // nil: cancelled
}

func (r *icalReader) mistake(line int, format string, args ...any) {
	r.errs = append(r.errs, mistakeAt(line, format, args...))
}

// refuse is the mistake of what older musters took; nil, and it is noted, if it is kept.
func (r *icalReader) refuse(p property, why string) error {
	err := mistakeAt(p.line, "%s", why)
	if r.kept {
		r.outdated, err = append(r.outdated, err), nil
	}
	return err
}

func (r *icalReader) event(c component) {
	start, ok := c.one("DTSTART")
	if !ok {
		r.mistake(c.line, "an event without DTSTART")
		return
	}
	from, err := r.moment(start)
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	e := Event{Zone: from.zone, Days: from.days, Starts: []Wall{from.wall}}
	if p, ok := c.one("UID"); ok {
		e.UID = p.value
	}
	if p, ok := c.one("SUMMARY"); ok {
		e.Summary = strings.NewReplacer(`\n`, " ", `\,`, ",", `\;`, ";", `\\`, `\`).Replace(p.value)
	}
	if err = r.length(c, from, &e); err != nil {
		r.errs = append(r.errs, err)
		return
	}
	status, _ := c.one("STATUS")
	cancelled := strings.EqualFold(status.value, "CANCELLED")
	if p, ok := c.one("RECURRENCE-ID"); ok {
		r.move(p, e, cancelled)
		return
	}
	if err := r.repeat(c, &e); err != nil {
		r.errs = append(r.errs, err)
		return
	}
	if cancelled || len(e.Starts) == 0 {
		return
	}
	if len(r.events) == eventsMax {
		r.mistake(c.line, "more than %d events", eventsMax)
		return
	}
	r.events = append(r.events, e)
}

func (r *icalReader) move(p property, e Event, cancelled bool) {
	if p.params["RANGE"] != "" {
		err := r.refuse(p, "RECURRENCE-ID with RANGE is not read: want an event of its own "+
			"for what follows")
		if err != nil {
			r.errs = append(r.errs, err)
			return
		}
	}
	from, err := r.moment(p)
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	m := moved{uid: e.UID, from: from}
	if !cancelled {
		m.to = &e
	}
	r.moved = append(r.moved, m)
}

// replace takes repetitions that were moved out of their events. What was put where one is
// now stays: another may have been there.
func (r *icalReader) replace() {
	n := len(r.events)
	for _, m := range r.moved {
		for i := range n {
			if e := &r.events[i]; e.UID == m.uid {
				e.without(m.from)
			}
		}
		if m.to != nil {
			r.events = append(r.events, *m.to)
		}
	}
	r.events = slices.DeleteFunc(r.events, func(e Event) bool { return len(e.Starts) == 0 })
}

// without takes the repetition at m out: if only a day is said, those of that day.
func (e *Event) without(m moment) {
	at := m.wall
	if !m.days && m.zone.String() != e.Zone.String() {
		at = e.Zone.Wall(m.at())
	}
	e.Starts = slices.DeleteFunc(e.Starts, func(w Wall) bool {
		return w == at || m.days && w.midnight() == at
	})
}

// length is DTEND − DTSTART, or DURATION; without both a day, or nothing.
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
		// Days and weeks are of the calendar: a day is from a reading to the same one.
		if strings.ContainsAny(p.value, "DW") {
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

// repeat adds RRULE and RDATE, and takes EXDATE away. What would be understood by half is
// refused: an exception that is not read is a window that is open when nobody agreed.
func (r *icalReader) repeat(c component, e *Event) error {
	if p, ok := c.one("EXRULE"); ok {
		if err := r.refuse(p, "EXRULE is not read: want EXDATE"); err != nil {
			return err
		}
	}
	for _, p := range c.all("RRULE") {
		more, err := expand(p, e.Starts[0], e.Zone)
		if err != nil {
			return err
		}
		e.Starts = append(e.Starts, more...)
	}
	for _, p := range c.all("RDATE") {
		if strings.Contains(p.value, "/") {
			err := r.refuse(p, "RDATE with a period is not read: want an event of its own")
			if err != nil {
				return err
			}
		}
		moments, err := r.moments(p)
		if err != nil {
			return err
		}
		for _, m := range moments {
			e.Starts = append(e.Starts, e.Zone.Wall(m.at()))
		}
	}
	slices.Sort(e.Starts)
	e.Starts = slices.Compact(e.Starts)
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

// expand works a rule out, by readings: the library is given clocks that are never
// set, because where they are it repeats and leaves out as it likes.
func expand(p property, start Wall, z Zone) ([]Wall, error) {
	option, err := rrule.StrToROption(p.value)
	if err != nil {
		return nil, mistakeAt(p.line, "RRULE %q: %v", clip(p.value), err)
	}
	// Finer ones are no windows, and a rule that never holds is searched for ever.
	if option.Freq > rrule.DAILY {
		return nil, mistakeAt(p.line, "RRULE %q: want FREQ=DAILY, WEEKLY, MONTHLY or YEARLY",
			clip(p.value))
	}
	if len(option.Byhour)*max(1, len(option.Byminute))*max(1, len(option.Bysecond)) > 24 {
		return nil, mistakeAt(p.line, "RRULE %q: more than 24 times a day", clip(p.value))
	}
	if !option.Until.IsZero() && strings.HasSuffix(untilOf(p.value), "Z") {
		option.Until = time.Unix(int64(z.Wall(option.Until)), 0).UTC()
	}
	option.Dtstart = time.Unix(int64(start), 0).UTC()
	if end := time.Unix(nearEnd, 0).UTC(); option.Until.IsZero() || option.Until.After(end) {
		option.Until = end // without one the library stops after 292 years
	}
	rule, err := rrule.NewRRule(*option)
	if err != nil {
		return nil, mistakeAt(p.line, "RRULE %q: %v", clip(p.value), err)
	}
	var walls []Wall
	next := rule.Iterator()
	for t, ok := next(); ok && t.Year() < yearMax && len(walls) < startsMax; t, ok = next() {
		w := Wall(t.Unix())
		if w < longOver {
			walls = walls[:0]
		}
		walls = append(walls, w)
	}
	if len(walls) == 0 {
		return nil, mistakeAt(p.line, "RRULE %q never comes", clip(p.value))
	}
	return walls, nil
}

func untilOf(rule string) string {
	for part := range strings.SplitSeq(strings.ToUpper(rule), ";") {
		if until, ok := strings.CutPrefix(part, "UNTIL="); ok {
			return until
		}
	}
	return ""
}

// A moment is what a property of the type DATE or DATE-TIME says.
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

// moments are those of a list.
func (r *icalReader) moments(p property) ([]moment, error) {
	var all []moment
	for value := range strings.SplitSeq(p.value, ",") {
		p.value = value
		if r.kept {
			p.value, _, _ = strings.Cut(value, "/") // of a period its beginning
		}
		m, err := r.moment(p)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func parseMoment(s string, zone Zone) (moment, error) {
	if t, err := time.Parse("20060102T150405Z", s); err == nil {
		return moment{wall: Wall(t.Unix()), zone: Zone{}}, nil
	}
	if t, err := time.Parse("20060102T150405", s); err == nil {
		return moment{wall: Wall(t.Unix()), zone: zone}, nil
	}
	if t, err := time.Parse("20060102", s); err == nil {
		return moment{wall: Wall(t.Unix()), zone: zone, days: true}, nil
	}
	return moment{}, fmt.Errorf("%q is no time of iCalendar: want 20261224T220000", clip(s))
}

// parseDuration reads P1W, P1D, PT2H30M.
func parseDuration(s string) (time.Duration, error) {
	wrong := fmt.Errorf("duration %q: want PT2H30M, P1D or P1W", clip(s))
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
