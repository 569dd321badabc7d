package windows

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sunday is the window of most tests: Sunday 02:00 to 04:00 in Zurich.
func sunday(t testing.TB) Window {
	t.Helper()
	return Window{
		Name:   "acme-sunday",
		For:    Scope{Customer, "acme"},
		Zone:   zone(t, "Europe/Zurich"),
		Times:  Calendar{Recurrences: []Recurrence{recurrence(t, "0 2 * * SUN")}},
		End:    4 * time.Hour,
		AtEnd:  Finish,
		Cutoff: 15 * time.Minute,
	}
}

func recurrence(t testing.TB, text string) Recurrence {
	t.Helper()
	r, err := ParseRecurrence(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// occurrences formats each occurrence as "start/end", in UTC.
func occurrences(w Window, from time.Time, n int) []string {
	var got []string
	for o := range w.Occurrences(from) {
		if len(got) == n {
			break
		}
		got = append(got, o.Start.Format("2006-01-02T15:04Z")+"/"+o.End.Format("2006-01-02T15:04Z"))
	}
	return got
}

func TestOccurrences(t *testing.T) {
	t.Parallel()
	hours := func(w *Window, length time.Duration) { w.Length, w.End = length, 0 }
	for _, test := range []struct {
		name, from string
		change     func(*Window)
		want       []string
	}{
		{"over the end of summer time", "2026-10-17T12:00:00Z", func(*Window) {}, []string{
			"2026-10-18T00:00Z/2026-10-18T02:00Z", "2026-10-25T00:00Z/2026-10-25T03:00Z",
			"2026-11-01T01:00Z/2026-11-01T03:00Z"}},
		{"over its beginning: 02:00 is missing", "2027-03-20T12:00:00Z", func(*Window) {}, []string{
			"2027-03-21T01:00Z/2027-03-21T03:00Z", "2027-03-28T01:00Z/2027-03-28T02:00Z",
			"2027-04-04T00:00Z/2027-04-04T02:00Z"}},
		{"the missing hour is skipped", "2027-03-20T12:00:00Z",
			func(w *Window) { w.Gap = GapSkip }, []string{
				"2027-03-21T01:00Z/2027-03-21T03:00Z", "2027-04-04T00:00Z/2027-04-04T02:00Z"}},
		{"the second of the two", "2026-10-24T12:00:00Z",
			func(w *Window) { w.Fold = FoldSecond }, []string{"2026-10-25T01:00Z/2026-10-25T03:00Z"}},
		{"two hours are two hours", "2026-10-24T12:00:00Z",
			func(w *Window) { hours(w, 2*time.Hour) }, []string{"2026-10-25T00:00Z/2026-10-25T02:00Z"}},
		{"two hours from 02:00, which comes late: up to 04:00", "2027-03-27T12:00:00Z",
			func(w *Window) { hours(w, 2*time.Hour) }, []string{"2027-03-28T01:00Z/2027-03-28T02:00Z"}},
		{"an end that comes twice is the first", "2026-10-24T12:00:00Z", func(w *Window) {
			w.Times.Recurrences = []Recurrence{recurrence(t, "0 1 * * SUN")}
			w.End = 2*time.Hour + 30*time.Minute
		}, []string{"2026-10-24T23:00Z/2026-10-25T00:30Z"}},
		{"it begins in the second hour and ends in it", "2026-10-24T12:00:00Z", func(w *Window) {
			w.Fold, w.End = FoldSecond, 2*time.Hour+30*time.Minute
		}, []string{"2026-10-25T01:00Z/2026-10-25T01:30Z"}},
		{"an end in the gap", "2027-03-27T12:00:00Z", func(w *Window) {
			w.Times.Recurrences = []Recurrence{recurrence(t, "0 1 * * SUN")}
			w.End = 2*time.Hour + 30*time.Minute
		}, []string{"2027-03-28T00:00Z/2027-03-28T01:00Z"}},
		{"beginning and end in the gap: it does not come", "2027-03-27T12:00:00Z",
			func(w *Window) { w.End = 2*time.Hour + 30*time.Minute },
			[]string{"2027-04-04T00:00Z/2027-04-04T00:30Z"}},
		{"over midnight, and over the end of a month", "2026-10-31T12:00:00Z", func(w *Window) {
			w.Times.Recurrences = []Recurrence{recurrence(t, "0 22 * * SAT")}
		}, []string{"2026-10-31T21:00Z/2026-11-01T03:00Z"}},
		{"up to midnight", "2026-11-21T12:00:00Z", func(w *Window) {
			w.Times.Recurrences = []Recurrence{recurrence(t, "0 22 * * SAT")}
			w.End = 24 * time.Hour
		}, []string{"2026-11-21T21:00Z/2026-11-21T23:00Z"}},
		{"the whole day, always", "2026-10-24T22:00:00Z", func(w *Window) {
			w.Times.Recurrences = []Recurrence{recurrence(t, "@daily")}
			w.End = 24 * time.Hour
		}, []string{"2026-10-24T22:00Z/2026-10-25T23:00Z", "2026-10-25T23:00Z/2026-10-26T23:00Z"}},
		{"29 February", "2026-01-01T00:00:00Z", func(w *Window) {
			w.Times.Recurrences = []Recurrence{recurrence(t, "0 2 29 2 *")}
		}, []string{"2028-02-29T01:00Z/2028-02-29T03:00Z"}},
		{"dates and a recurrence, two at once", "2026-11-20T00:00:00Z", func(w *Window) {
			w.Times.Dates = []Wall{wall(t, "2026-11-21 02:00"), wall(t, "2026-11-22 02:00")}
		}, []string{"2026-11-21T01:00Z/2026-11-21T03:00Z", "2026-11-22T01:00Z/2026-11-22T03:00Z",
			"2026-11-29T01:00Z/2026-11-29T03:00Z"}},
		{"one that is open already", "2026-11-22T02:59:59Z", func(*Window) {},
			[]string{"2026-11-22T01:00Z/2026-11-22T03:00Z"}},
		{"one that has just ended", "2026-11-22T03:00:00Z", func(*Window) {},
			[]string{"2026-11-29T01:00Z/2026-11-29T03:00Z"}},
		{"a week", "2026-11-22T03:00:00Z", func(w *Window) { hours(w, lengthMax) },
			[]string{"2026-11-15T01:00Z/2026-11-22T01:00Z"}[1:]},
		{"valid from and until", "2026-01-01T00:00:00Z", func(w *Window) {
			w.From, w.Until = wall(t, "2026-11-22 02:00"), wall(t, "2026-11-29 04:00")
		}, []string{"2026-11-22T01:00Z/2026-11-22T03:00Z", "2026-11-29T01:00Z/2026-11-29T03:00Z"}},
		{"valid for less than that", "2026-01-01T00:00:00Z", func(w *Window) {
			w.From, w.Until = wall(t, "2026-11-22 02:01"), wall(t, "2026-12-06 03:59")
		}, []string{"2026-11-29T01:00Z/2026-11-29T03:00Z"}},
	} {
		w := sunday(t)
		test.change(&w)
		n := max(1, len(test.want))
		got := occurrences(w, instant(t, test.from), n)
		if w.Until != 0 {
			got = occurrences(w, instant(t, test.from), 10)
		}
		if len(test.want) > 0 && !slices.Equal(got, test.want) {
			t.Errorf("%s:\n got %q\nwant %q", test.name, got, test.want)
		}
	}
}

// For any window: occurrences come in order, each has a length, the clocks agree with them, and a
// search from the middle finds the same as a search from before.
func TestOccurrencesAreInOrder(t *testing.T) {
	t.Parallel()
	zones := []Zone{zone(t, "Europe/Zurich"), zone(t, "America/Sao_Paulo"), zone(t, "Pacific/Apia"),
		zone(t, "Australia/Lord_Howe"), {}}
	texts := []string{"0 2 * * SUN", "30 2 * * *", "0 0 * * *", "15 */6 * * *", "0 0 1 * *", "0 * * * *"}
	rapid.Check(t, func(rt *rapid.T) {
		w := Window{
			Zone:  rapid.SampledFrom(zones).Draw(rt, "zone"),
			Times: Calendar{Recurrences: []Recurrence{recurrence(t, rapid.SampledFrom(texts).Draw(rt, "text"))}},
			Policy: Policy{Gap: Gap(rapid.IntRange(0, 1).Draw(rt, "gap")),
				Fold: Fold(rapid.IntRange(0, 1).Draw(rt, "fold"))},
		}
		if rapid.Bool().Draw(rt, "by clock") {
			w.End = time.Duration(rapid.IntRange(1, 96).Draw(rt, "end")) * 15 * time.Minute
		} else {
			w.Length = time.Duration(rapid.IntRange(1, 200).Draw(rt, "length")) * 15 * time.Minute
		}
		from := unix(rapid.Int64Range(1_300_000_000, 1_900_000_000).Draw(rt, "from"))
		var all []Occurrence
		for o := range w.Occurrences(from) {
			if len(all) == 40 {
				break
			}
			if !o.End.After(o.Start) || !o.End.After(from) {
				rt.Fatalf("%v from %s", o, from)
			}
			if n := len(all); n > 0 && !o.Start.After(all[n-1].Start) {
				rt.Fatalf("%v after %v", o, all[n-1])
			}
			if w.Length > 0 && o.End.Sub(o.Start) > w.Length {
				rt.Fatalf("%v is longer than %s", o, w.Length)
			}
			all = append(all, o)
		}
		if len(all) < 20 {
			return
		}
		i := rapid.IntRange(0, 19).Draw(rt, "again from")
		again, ok := first(w.Occurrences(all[i].End))
		j := slices.IndexFunc(all, func(o Occurrence) bool { return o.End.After(all[i].End) })
		if !ok || j >= 0 && again != all[j] {
			rt.Fatalf("from the end of %v: %v, want %v", all[i], again, all[j])
		}
	})
}

func TestWindowsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*Window)
		want   string
	}{
		{"never", func(w *Window) { w.Times = Calendar{} }, "it never begins"},
		{"no end", func(w *Window) { w.End = 0 }, "one of length and end"},
		{"two ends", func(w *Window) { w.Length = time.Hour }, "one of length and end"},
		{"too long", func(w *Window) { w.Length, w.End = 169*time.Hour, 0 }, "at most 168h"},
		{"a period", func(w *Window) { w.Times.Recurrences[0] = recurrence(t, "@every 1h") }, "by the clock"},
		{"all cut off", func(w *Window) { w.Length, w.End, w.Cutoff = time.Hour, 0, time.Hour }, "cutoff"},
		{"less than nothing", func(w *Window) { w.Cutoff = -1 }, "cutoff"},
		{"every minute", func(w *Window) { w.Times.Recurrences[0] = recurrence(t, "* 2 * * *") },
			"60 times a day, at most 24"},
		{"never open", func(w *Window) { w.Cutoff = 2 * time.Hour }, "it is never open"},
		{"valid too short", func(w *Window) { w.From, w.Until = 86400, 90000 }, "it is never open"},
		{"valid never", func(w *Window) { w.From, w.Until = 10, 10 }, "is not before"},
	} {
		w := sunday(t)
		test.change(&w)
		errs := w.Validate()
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, errs, test.want)
		}
	}
	if errs := sunday(t).Validate(); errs != nil {
		t.Error(errs)
	}
}

