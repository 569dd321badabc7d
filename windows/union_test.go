package windows

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// All openings that begin at the same instant count: the longest must not get lost behind the
// first.
func TestOpeningsThatBeginTogetherAreOne(t *testing.T) {
	t.Parallel()
	event := func(uid, length string) string {
		return "BEGIN:VEVENT\nUID:" + uid + "\nDTSTART;TZID=Europe/Zurich:20270327T020000\nDURATION:" + length +
			"\nEND:VEVENT\n"
	}
	short, long := event("a", "PT30M"), event("b", "PT2H")
	zurich := zone(t, "Europe/Zurich")
	for name, test := range map[string]struct {
		window Window
		ics    string
		want   string
	}{
		"two events, the long one last":  {ics: short + long, want: "2027-03-27T01:00:00Z 2h0m0s"},
		"two events, the long one first": {ics: long + short, want: "2027-03-27T01:00:00Z 2h0m0s"},
		"cron and an event": {ics: long, want: "2027-03-27T01:00:00Z 2h0m0s", window: Window{
			Times: Calendar{Recurrences: []Recurrence{recurrence(t, "0 2 27 3 *")}}, Length: time.Hour}},
		"two hours of a spring night": {want: "2027-03-28T01:00:00Z 1h30m0s", window: Window{
			Times: Calendar{Recurrences: []Recurrence{recurrence(t, "0 2,3 28 3 *")}}, Length: 90 * time.Minute}},
	} {
		w := test.window
		w.Name, w.Zone, w.For = "w", zurich, Scope{Customer, "acme"}
		if test.ics != "" {
			events, err := ReadICal([]byte(calendarOf(test.ics)), zurich)
			if err != nil {
				t.Fatal(err)
			}
			w.Times.Events = events
		}
		o, _ := first(w.Occurrences(instant(t, "2027-03-01T00:00:00Z")))
		if got := o.Start.Format(time.RFC3339) + " " + o.End.Sub(o.Start).String(); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		book := NewBook(Agreed{Windows: []Window{w}})
		if v := book.Admit(acme, o.Start, Work{Window: true, Estimate: o.End.Sub(o.Start)}); !v.OK {
			t.Errorf("%s: what just fits: %s", name, v.Why)
		}
	}
}

// A stretch lasts from one minute to the other.
type stretch struct{ from, to int }

// The openings equal the result of a search that checks at each minute whether any occurrence is
// on.
func TestOpeningsAreTheMinutesInWhichAnythingIsOpen(t *testing.T) {
	t.Parallel()
	base := instant(t, "2027-03-27T12:00:00Z") // a night on which the clocks are set comes
	const minutes = 3 * 24 * 60
	zones := []Zone{{}, zone(t, "Europe/Zurich"), zone(t, "America/New_York"), zone(t, "Australia/Lord_Howe")}
	rapid.Check(t, func(t *rapid.T) {
		open := make([]bool, minutes)
		var agreed Agreed
		for i := range rapid.IntRange(1, 4).Draw(t, "windows") {
			z := zones[rapid.IntRange(0, len(zones)-1).Draw(t, "zone")]
			w := Window{Name: fmt.Sprint("w", i), For: Scope{Customer, "acme"}, Zone: z,
				Length: time.Duration(rapid.IntRange(1, 12).Draw(t, "length")) * 15 * time.Minute}
			if hours := rapid.SampledFrom([]string{"", "2,3", "*/6", "1-4"}).Draw(t, "cron"); hours != "" {
				r, err := ParseRecurrence("0 " + hours + " * * *")
				if err != nil {
					t.Fatal(err)
				}
				w.Times.Recurrences = []Recurrence{r}
			}
			for range rapid.IntRange(0, 4).Draw(t, "events") {
				start := z.Wall(base) + Wall(rapid.IntRange(-10, 200).Draw(t, "start"))*900
				w.Times.Events = append(w.Times.Events, Event{Zone: z, Starts: []Wall{start},
					Length: time.Duration(rapid.IntRange(1, 16).Draw(t, "lasts")) * 15 * time.Minute})
			}
			agreed.Windows = append(agreed.Windows, w)
			// Each beginning is looked at for itself.
			for b := range w.Times.begins(z, base.Add(-48*time.Hour), w.Policy) {
				if b.at.After(base.Add(minutes * time.Minute)) {
					break
				}
				if o, ok := w.occurrence(b); ok {
					for m := range minutes {
						at := base.Add(time.Duration(m) * time.Minute)
						open[m] = open[m] || !at.Before(o.Start) && at.Before(o.End)
					}
				}
			}
		}
		var want, got []stretch
		for m := range minutes {
			switch {
			case !open[m]:
			case m > 0 && open[m-1]:
				want[len(want)-1].to = m + 1
			default:
				want = append(want, stretch{m, m + 1})
			}
		}
		for o := range NewBook(agreed).openings(acme, base, Work{Window: true}) {
			from, to := int(o.Start.Sub(base)/time.Minute), int(o.End.Sub(base)/time.Minute)
			if from >= minutes {
				break
			}
			got = append(got, stretch{max(from, 0), min(to, minutes)})
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(stretch{})); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}
