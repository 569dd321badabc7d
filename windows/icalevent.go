package windows

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// This file decides which events of a file are in force: the last of several versions of an event,
// no cancelled one, and for work none that is only tentative. A doubtful event does not open a
// window, and the reader notes the doubt; a freeze counts a doubtful event as meant.

// An icalEvent is an event with its version.
type icalEvent struct {
	Event
	revision
	extra bool // made of a part of an event
}

// A revision orders the versions of an event.
type revision struct {
	line      int
	sequence  int
	stamp     string // in UTC, so that the order of texts is the order of times
	cancelled bool
	tentative bool
}

// moved is a repetition of an event that was moved or cancelled.
type moved struct {
	revision
	uid  string
	from moment
	to   *Event // the repetition in its new place; nil: cancelled
}

// inForce reports whether the events of a calendar are in force. A calendar that cancels them, or
// answers, or proposes another time, is not.
func (r *icalReader) inForce(c component) bool {
	p, ok := c.one("METHOD")
	if !ok || slices.ContainsFunc([]string{"PUBLISH", "REQUEST", "ADD"}, func(m string) bool {
		return strings.EqualFold(m, p.value)
	}) {
		return true
	}
	r.mistake(p.line, "METHOD:%s: the file is no calendar that is in force: "+
		"want one with METHOD:PUBLISH, or without METHOD", word(p.value))
	return false
}

func (r *icalReader) revision(c component) revision {
	v := revision{line: c.line}
	if p, ok := c.one("SEQUENCE"); ok {
		n, err := strconv.Atoi(strings.TrimSpace(p.value))
		if err != nil || n < 0 {
			r.mistake(p.line, "SEQUENCE %q: want a number", word(p.value))
		}
		v.sequence = n
	}
	for _, name := range []string{"LAST-MODIFIED", "DTSTAMP"} {
		if p, ok := c.one(name); ok && v.stamp == "" {
			v.stamp = strings.ToUpper(p.value)
		}
	}
	status, _ := c.one("STATUS")
	v.cancelled = strings.EqualFold(status.value, "CANCELLED")
	v.tentative = strings.EqualFold(status.value, "TENTATIVE")
	return v
}

func (r *icalReader) event(c component) {
	found := icalEvent{revision: r.revision(c)}
	e := &found.Event
	if p, ok := c.one("UID"); ok {
		e.UID = p.value
	}
	if p, ok := c.one("SUMMARY"); ok {
		e.Summary = strings.NewReplacer(`\n`, " ", `\,`, ",", `\;`, ";", `\\`, `\`).Replace(p.value)
	}
	recurrence, one := c.one("RECURRENCE-ID")
	var err error
	// A cancelled event need not have a time.
	if !found.cancelled {
		err = r.times(c, e)
	}
	switch {
	case err != nil:
	case one:
		err = r.move(recurrence, found)
	case !found.cancelled:
		err = r.repeat(c, e)
	}
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	if one {
		return
	}
	if len(r.found) == eventsMax {
		r.mistake(c.line, "more than %d events", eventsMax)
	}
	r.found = append(r.found, found)
}

// times reads the first beginning of an event, and its length.
func (r *icalReader) times(c component, e *Event) error {
	start, ok := c.one("DTSTART")
	if !ok {
		return mistakeAt(c.line, "an event without DTSTART")
	}
	from, err := r.moment(start)
	if err != nil {
		return err
	}
	e.Zone, e.Days, e.Starts = from.zone, from.days, []Wall{from.wall}
	return r.length(c, from, e)
}

func (r *icalReader) move(p property, found icalEvent) error {
	if p.params["RANGE"] != "" {
		return mistakeAt(p.line, "RECURRENCE-ID with RANGE is not read: want an event of its own "+
			"for what follows")
	}
	from, err := r.moment(p)
	if err != nil {
		return err
	}
	m := moved{revision: found.revision, uid: found.UID, from: from}
	if !m.cancelled {
		m.to = &found.Event
	}
	r.moved = append(r.moved, m)
	return nil
}

// together returns the events in force.
func (r *icalReader) together() []Event {
	var events []Event
	for _, f := range r.latest() {
		if r.opens(f.revision) {
			events = append(events, f.Event)
		}
	}
	// A moved repetition stays in its new place, even if another one moved from there.
	n := len(events)
	for _, m := range r.latestMoved() {
		for i := range n {
			if events[i].UID == m.uid {
				events[i].without(m.from)
			}
		}
		if m.to != nil && r.opens(m.revision) {
			events = append(events, *m.to)
		}
	}
	return slices.DeleteFunc(events, func(e Event) bool { return e.never() })
}

// opens reports whether the last version of an event is in force.
func (r *icalReader) opens(v revision) bool {
	if v.tentative && !r.freeze {
		r.doubt(v.line, "STATUS:TENTATIVE: nobody has agreed to this event yet, and it is not opened")
		return false
	}
	return !v.cancelled
}

// latest returns the last version of each event: the one with the highest SEQUENCE (RFC 5546
// §2.1.5), and among equals the one that was written last.
func (r *icalReader) latest() []icalEvent {
	same := func(a, b icalEvent) bool {
		return a.UID != "" && a.UID == b.UID && !a.extra && !b.extra
	}
	return last(r, r.found, same, func(e icalEvent) (revision, string) {
		return e.revision, e.hash()
	})
}

// latestMoved does the same for moved repetitions.
func (r *icalReader) latestMoved() []moved {
	same := func(a, b moved) bool {
		return a.uid == b.uid && a.from.days == b.from.days && a.from.at().Equal(b.from.at())
	}
	return last(r, r.moved, same, func(m moved) (revision, string) {
		if m.to == nil {
			return m.revision, ""
		}
		return m.revision, m.to.hash()
	})
}

// last returns the last version of each item. If that is not clear, the file is refused.
func last[T any](r *icalReader, all []T, same func(a, b T) bool,
	of func(T) (revision, string)) []T {
	var out []T
	gone := make([]bool, len(all))
	for i, x := range all {
		v, hash := of(x)
		for j, y := range all {
			if i == j || !same(x, y) {
				continue
			}
			w, other := of(y)
			switch order := cmp.Or(cmp.Compare(v.sequence, w.sequence), cmp.Compare(v.stamp, w.stamp)); {
			case order < 0, order == 0 && hash == other && v.cancelled == w.cancelled && j < i:
				gone[i] = true
			case order == 0 && (hash != other || v.cancelled != w.cancelled):
				r.torn(v, w)
			}
		}
	}
	for i, x := range all {
		if !gone[i] {
			out = append(out, x)
		}
	}
	return out
}

// torn reports two different events that both claim to be the same version of one.
func (r *icalReader) torn(v, w revision) {
	if v.line > w.line {
		return
	}
	r.mistake(w.line, "an event with the UID, SEQUENCE and DTSTAMP of that in "+
		"line %d, which says something else: which of them holds?", v.line)
}

// without removes the repetition at m; if m is a day, the repetitions of that day.
func (e *Event) without(m moment) {
	at := m.wall
	if !m.days && !m.zone.same(e.Zone) {
		at = e.Zone.Wall(m.at())
	}
	list := &e.Except
	if m.days || e.Days {
		list, at = &e.NotOn, at.midnight()
	}
	if i, found := slices.BinarySearch(*list, at); !found {
		*list = slices.Insert(*list, i, at)
	}
}

// same reports whether two zones are the same zone.
func (z Zone) same(o Zone) bool { return z.String() == o.String() }
