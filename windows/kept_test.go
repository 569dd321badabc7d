package windows

import (
	"strings"
	"testing"
)

// A calendar that is read only in part could open a window to which nobody agreed. It is refused
// when it is applied, and a reader that finds it in force refuses it too.
func TestACalendarThatIsNotReadAsAWholeIsRefused(t *testing.T) {
	t.Parallel()
	text := "windows:\n- {name: a, customer: acme, zone: UTC, ics: a.ics, approval: none}\n"
	for _, more := range []string{
		"",
		"EXRULE:FREQ=WEEKLY;INTERVAL=2\n",
		"RECURRENCE-ID;RANGE=THISANDFUTURE:20261108T010000Z\n",
		"RDATE;VALUE=PERIOD:20261224T020000Z/20261224T030000Z\n",
	} {
		table := Timetable{Files: []File{{"w.yaml", text}},
			Attached: []File{{"a.ics", calendarOf(sundays("") + strings.Replace(sundays(more), "UID:1", "UID:2", 1))}}}
		_, applied := Parse(table.Files, table.Attached)
		_, kept := table.Book()
		for how, err := range map[string]error{"applied": applied, "in force": kept} {
			switch {
			case more == "" && err != nil:
				t.Errorf("%s: %v", how, err)
			case more != "" && (err == nil || !strings.HasPrefix(err.Error(), "a.ics: line ")):
				t.Errorf("%q, %s: %v, want its line", more, how, err)
			}
		}
	}
}

// Approvals of a window with a calendar are for the hashes of its events. A version of muster that
// computes other hashes would void them all, so that is a change of the format of the data.
func TestTheHashOfAnEventIsWhatItWas(t *testing.T) {
	t.Parallel()
	events, err := ReadICal([]byte(calendarOf(sundays(""))), Zone{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "6bd53ca1fd3c9a62bf7a9ef2034bf2c6bb213b2db41d5c11e6cef829c27e6274"
	if got := events[0].hash(); got != want {
		t.Errorf("got %s, and was %s: approvals are void without a change", got, want)
	}
	night := events[0]
	night.Clock += 3600
	if night.hash() == events[0].hash() {
		t.Error("an end an hour later on the clock is no change")
	}
}
