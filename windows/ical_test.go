package windows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// outlook is a calendar as Outlook and Exchange send it: its zone has a name of their own, and
// rules that begin in 1601.
const outlook = "BEGIN:VCALENDAR\r\nBEGIN:VTIMEZONE\r\nTZID:W. Europe Standard Time\r\n" +
	"BEGIN:STANDARD\r\nDTSTART:16010101T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\n" +
	"RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10\r\nEND:STANDARD\r\n" +
	"BEGIN:DAYLIGHT\r\nDTSTART:16010101T020000\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\n" +
	"RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n" +
	"BEGIN:VEVENT\r\nUID:1\r\nDTSTART;TZID=\"W. Europe Standard Time\":20260906T020000\r\n" +
	"DTEND;TZID=\"W. Europe Standard Time\":20260906T040000\r\nRRULE:FREQ=WEEKLY;BYDAY=SU\r\n" +
	"END:VEVENT\r\nEND:VCALENDAR\r\n"

// spans lists the occurrences of the events of a text, from a time on.
func spans(t *testing.T, text, from string, most int) []string {
	t.Helper()
	events, err := ReadICal([]byte(text), zone(t, "Europe/Zurich"))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	w := Window{Zone: zone(t, "Europe/Zurich"), Times: Calendar{Events: events}}
	var got []string
	for o := range w.Occurrences(instant(t, from)) {
		if got = append(got, o.Start.Format(time.RFC3339)+" "+o.End.Sub(o.Start).String()); len(got) == most {
			break
		}
	}
	return got
}

func calendarOf(lines string) string {
	return "BEGIN:VCALENDAR\n" + lines + "END:VCALENDAR\n"
}

