package windows

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// This file decides which events of a file hold: of several versions of one the last, none
// that is cancelled, and for work none that nobody has said yes to. What is in doubt does not
// open a window, and the file is told of it; a freeze takes it for meant.

// An icalEvent is an event with what says which of several it is.
type icalEvent struct {
	Event
	revision
	extra bool // made of a part of an event
}

// A revision says which version of an event is the last.
type revision struct {
	line      int
	sequence  int
	stamp     string // in UTC, so that texts are in the order of times
	cancelled bool
	tentative bool
}

// moved is a repetition of an event that is somewhere else, or nowhere.
type moved struct {
	revision
	uid  string
	from moment
	to   *Event // nil: cancelled
}

// inForce tells whether the events of a calendar are meant to be: one that is sent to cancel
// them, or to answer or ask for another time, is not.
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
	// What is cancelled need not say when it would have been.
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

// times reads when an event begins first, and how long it is.
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

// together are the events that hold.
func (r *icalReader) together() []Event {
	var events []Event
	for _, f := range r.latest() {
		if r.opens(f.revision) {
			events = append(events, f.Event)
		}
	}
	// What was put where a repetition is now stays: another may have been there.
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

// opens tells whether an event holds that is the last of its versions.
func (r *icalReader) opens(v revision) bool {
	if v.tentative && !r.freeze {
		r.doubt(v.line, "STATUS:TENTATIVE: nobody has agreed to this event yet, and it is not opened")
		return false
	}
	return !v.cancelled
}

// latest is the last version of each event: that with the highest SEQUENCE (RFC 5546 §2.1.5),
// and of equal ones the one that was written last.
func (r *icalReader) latest() []icalEvent {
	same := func(a, b icalEvent) bool {
		return a.UID != "" && a.UID == b.UID && !a.extra && !b.extra
	}
	return last(r, r.found, same, func(e icalEvent) (revision, string) {
		return e.revision, e.hash()
	})
}

// latestMoved is the same of repetitions.
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

// last takes the last version of what is there several times. If nobody can tell which that
// is, the file is refused.
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

// torn is about two events that say of themselves that they are the same version of one.
func (r *icalReader) torn(v, w revision) {
	if v.line > w.line {
		return
	}
	r.mistake(w.line, "an event with the UID, SEQUENCE and DTSTAMP of that in "+
		"line %d, which says something else: which of them holds?", v.line)
}

// without takes the repetition at m out: if only a day is said, those of that day.
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

// same tells whether two zones are one.
func (z Zone) same(o Zone) bool { return z.String() == o.String() }
