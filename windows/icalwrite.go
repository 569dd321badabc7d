package windows

import (
	"fmt"
	"strings"
	"time"
)

// icalMoment is how iCalendar writes an instant.
const icalMoment = "20060102T150405Z"

// WriteICal writes occurrences as an iCalendar file (RFC 5545), an event for each, in UTC: so a
// calendar shows exactly what is open, whatever it makes of zones and rules. What nobody has
// approved is TENTATIVE. [ReadICal] reads it back.
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

// icalLineMax is how long a line may be, in bytes; names have no others than ASCII.
const icalLineMax = 74
