package windows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// oneEvent returns an event on one night, with further lines.
func oneEvent(uid, start, length, more string) string {
	return "BEGIN:VEVENT\nUID:" + uid + "\nDTSTART;TZID=Europe/Zurich:" + start + "\nDURATION:" + length + "\n" +
		more + "END:VEVENT\n"
}

// A window is open when RFC 5545 says so, and closed when the time is doubtful; a freeze is on
// when the time is doubtful.
func TestCalendarsOpenNoMoreThanTheyAreSureOf(t *testing.T) {
	t.Parallel()
	const night, late = "20261110T020000", "20261110T040000"
	first, second := "2026-11-10T01:00:00Z 1h0m0s", "2026-11-10T03:00:00Z 1h0m0s"
	for _, test := range []struct {
		name, text   string
		open, frozen []string
		doubt        string
	}{
		{name: "an RDATE in UTC in the second of two equal hours",
			text:   calendarOf(oneEvent("1", "20261001T023000", "PT1H", "RDATE:20261025T013000Z\n")),
			open:   []string{"2026-10-01T00:30:00Z 1h0m0s", "2026-10-25T01:30:00Z 1h0m0s"},
			frozen: []string{"2026-10-01T00:30:00Z 1h0m0s", "2026-10-25T01:30:00Z 1h0m0s"}},
		{name: "a later version of an event",
			text: calendarOf(oneEvent("1", night, "PT1H", "SEQUENCE:0\n") + oneEvent("1", late, "PT1H", "SEQUENCE:1\n")),
			open: []string{second}, frozen: []string{second}},
		{name: "a later version, that stands first",
			text: calendarOf(oneEvent("1", late, "PT1H", "SEQUENCE:1\n") + oneEvent("1", night, "PT1H", "")),
			open: []string{second}, frozen: []string{second}},
		{name: "a version that was written later",
			text: calendarOf(oneEvent("1", late, "PT1H", "DTSTAMP:20261002T000000Z\n") +
				oneEvent("1", night, "PT1H", "DTSTAMP:20261001T000000Z\n")),
			open: []string{second}, frozen: []string{second}},
		{name: "cancelled in a later version",
			text: calendarOf(oneEvent("1", night, "PT1H", "") + oneEvent("1", night, "PT1H", "SEQUENCE:2\nSTATUS:CANCELLED\n") +
				oneEvent("2", late, "PT1H", "")),
			open: []string{second}, frozen: []string{second}},
		{name: "one event, told twice", text: calendarOf(oneEvent("1", night, "PT1H", "") + oneEvent("1", night, "PT1H", "")),
			open: []string{first}, frozen: []string{first}},
		{name: "a day on which an event with a time is to be",
			text: calendarOf(oneEvent("1", night, "PT1H", "RDATE;VALUE=DATE:20261112\n")),
			open: []string{first}, frozen: []string{first, "2026-11-11T23:00:00Z 25h0m0s"},
			doubt: "line 6: RDATE 20261112 is a date, and its event has times: it is not opened then"},
		{name: "nobody has agreed yet",
			text: calendarOf(oneEvent("1", night, "PT1H", "STATUS:TENTATIVE\n") + oneEvent("2", late, "PT1H", "")),
			open: []string{second}, frozen: []string{first, second}, doubt: "line 2: STATUS:TENTATIVE"},
		{name: "a start in an hour that is left out", // 02:30 on the clocks as they were before
			text: calendarOf(oneEvent("1", "20270328T023000", "PT1H", "")),
			open: nil, frozen: []string{"2027-03-28T01:00:00Z 1h30m0s"}},
		{name: "a start in an hour that is left out, and another behind it",
			text:   calendarOf(oneEvent("1", "20270328T023000", "PT2H", "RDATE;TZID=Europe/Zurich:20270328T031500\n")),
			open:   []string{"2027-03-28T01:15:00Z 2h0m0s", "2027-03-28T01:30:00Z 1h0m0s"},
			frozen: []string{"2027-03-28T01:00:00Z 2h30m0s", "2027-03-28T01:15:00Z 2h0m0s"}},
		{name: "a cancelled repetition that does not say when it would have been",
			text: calendarOf(oneEvent("1", night, "PT1H", "RRULE:FREQ=DAILY;COUNT=2\n") +
				"BEGIN:VEVENT\nUID:1\nRECURRENCE-ID;TZID=Europe/Zurich:20261111T020000\nSTATUS:CANCELLED\nEND:VEVENT\n"),
			open: []string{first}, frozen: []string{first}},
		{name: "what is written small",
			text: "begin:vcalendar\nbegin:vevent\nuid:1\ndtstart:20261110t010000z\nduration:pt1h\n" +
				"rrule:freq=daily;count=1\nend:vevent\nend:vcalendar\n",
			open: []string{first}, frozen: []string{first}},
		{name: "an exception with a time, of an event of days",
			text: calendarOf("BEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:20261110\nRRULE:FREQ=DAILY;COUNT=2\n" +
				"EXDATE;TZID=Europe/Zurich:20261111T080000\nEND:VEVENT\n"),
			open: []string{"2026-11-09T23:00:00Z 24h0m0s"}, frozen: []string{"2026-11-09T23:00:00Z 24h0m0s"}},
	} {
		work := &icalReader{floating: zone(t, "Europe/Zurich")}
		events, err := readICal([]byte(test.text), work)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var open, frozen []string
		w := Window{Zone: zone(t, "Europe/Zurich"), Times: Calendar{Events: events}}
		for o := range w.Occurrences(instant(t, "2026-09-01T00:00:00Z")) {
			open = append(open, o.Start.Format(time.RFC3339)+" "+o.End.Sub(o.Start).String())
		}
		events, err = readICal([]byte(test.text), &icalReader{floating: zone(t, "Europe/Zurich"), freeze: true})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		for p := range (Freeze{Events: events}).periods(instant(t, "2026-09-01T00:00:00Z")) {
			frozen = append(frozen, p.start.Format(time.RFC3339)+" "+p.end.Sub(p.start).String())
		}
		if d := cmp.Diff(test.open, open); d != "" {
			t.Errorf("%s: open (-want +got):\n%s", test.name, d)
		}
		if d := cmp.Diff(test.frozen, frozen); d != "" {
			t.Errorf("%s: frozen (-want +got):\n%s", test.name, d)
		}
		if got := fmt.Sprint(work.doubts); (test.doubt == "") != (got == "[]") || !strings.Contains(got, test.doubt) {
			t.Errorf("%s: doubts %s, want %q", test.name, got, test.doubt)
		}
	}
}

// A calendar that is not in force, or contradicts itself, is refused with its line.
func TestCalendarsThatSayNoOrTwoThingsAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		calendarOf("METHOD:CANCEL\n" + sundays("")):  "line 2: METHOD:CANCEL: the file is no calendar that is in force",
		calendarOf("METHOD:COUNTER\n" + sundays("")): "line 2: METHOD:COUNTER",
		calendarOf(oneEvent("1", "20261110T020000", "PT1H", "") + oneEvent("1", "20261110T040000", "PT1H", "")): "line 7: " +
			"an event with the UID, SEQUENCE and DTSTAMP of that in line 2",
		calendarOf(sundays("SEQUENCE:x\n")): `SEQUENCE "x": want a number`,
	} {
		_, err := ReadICal([]byte(text), Zone{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