// An approval is for the window as it was shown: each change of its open times changes its hash,
// and nothing else does.
func TestAnyChangeOfTheTimesChangesTheHash(t *testing.T) {
	t.Parallel()
	seen := map[string]string{sunday(t).Hash(): "unchanged"}
	for name, change := range map[string]func(*Window){
		"zone":     func(w *Window) { w.Zone = zone(t, "Europe/Berlin") },
		"start":    func(w *Window) { w.Times.Recurrences[0] = recurrence(t, "1 2 * * SUN") },
		"dates":    func(w *Window) { w.Times.Dates = []Wall{7} },
		"events":   func(w *Window) { w.Times.Events = []Event{{Starts: []Wall{1}, Length: 1}} },
		"end":      func(w *Window) { w.End++ },
		"length":   func(w *Window) { w.Length++ },
		"cutoff":   func(w *Window) { w.Cutoff++ },
		"from":     func(w *Window) { w.From++ },
		"until":    func(w *Window) { w.Until++ },
		"gap":      func(w *Window) { w.Gap++ },
		"fold":     func(w *Window) { w.Fold++ },
		"runbooks": func(w *Window) { w.Runbooks = []string{"x"} },
		"scope":    func(w *Window) { w.For.Name = "other" },
		"level":    func(w *Window) { w.For.Level = Host },
		"at end":   func(w *Window) { w.AtEnd = StopAtSafePoint },
	} {
		w := sunday(t)
		change(&w)
		if other, ok := seen[w.Hash()]; ok {
			t.Errorf("%s: the hash is that of %s", name, other)
		}
		seen[w.Hash()] = name
	}
	w := sunday(t)
	w.OnChange = CancelJobs
	if w.Hash() != sunday(t).Hash() {
		t.Error("what becomes of jobs when a window changes is not part of it")
	}
}

func BenchmarkThousandOccurrences(b *testing.B) {
	w := sunday(b)
	from := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		n := 0
		for range w.Occurrences(from) {
			if n++; n == 1000 {
				break
			}
		}
	}
}

// Near a change of the clocks an earlier reading may mean a later instant.
func TestTimesAreFoundWhereTheClocksAreSet(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, from, want string }{
		{"in the second of two hours", "2026-10-25T00:35:00Z", "2026-10-25T01:30:00Z"},
		{"at the end of the missing hour", "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z"},
		{"far from it", "2027-02-28T01:30:00Z", "2027-02-28T01:30:00Z"},
	} {
		got, _ := first(recurrence(t, "30 2 * * *").Times(zone(t, "Europe/Zurich"), instant(t, test.from),
			Policy{Fold: FoldSecond}))
		if got.Format(time.RFC3339) != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
