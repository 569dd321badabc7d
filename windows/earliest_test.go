package windows

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// admitByWhole does the same as [Book.Admit] for work that needs a window, but computes all
// openings of the horizon with their true ends.
func admitByWhole(b *Book, p Place, now time.Time, w Work) (ok bool, next time.Time, end time.Time) {
	for o := range b.openings(p, now, w) {
		switch {
		case o.Start.After(now) && o.fits(o.Start, w):
			return false, o.Start, time.Time{}
		case !o.Start.After(now) && o.fits(now, w):
			return true, time.Time{}, o.End
		}
	}
	return false, time.Time{}, time.Time{}
}

// drawBook draws a book of windows that touch, overlap and never close, with freezes.
func drawBook(t *rapid.T) *Book {
	starts := []string{"0 * * * *", "30 * * * *", "0 0 * * *", "0 2 * * *", "30 2 * * SUN", "0 */6 * * *", "15 3 1 * *"}
	lengths := []string{"length: 20m, cutoff: 19m", "length: 1h", "length: 6h, cutoff: 5h", "length: 6h", "length: 24h",
		"length: 25h, cutoff: 20h", "length: 90m, cutoff: 5m", "length: 25h", `end: "04:00"`, `end: "00:00"`}
	var text strings.Builder
	text.WriteString("windows:\n")
	for i := range rapid.IntRange(1, 3).Draw(t, "windows") {
		fmt.Fprintf(&text, "- {name: w%d, customer: acme, zone: %s, start: %q, %s, fold: %s, approval: none}\n", i,
			rapid.SampledFrom([]string{"Europe/Zurich", "UTC", "Pacific/Apia"}).Draw(t, "zone"),
			rapid.SampledFrom(starts).Draw(t, "start"), rapid.SampledFrom(lengths).Draw(t, "length"),
			rapid.SampledFrom([]string{"first", "second"}).Draw(t, "fold"))
	}
	if n := rapid.IntRange(0, 3).Draw(t, "freezes"); n > 0 {
		text.WriteString("freezes:\n")
		for i := range n {
			day, hour := rapid.IntRange(1, 28).Draw(t, "day"), rapid.IntRange(0, 23).Draw(t, "hour")
			fmt.Fprintf(&text, "- {name: f%d, zone: UTC, from: 2026-10-%02d %02d:00", i, day, hour)
			if rapid.IntRange(0, 4).Draw(t, "endless") > 0 {
				fmt.Fprintf(&text, ", until: 2026-10-%02d %02d:30", day+rapid.IntRange(0, 2).Draw(t, "days"), hour)
			}
			text.WriteString("}\n")
		}
	}
	book, err := Timetable{Files: []File{{"w.yaml", text.String()}}}.Book()
	if err != nil {
		t.Fatalf("%v in\n%s", err, &text)
	}
	return book
}

// Admit follows an opening only until the work fits into it. That must not change any answer.
func TestAdmissionIsThatOfWholeOpenings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		book := drawBook(t)
		now := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(
			rapid.IntRange(0, 31*24*4).Draw(t, "quarters")) * 15 * time.Minute)
		w := Work{Window: true, Estimate: time.Duration(rapid.SampledFrom([]int{
			0, 1, 20, 59, 60, 61, 300, 1440, 3000}).Draw(t, "minutes")) * time.Minute}
		if rapid.IntRange(0, 5).Draw(t, "override") == 0 {
			w.Override = "x"
		}
		v := book.Admit(acme, now, w)
		ok, next, end := admitByWhole(book, acme, now, w)
		if v.OK != ok || !v.Next.Equal(next) || v.OK != (v.Why == "") {
			t.Fatalf("%s: ok %t, next %s, why %q; by whole openings %t, %s", now, v.OK, v.Next, v.Why, ok, next)
		}
		if ok && (v.Until.After(end) || v.Until.Before(now.Add(w.Estimate))) {
			t.Fatalf("%s: open until %s, and truly until %s", now, v.Until, end)
		}
		if o, open := book.OpeningAt(acme, now, w); ok && (!open || !o.End.Equal(end)) {
			t.Fatalf("%s: the opening is %+v, want one that ends at %s", now, o, end)
		}
		w.Override, w.Estimate = "x", 0
		o, open := book.OpeningAt(acme, now, w)
		left := book.OpenFor(acme, now, "")
		if truly := o.End.Sub(now); open != (left > 0) || open && left != truly && (left < openForLeast || left > truly) {
			t.Fatalf("%s: open for %s, truly %+v", now, left, o)
		}
	})
}

