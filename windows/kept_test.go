package windows

import (
	"testing"
)

// A timetable that an older muster took must go on when muster is updated: else no work
// is agreed any more, nor can it be.
func TestWhatWasTakenOnceIsReadAsItWas(t *testing.T) {
	t.Parallel()
	text := "windows:\n- {name: a, customer: acme, zone: UTC, ics: a.ics, approval: none}\nfreezes:\n"
	for _, more := range []string{
		"",
		"EXRULE:FREQ=WEEKLY;INTERVAL=2\n",
		"RECURRENCE-ID;RANGE=THISANDFUTURE:20261108T010000Z\n",
		"RDATE;VALUE=PERIOD:20261224T020000Z/20261224T030000Z\n",
	} {
		table := Timetable{Files: []File{{"w.yaml", text}},
			Attached: []File{{"a.ics", calendarOf(sundays("") + sundays(more))}}}
		if _, err := Parse(table.Files, table.Attached); err == nil {
			t.Errorf("%q: was taken anew", more)
		}
		book, err := table.Book()
		if err != nil {
			t.Errorf("%q: what was kept is not read any more: %v", more, err)
			continue
		}
		o, ok := first(book.Occurrences("a", instant(t, "2026-10-31T00:00:00Z")))
		if got := o.Start.Format("2006-01-02T15:04"); !ok || got != "2026-11-01T01:00" {
			t.Errorf("%q: it is open first at %s", more, got)
		}
	}
}
