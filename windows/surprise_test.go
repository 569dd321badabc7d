package windows

import (
	"strings"
	"testing"
	"time"
)

// Applying a window reports each effect that people may not expect, and nothing else.
func TestWhatMaySurpriseIsSaid(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-11-22T12:00:00Z")
	for _, test := range []struct {
		start  string
		change func(*Window)
		want   string
	}{
		{start: "0 4 * * SUN"},
		{start: "0 4 */2 * *"},
		{start: "@weekly"},
		{start: "0 4 1-7 * SUN", want: "the day of the month (1-7) or the weekday (SUN) holds: either is enough"},
		{start: "0 4 */2 * sun", want: "both the day of the month (*/2) and the weekday (sun) hold"},
		{start: "0 4 1-7 * */2", want: "both the day of the month (1-7) and the weekday (*/2) hold"},
		{start: "0 * * * *", want: "of an hour that comes twice only one is open"},
		{start: "0 * * * *", change: func(w *Window) { w.Zone = Zone{} }},
		{start: "0 4 * * *", change: func(w *Window) { w.Until = wall(t, "2026-12-31") }},
		{start: "0 23 * * *", change: func(w *Window) { w.Until = wall(t, "2026-12-31 00:00") },
			want: "its opening of 2026-12-30 23:00 reaches past until 2026-12-31 00:00, and does not count"},
		{start: "0 4 * * *", change: func(w *Window) { w.Until = wall(t, "2026-12-31 06:00") }},
		{start: "0 4 * * *", change: func(w *Window) { w.Until = wall(t, "2026-10-31") }},
		{start: "30 2 * * *", want: "it is open for 1h30m0s only at 2027-03-28 02:30"},
		{start: "0 2 * * *", change: func(w *Window) { w.Length = time.Hour },
			want: "it is not open at 2027-03-28 02:00: the clocks are set past its start, and its length of 1h0m0s"},
		{start: "0 2 * * *", change: func(w *Window) { w.Gap = GapSkip }},
		{start: "0 2 * * *", change: func(w *Window) { w.Until = wall(t, "2027-01-01 12:00") }},
	} {
		w := Window{Name: "w", Zone: zone(t, "Europe/Zurich"), Length: 2 * time.Hour,
			Times: Calendar{Recurrences: []Recurrence{recurrence(t, test.start)}}}
		if test.change != nil {
			test.change(&w)
		}
		got := strings.Join(w.Surprises(now), "; ")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.start, got, test.want)
		}
	}
}

// A start in an hour that is left out: whether it ends by length or by the clock, the window is
// never open later than its reading says.
func TestAStartInAGapEndsWhenItWouldHave(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		start       string
		length, end time.Duration
		want        string
	}{
		{start: "0 2 28 3 *", length: 2 * time.Hour, want: "2027-03-28T01:00:00Z 1h0m0s"},
		{start: "0 2 28 3 *", end: 4 * time.Hour, want: "2027-03-28T01:00:00Z 1h0m0s"},
		{start: "30 2 28 3 *", length: time.Hour, want: "2027-03-28T01:00:00Z 30m0s"},
		{start: "30 2 28 3 *", end: 3*time.Hour + 30*time.Minute, want: "2027-03-28T01:00:00Z 30m0s"},
		{start: "0 2 28 3 *", length: time.Hour, want: "2028-03-28T00:00:00Z 1h0m0s"}, // not in 2027
		{start: "0 3 28 3 *", length: time.Hour, want: "2027-03-28T01:00:00Z 1h0m0s"},
		{start: "0 1 28 3 *", length: 2 * time.Hour, want: "2027-03-28T00:00:00Z 2h0m0s"},
	} {
		w := Window{Zone: zone(t, "Europe/Zurich"), Length: test.length, End: test.end,
			Times: Calendar{Recurrences: []Recurrence{recurrence(t, test.start)}}}
		o, _ := first(w.Occurrences(instant(t, "2027-01-01T00:00:00Z")))
		if got := o.Start.Format(time.RFC3339) + " " + o.End.Sub(o.Start).String(); got != test.want {
			t.Errorf("%s, length %s, end %s: got %s, want %s", test.start, test.length, test.end, got, test.want)
		}
	}
}

// If one of day of the month and weekday begins with *, both must match, as in cron(8) of Debian.
func TestAFieldThatBeginsWithAStarHasToHoldToo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0 2 */2 * sun": "2026-12-13 02:00", // the 29th of November is a Sunday of an odd day: see below
		"0 2 1-7 * sun": "2026-11-29 02:00", // either
		"0 2 1-7 * */6": "2026-12-05 02:00", // Saturday or Sunday of the first week
	} {
		from := wall(t, "2026-11-24")
		if text == "0 2 */2 * sun" {
			from = wall(t, "2026-11-30")
		}
		if got, _ := first(recurrence(t, text).walls(from)); got.String() != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