func TestRulesThatBeganLongAgoHoldToday(t *testing.T) {
	t.Parallel()
	want := []string{"2026-10-25T00:00:00Z 2h0m0s", "2026-11-01T01:00:00Z 2h0m0s", "2026-11-08T01:00:00Z 2h0m0s"}
	if d := cmp.Diff(want, spans(t, outlook, "2026-10-20T00:00:00Z", 3)); d != "" {
		t.Errorf("summer time never ends in a zone whose rules begin in 1601 (-want +got):\n%s", d)
	}
	want = []string{"2027-03-21T01:00:00Z 2h0m0s", "2027-03-28T01:00:00Z 1h0m0s", "2027-04-04T00:00:00Z 2h0m0s"}
	if d := cmp.Diff(want, spans(t, outlook, "2027-03-16T00:00:00Z", 3)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	daily := calendarOf("BEGIN:VEVENT\nDTSTART:19700101T020000Z\nDTEND:19700101T030000Z\nRRULE:FREQ=DAILY\nEND:VEVENT\n")
	if got := spans(t, daily, "2026-11-22T00:00:00Z", 1); len(got) != 1 || got[0] != "2026-11-22T02:00:00Z 1h0m0s" {
		t.Errorf("daily since 1970: %v", got)
	}
}

// sundays returns an event of three Sundays, 02:00 to 04:00 in Zurich, with further lines.
func sundays(more string) string {
	return "BEGIN:VEVENT\nUID:1\nDTSTART;TZID=Europe/Zurich:20261101T020000\n" +
		"DTEND;TZID=Europe/Zurich:20261101T040000\nRRULE:FREQ=WEEKLY;BYDAY=SU;COUNT=3\n" + more + "END:VEVENT\n"
}

func TestExceptionsOfCalendarsHold(t *testing.T) {
	t.Parallel()
	moved := func(id string) string {
		return calendarOf(sundays("") + "BEGIN:VEVENT\nUID:1\nRECURRENCE-ID" + id + "\n" +
			"DTSTART;TZID=Europe/Zurich:20261109T020000\nDURATION:PT1H\nEND:VEVENT\n")
	}
	first, last := "2026-11-01T01:00:00Z 2h0m0s", "2026-11-15T01:00:00Z 2h0m0s"
	other := "2026-11-09T01:00:00Z 1h0m0s"
	for text, want := range map[string][]string{
		moved(";TZID=Europe/Zurich:20261108T020000"):                {first, other, last},
		moved(":20261108T010000Z"):                                  {first, other, last},
		moved(";VALUE=DATE:20261108"):                               {first, other, last},
		calendarOf(sundays("EXDATE:20261108T010000Z\n")):            {first, last},
		calendarOf(sundays("EXDATE;VALUE=DATE:20261108\n")):         {first, last},
		calendarOf(sundays("EXDATE:20261108T020000,20261101T02\n")): nil,
	} {
		if want == nil {
			if _, err := ReadICal([]byte(text), Zone{}); err == nil {
				t.Errorf("%s: was taken", text)
			}
			continue
		}
		if d := cmp.Diff(want, spans(t, text, "2026-10-01T00:00:00Z", 9)); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
}

// An event that begins in the second of two equal hours ends there, too.
func TestAnEventInTheSecondOfTwoEqualHoursIsOpen(t *testing.T) {
	t.Parallel()
	for end, length := range map[string]string{"0245": "30m0s", "0330": "1h15m0s"} {
		want := "2026-10-25T01:15:00Z " + length
		text := calendarOf("BEGIN:VEVENT\nDTSTART;TZID=Europe/Zurich:20261001T021500\n" +
			"DTEND;TZID=Europe/Zurich:20261001T" + end + "00\nRRULE:FREQ=DAILY\nEND:VEVENT\n")
		events, err := ReadICal([]byte(text), Zone{})
		if err != nil {
			t.Fatal(err)
		}
		w := Window{Zone: zone(t, "Europe/Zurich"), Policy: Policy{Fold: FoldSecond},
			Times: Calendar{Events: events}}
		o, _ := first(w.Occurrences(instant(t, "2026-10-24T12:00:00Z")))
		if got := o.Start.Format(time.RFC3339) + " " + o.End.Sub(o.Start).String(); got != want {
			t.Errorf("02:15 to %s: got %s, want %s", end, got, want)
		}
	}
}

// One repetition moves by a week, and the next one too: neither gets lost.
func TestARepetitionMayGoWhereAnotherWas(t *testing.T) {
	t.Parallel()
	moved := func(from, to string) string {
		return "BEGIN:VEVENT\nUID:1\nRECURRENCE-ID;TZID=Europe/Zurich:" + from + "T020000\n" +
			"DTSTART;TZID=Europe/Zurich:" + to + "T020000\nDURATION:PT1H\nEND:VEVENT\n"
	}
	want := []string{"2026-11-08T01:00:00Z 1h0m0s", "2026-11-15T01:00:00Z 2h0m0s", "2026-11-22T01:00:00Z 1h0m0s"}
	one, two := moved("20261101", "20261108"), moved("20261108", "20261122")
	for _, text := range []string{sundays("") + one + two, sundays("") + two + one, one + two + sundays("")} {
		if d := cmp.Diff(want, spans(t, calendarOf(text), "2026-10-01T00:00:00Z", 9)); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
}

// A part that is not read would open a window to which nobody agreed.
func TestWhatCalendarsSayIsReadOrRefused(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"EXRULE:FREQ=WEEKLY;INTERVAL=2\n":                           "line 7: EXRULE is not read: want EXDATE",
		"RDATE;VALUE=PERIOD:20261224T020000Z/20261224T030000Z\n":    "line 7: RDATE with a period is not read",
		"RECURRENCE-ID;RANGE=THISANDFUTURE:20261108T010000Z\n":      "line 7: RECURRENCE-ID with RANGE is not read",
		"RDATE;TZID=Europe/Zurich:20261224T020000,nonsense-in-it\n": "line 7: RDATE: \"nonsense-in-it\"",
	} {
		_, err := ReadICal([]byte(calendarOf(sundays(more))), Zone{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", more, err, want)
		}
	}
}

// When the clocks change, an event with two readings ends for work at the first instant that its
// end may mean, and for a freeze at the last.
func TestEventsEndByTheClockThatTheirCustomerReads(t *testing.T) {
	t.Parallel()
	event := func(start, end string) string {
		return calendarOf("BEGIN:VEVENT\nDTSTART;TZID=Europe/Zurich:20260101T" + start + "\n" + end +
			"\nRRULE:FREQ=DAILY\nEND:VEVENT\n")
	}
	until := func(reading string) string { return "DTEND;TZID=Europe/Zurich:20260101T" + reading }
	tests := []struct {
		text, night, window, freeze string // lengths; of the first that goes on at noon before
	}{
		{event("010000", until("050000")), "2026-01-08", "4h0m0s", "4h0m0s"},
		{event("010000", until("050000")), "2027-03-28", "3h0m0s", "4h0m0s"},
		{event("010000", until("050000")), "2026-10-25", "4h0m0s", "5h0m0s"},
		{event("023000", until("040000")), "2027-03-28", "30m0s", "2h0m0s"}, // begins at 03:30
		{event("010000", "DURATION:PT4H"), "2027-03-28", "4h0m0s", "4h0m0s"},
		{event("000000", "DURATION:P1D"), "2027-03-29", "23h0m0s", "24h0m0s"},
		{event("000000", "DURATION:P1D"), "2026-10-26", "24h0m0s", "25h0m0s"},
		{event("000000", "DURATION:P1W"), "2026-10-26", "168h0m0s", "169h0m0s"},
		{event("000000", "DURATION:PT24H"), "2027-03-29", "24h0m0s", "24h0m0s"},
		{event("023000", "DURATION:PT1H30M"), "2027-03-28", "30m0s", "2h0m0s"},
	}
	for _, test := range tests {
		events, err := ReadICal([]byte(test.text), Zone{})
		if err != nil {
			t.Fatal(err)
		}
		noon := instant(t, test.night+"T00:00:00Z").Add(-12 * time.Hour)
		w := Window{Zone: zone(t, "Europe/Zurich"), Times: Calendar{Events: events}}
		o, _ := first(w.Occurrences(noon))
		p, _ := first(Freeze{Events: events}.periods(noon))
		got := fmt.Sprint(o.End.Sub(o.Start), " ", p.end.Sub(p.start))
		if got != test.window+" "+test.freeze {
			t.Errorf("%s on %s: window and freeze last %s, want %s %s", test.text, test.night, got, test.window,
				test.freeze)
		}
	}
}
