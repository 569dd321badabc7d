package windows

import (
	"strings"
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
			Attached: []File{{"a.ics", calendarOf(sundays("") + strings.Replace(sundays(more), "UID:1", "UID:2", 1))}}}
		if _, err := Parse(table.Files, table.Attached); err == nil {
			t.Errorf("%q: was taken anew", more)
		}
		book, err := table.Book()
		if err != nil {
			t.Errorf("%q: what was kept is not read any more: %v", more, err)
			continue
		}
		outdated := strings.Join(book.Agreed().Outdated["window a"], "; ")
		name, _, _ := strings.Cut(strings.TrimSpace(more), ";")
		name, _, _ = strings.Cut(name, ":")
		if (outdated == "") != (name == "") || !strings.Contains(outdated, name) ||
			name != "" && !strings.HasPrefix(outdated, "a.ics: line ") {
			t.Errorf("%q: what is outdated is %q", more, outdated)
		}
		o, ok := first(book.Occurrences("a", instant(t, "2026-10-31T00:00:00Z")))
		if got := o.Start.Format("2006-01-02T15:04"); !ok || got != "2026-11-01T01:00" {
			t.Errorf("%q: it is open first at %s", more, got)
		}
	}
}

// The hash of an event is what approvals of a window with a calendar are for.
func TestApprovalsOfCalendarsOutlastAnUpdate(t *testing.T) {
	t.Parallel()
	events, err := ReadICal([]byte(calendarOf(sundays(""))), Zone{})
	if err != nil {
		t.Fatal(err)
	}
	const older = "395f6059a78796904d1170e3635900efa908e8bb9bc9bc02f5cd5d0952322ae0"
	if got := events[0].olderHash(); got != older {
		t.Errorf("got %s, and was %s: approvals are void without a change", got, older)
	}
	night := events[0]
	night.Clock += 3600
	if night.olderHash() == older || night.hash() == events[0].hash() {
		t.Error("an end an hour later on the clock is no change")
	}
}
