package times

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
)

// A day on which the clocks change is drawn with its own length, and what opens is at its place.
func TestDaysOfAClockChangeAreDrawnWithTheirHours(t *testing.T) {
	for _, c := range []struct {
		from, start, day string
		hours, x         float64
		when             string
	}{
		{"2026-03-29", "2026-03-29T01:00:00Z", "Sun 29 Mar", 23, 80, "03:00 CEST – 05:00 CEST"},
		{"2026-10-25", "2026-10-25T01:00:00Z", "Sun 25 Oct", 25, 120, "02:00 CET – 04:00 CET"},
		{"2026-03-22", "2026-03-22T01:00:00Z", "Sun 22 Mar", 24, 80, "02:00 – 04:00"},
	} {
		for _, tz := range []string{"Europe/Berlin", "place"} {
			p, err := placeOf(url.Values{"from": {c.from}, "tz": {tz}})
			if err != nil {
				t.Fatal(err)
			}
			start, _ := time.Parse(time.RFC3339, c.start)
			o := api.CalendarOpening{For: "customer acme", Customer: "acme", Asks: true, Occurrence: api.Occurrence{
				Window: "night", Zone: "Europe/Berlin", Start: jobs.Time{Time: start},
				End: jobs.Time{Time: start.Add(2 * time.Hour)}}}
			list := blocksOf(api.Calendar{Openings: []api.CalendarOpening{o}}, p)
			if len(list) != 1 || len(list[0].days) != 7 || list[0].zone != "Europe/Berlin" {
				t.Fatalf("%s: %+v", c.from, list)
			}
			d := list[0].days[6]
			if d.title != c.day || d.hours != c.hours || (d.note == "") != (c.hours == 24) || len(d.bars) != 1 ||
				d.bars[0].x != c.x || d.bars[0].width != 80 || d.items[0].when != c.when {
				t.Errorf("%s: %+v", c.from, d)
			}
			if n := strings.Count(d.lines, "M"); n != int(c.hours)+1 {
				t.Errorf("%s: %d lines of hours", c.from, n)
			}
		}
	}
	p, _ := placeOf(url.Values{"from": {"2026-02-11"}, "view": {"month"}})
	if p.days != 28 || p.title() != "February 2026" {
		t.Errorf("%d days of %s", p.days, p.title())
	}
}
