package windows

import (
	"fmt"
	"strings"
	"time"
)

// icalMoment is the form of an instant in iCalendar.
const icalMoment = "20060102T150405Z"

// WriteICal writes occurrences as an iCalendar file (RFC 5545), with one event for each, in UTC,
// so that any calendar shows the open times exactly, however it handles zones and rules.
// Occurrences without an approval are TENTATIVE. [ReadICal] reads the file back.
func WriteICal(occurrences []Approved, now time.Time) []byte {
	var b strings.Builder
	line := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		for len(text) > icalLineMax {
			b.WriteString(text[:icalLineMax] + "\r\n ")
			text = text[icalLineMax:]
		}
		b.WriteString(text + "\r\n")
	}
	line("BEGIN:VCALENDAR")
	line("VERSION:2.0")
	line("PRODID:-//muster//windows//EN")
	for _, o := range occurrences {
		start := o.Start.UTC().Format(icalMoment)
		line("BEGIN:VEVENT")
		line("UID:%s-%s@muster", o.Window, start)
		line("DTSTAMP:%s", now.UTC().Format(icalMoment))
		line("DTSTART:%s", start)
		line("DTEND:%s", o.End.UTC().Format(icalMoment))
		line("SUMMARY:%s", o.Window)
		status := "CONFIRMED"
		if !o.OK {
			status = "TENTATIVE"
		}
		line("STATUS:%s", status)
		line("END:VEVENT")
	}
	line("END:VCALENDAR")
	return []byte(b.String())
}

// icalLineMax bounds a line, in bytes. Names are ASCII, so a cut never splits a character.
const icalLineMax = 74