// hourly yields a window that never closes: an occurrence from each hour to the next. It counts
// those that were looked at.
func hourly(looked *int, from time.Time) iter.Seq[Approved] {
	return func(yield func(Approved) bool) {
		for at := from.Add(-time.Hour); ; at = at.Add(time.Hour) {
			*looked++
			if !yield(Approved{Occurrence: Occurrence{Window: "w", Start: at, End: at.Add(time.Hour),
				Cutoff: at.Add(50 * time.Minute)}, OK: true}) {
				return
			}
		}
	}
}

func TestAWindowThatNeverClosesIsNotFollowed(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-11-22T12:00:00Z")
	for _, test := range []struct {
		name    string
		freezes []Freeze
		takes   time.Duration
		looked  int
		want    Verdict
	}{
		{name: "open", takes: 30 * time.Minute, looked: 3, want: Verdict{OK: true, Until: now.Add(time.Hour)}},
		{name: "for long", takes: 5 * time.Hour, looked: 7, want: Verdict{OK: true, Until: now.Add(5 * time.Hour)}},
		{name: "up to a freeze", takes: 30 * time.Minute, looked: 3,
			freezes: []Freeze{{Name: "f", From: wall(t, "2026-11-22 12:30")}},
			want:    Verdict{OK: true, Until: now.Add(30 * time.Minute)}},
		{name: "behind a freeze", takes: 40 * time.Minute, looked: 5,
			freezes: []Freeze{{Name: "f", From: wall(t, "2026-11-22 12:30"), Until: wall(t, "2026-11-22 14:00")}},
			want: Verdict{Next: now.Add(2 * time.Hour),
				Why: "the window ends in 30m0s, and the work takes 40m0s"}},
		{name: "never again", takes: 40 * time.Minute, looked: 3,
			freezes: []Freeze{{Name: "f", From: wall(t, "2026-11-22 12:30")}},
			want:    Verdict{Why: "the window ends in 30m0s, and the work takes 40m0s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			book, looked, w := NewBook(Agreed{Freezes: test.freezes}), 0, Work{Window: true, Estimate: test.takes}
			got := earliest(grow(hourly(&looked, now), now.Add(Horizon)), now, w, book.clearings(acme, w))
			if diff := cmp.Diff(test.want, got); diff != "" || looked > test.looked {
				t.Errorf("%d occurrences were looked at, want at most %d; -want +got:\n%s", looked, test.looked, diff)
			}
		})
	}
}

// The cutoff of an opening is the cutoff of its end: an occurrence that joins may put a time
// behind the cutoff that was before it.
func TestWhatComesToAnOpeningMayCutItOff(t *testing.T) {
	t.Parallel()
	night, more := sunday(t), sunday(t)
	night.Cutoff = 0
	more.Name, more.Times.Recurrences = "more", []Recurrence{recurrence(t, "0 3 * * SUN")}
	more.End, more.Length, more.Cutoff = 0, 3*time.Hour, 165*time.Minute // nothing behind 03:15
	book := NewBook(Agreed{Windows: []Window{night, more}})
	for at, want := range map[string]bool{"2026-11-22T02:14:00Z": true, "2026-11-22T02:16:00Z": false} {
		if v := book.Admit(acme, instant(t, at), Work{Window: true}); v.OK != want {
			t.Errorf("%s: ok %t, %s", at, v.OK, v.Why)
		}
	}
}
