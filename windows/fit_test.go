package windows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// nightly returns a book for customer acme that opens at 02:00 UTC for so long.
func nightly(t testing.TB, length string) *Book {
	t.Helper()
	table := Timetable{Files: []File{{Name: "w.yaml", Content: "windows:\n- {name: nightly, customer: acme, zone: UTC, " +
		"start: \"0 2 * * *\", length: " + length + ", approval: none}\n"}}}
	book, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	return book
}

func seats(n int, takes time.Duration, change ...func(i int, s *Seat)) []Seat {
	list := make([]Seat, n)
	for i := range list {
		list[i] = Seat{Place: Place{Host: fmt.Sprintf("fw%03d", i), Customer: "acme"}, Zone: "z", Takes: takes,
			From: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
		for _, c := range change {
			c(i, &list[i])
		}
	}
	return list
}

// perDay counts how many hosts have their turn on each night.
func perDay(list []Fitting) map[string]int {
	counts := map[string]int{}
	for _, f := range list {
		if f.Start.IsZero() {
			counts["never"]++
			continue
		}
		counts[f.In.Start.Format("02 15:04")]++
	}
	return counts
}

func TestHowManyFitIntoAWindow(t *testing.T) {
	t.Parallel()
	work := Work{Runbook: "firmware", Window: true}
	tests := []struct {
		name  string
		book  *Book
		seats []Seat
		work  Work
		slots int
		want  map[string]int
	}{
		// Show 2 of the issue: two minutes, 20 s, ten slots.
		{"200 hosts", nightly(t, "2m"), seats(200, 20*time.Second), work, 10,
			map[string]int{"23 02:00": 60, "24 02:00": 60, "25 02:00": 60, "26 02:00": 20}},
		{"with a reserve", nightly(t, "2m"), seats(200, 20*time.Second),
			Work{Window: true, Reserve: 30 * time.Second}, 10,
			map[string]int{"23 02:00": 40, "24 02:00": 40, "25 02:00": 40, "26 02:00": 40, "27 02:00": 40}},
		{"too long for any", nightly(t, "2m"), seats(3, 3*time.Minute), work, 10, map[string]int{"never": 3}},
		{"one slot, sixty nights", nightly(t, "2m"), seats(63, 90*time.Second), work, 1, nil},
		{"nobody knows how many slots", nightly(t, "2m"), seats(200, 20*time.Second), work, 0,
			map[string]int{"23 02:00": 200}},
		{"pairs", nightly(t, "2m"), seats(8, time.Minute, func(i int, s *Seat) { s.Group = fmt.Sprint(i / 2) }),
			work, 10, map[string]int{"23 02:00": 8}},
		{"pairs for which there is no time", nightly(t, "1m"),
			seats(8, time.Minute, func(i int, s *Seat) { s.Group = fmt.Sprint(i / 2) }), work, 10,
			map[string]int{"23 02:00": 4, "24 02:00": 4}},
		{"two customers", nightly(t, "2m"), seats(4, time.Second, func(i int, s *Seat) {
			if i > 1 {
				s.Customer = "beta"
			}
		}), work, 10, map[string]int{"23 02:00": 2, "never": 2}},
		{"no window is needed", nightly(t, "2m"), seats(4, time.Second), Work{}, 2, map[string]int{"22 12:00": 4}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := perDay(test.book.Fit(test.seats, test.work, map[string]int{"z": test.slots}))
			if test.want == nil { // one a night, as far as the search goes
				test.want, got = map[string]int{"never": 3}, map[string]int{"never": got["never"]}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Each host is admitted at its turn, and no slot does two jobs at once.
func TestWhatFitsIsAdmitted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.SampledFrom([]string{"1m", "5m", "2h", "25h"}).Draw(t, "length")
		table := Timetable{Files: []File{{Name: "w", Content: "windows:\n- {name: a, customer: acme, zone: Europe/Zurich, " +
			"start: \"30 2 * * *\", length: " + length + ", cutoff: 10s, approval: none}\n"}}}
		book, err := table.Book()
		if err != nil {
			t.Fatal(err)
		}
		slots := rapid.IntRange(1, 4).Draw(t, "slots")
		list := seats(rapid.IntRange(1, 40).Draw(t, "hosts"), 0, func(i int, s *Seat) {
			s.Takes = time.Duration(rapid.IntRange(1, 90).Draw(t, "takes")) * time.Second
			if rapid.Bool().Draw(t, "group") {
				s.Group = fmt.Sprint(i / 2)
			}
		})
		work := Work{Window: true, Reserve: time.Duration(rapid.IntRange(0, 20).Draw(t, "reserve")) * time.Second}
		got := book.Fit(list, work, map[string]int{"z": slots})
		for i, f := range got {
			if f.Start.IsZero() {
				continue
			}
			w := work
			w.Estimate = list[i].Takes
			if v := book.Admit(list[i].Place, f.Start, w); !v.OK || f.Start.Before(f.Due) {
				t.Fatalf("%d begins at %s, due at %s: %s", i, f.Start, f.Due, v.Why)
			}
			beside := 1
			for k, o := range got {
				if k == i || o.Start.IsZero() || o.Start.After(f.Start) || !f.Start.Before(o.Start.Add(list[k].Takes)) {
					continue
				}
				beside++
				if list[k].Group != "" && list[k].Group == list[i].Group {
					t.Fatalf("%d and %d of a group are worked on at once", i, k)
				}
			}
			if beside > slots {
				t.Fatalf("%d jobs at %s in %d slots", beside, f.Start, slots)
			}
		}
	})
}

// The answer to a submit must not take longer if nothing is open. A nightly window that nobody
// approved was once searched for 400 days, for each host anew.
func TestThatThereIsNoOpeningIsFoundOnce(t *testing.T) {
	t.Parallel()
	book := unapproved(t)
	list := seats(100_000, 5*time.Minute)
	from := time.Now()
	for i, f := range book.Fit(list, Work{Window: true}, nil) {
		if !f.Due.IsZero() || !strings.Contains(f.Why, "no approved window") {
			t.Fatalf("%d: %+v", i, f)
		}
	}
	if took := time.Since(from); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func unapproved(t testing.TB) *Book {
	t.Helper()
	book, err := Timetable{Files: []File{{Name: "w.yaml", Content: "windows:\n- {name: nightly, customer: acme, " +
		"zone: Europe/Zurich, start: \"0 2 * * *\", length: 2h}\n"}}}.Book()
	if err != nil {
		t.Fatal(err)
	}
	return book
}

func BenchmarkFit(b *testing.B) {
	list := seats(100_000, 5*time.Minute)
	for name, book := range map[string]*Book{"open": nightly(b, "2h"), "not approved": unapproved(b)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				book.Fit(list, Work{Window: true}, map[string]int{"z": 200})
			}
		})
	}
}
