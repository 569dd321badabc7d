package windows

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// zone loads one of the zones of the tests, each with a trap of its own.
func zone(t testing.TB, name string) Zone {
	t.Helper()
	z, err := LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func wall(t testing.TB, s string) Wall {
	t.Helper()
	w, err := ParseWall(s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestReadingsBecomeInstants(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		zone, wall                string
		gapFirst, gapSkip, second string // "" is: not at all
	}{
		{"UTC", "2026-03-29 02:30", "2026-03-29T02:30:00Z", "same", "same"},
		{"Europe/Zurich", "2026-07-01 02:30", "2026-07-01T00:30:00Z", "same", "same"},
		{"Europe/Zurich", "2026-03-29 01:59", "2026-03-29T00:59:00Z", "same", "same"},
		{"Europe/Zurich", "2026-03-29 02:00", "2026-03-29T01:00:00Z", "", "same"},
		{"Europe/Zurich", "2026-03-29 02:30", "2026-03-29T01:00:00Z", "", "same"},
		{"Europe/Zurich", "2026-03-29 03:00", "2026-03-29T01:00:00Z", "same", "same"},
		{"Europe/Zurich", "2026-10-25 01:59", "2026-10-24T23:59:00Z", "same", "same"},
		{"Europe/Zurich", "2026-10-25 02:00", "2026-10-25T00:00:00Z", "same", "2026-10-25T01:00:00Z"},
		{"Europe/Zurich", "2026-10-25 02:30", "2026-10-25T00:30:00Z", "same", "2026-10-25T01:30:00Z"},
		{"Europe/Zurich", "2026-10-25 03:00", "2026-10-25T02:00:00Z", "same", "same"},
		{"America/New_York", "2026-03-08 02:30", "2026-03-08T07:00:00Z", "", "same"},
		{"America/New_York", "2026-11-01 01:30", "2026-11-01T05:30:00Z", "same", "2026-11-01T06:30:00Z"},
		{"America/Sao_Paulo", "2018-11-04 00:00", "2018-11-04T03:00:00Z", "", "same"}, // no midnight
		{"America/Sao_Paulo", "2018-02-17 23:30", "2018-02-18T01:30:00Z", "same", "2018-02-18T02:30:00Z"},
		{"Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-03T15:30:00Z", "", "same"}, // half an hour
		{"Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04T14:45:00Z", "same", "2026-04-04T15:15:00Z"},
		{"Pacific/Apia", "2011-12-30 12:00", "2011-12-30T10:00:00Z", "", "same"}, // a day that was not
		{"Pacific/Apia", "2011-12-29 23:59", "2011-12-30T09:59:00Z", "same", "same"},
		{"Pacific/Apia", "2011-12-31 00:00", "2011-12-30T10:00:00Z", "same", "same"},
	} {
		z, w := zone(t, test.zone), wall(t, test.wall)
		for _, way := range []struct {
			name string
			p    Policy
			want string
		}{
			{"first", Policy{}, test.gapFirst},
			{"skip", Policy{Gap: GapSkip}, test.gapSkip},
			{"second", Policy{Fold: FoldSecond}, test.second},
		} {
			want := way.want
			if want == "same" {
				want = test.gapFirst
			}
			got := ""
			if at, ok := z.Instant(w, way.p); ok {
				got = at.Format(time.RFC3339)
			}
			if got != want {
				t.Errorf("%s in %s, %s: %q, want %q", test.wall, test.zone, way.name, got, want)
			}
		}
	}
}

// The library returns wrong bounds of a span there.
func TestTheLastDayOfALeapYear(t *testing.T) {
	t.Parallel()
	z := zone(t, "Europe/Zurich")
	for _, year := range []int{2028, 2040, 2096, 2104} {
		w := wall(t, fmt.Sprintf("%d-12-31 12:00", year))
		if at, ok := z.Instant(w, Policy{}); !ok || z.Wall(at) != w || at.Hour() != 11 {
			t.Errorf("%s is at %s", w, at)
		}
	}
}

// The reading at an instant leads back to that instant, by one of the two instants if the reading
// occurs twice.
func TestAReadingLeadsBackToItsInstant(t *testing.T) {
	t.Parallel()
	names := []string{"UTC", "Europe/Zurich", "America/New_York", "America/Sao_Paulo",
		"Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "Africa/Casablanca"}
	var all []Zone
	for _, n := range names {
		all = append(all, zone(t, n))
	}
	rapid.Check(t, func(t *rapid.T) {
		z := rapid.SampledFrom(all).Draw(t, "zone")
		at := unix(rapid.Int64Range(0, 5_000_000_000).Draw(t, "at"))
		w := z.Wall(at)
		if got := at.In(z.Location(at)).Format(time.DateTime); got != w.full() {
			t.Fatalf("%s: the clocks read %s, the library says %s", at, w.full(), got)
		}
		early, _ := z.Instant(w, Policy{})
		late, _ := z.Instant(w, Policy{Fold: FoldSecond})
		if !early.Equal(at) && !late.Equal(at) {
			t.Fatalf("%s reads %s, and that is at %s or %s", at, w, early, late)
		}
		if early.After(late) {
			t.Fatalf("the first %s is after the second %s", early, late)
		}
	})
}

func (w Wall) full() string { return time.Unix(int64(w), 0).UTC().Format(time.DateTime) }

func TestZonesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Local", "CEST", "CET", "Europe/Zuerich", "../etc/passwd", "TZ=x",
		strings.Repeat("x/", 500), "Europe/", "+02:00"} {
		if z, err := LoadZone(name); err == nil {
			t.Errorf("%q is taken for %v", name, z)
		} else if len(err.Error()) > 200 {
			t.Errorf("%q: an error of %d characters", name, len(err.Error()))
		}
	}
}

func TestWeekdays(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"1969-12-28 00:00", "1969-12-31 23:59", "1970-01-01", "2000-02-29 12:00",
		"2026-11-21 23:59", "1900-01-01"} {
		w := wall(t, s)
		want := time.Unix(int64(w), 0).UTC()
		if got := w.weekday(); got != want.Weekday() {
			t.Errorf("%s is a %s, not a %s", s, want.Weekday(), got)
		}
		if got, want := w.midnight(), wall(t, want.Format(time.DateOnly)); got != want {
			t.Errorf("the day of %s begins at %s, not at %s", s, want, got)
		}
	}
}

func TestRecurrences(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, zone, from string
		p                Policy
		want             []string
	}{
		{"30 2 * * *", "Europe/Zurich", "2026-03-28T00:00:00Z", Policy{},
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"30 2 * * *", "Europe/Zurich", "2026-03-28T00:00:00Z", Policy{Gap: GapSkip},
			[]string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}},
		{"30 2 * * *", "Europe/Zurich", "2026-10-24T12:00:00Z", Policy{},
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"30 2 * * *", "Europe/Zurich", "2026-10-24T12:00:00Z", Policy{Fold: FoldSecond},
			[]string{"2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		// Between the two readings: the second is still ahead, the first is not.
		{"30 2 * * *", "Europe/Zurich", "2026-10-25T00:45:00Z", Policy{Fold: FoldSecond},
			[]string{"2026-10-25T01:30:00Z"}},
		{"30 2 * * *", "Europe/Zurich", "2026-10-25T00:45:00Z", Policy{}, []string{"2026-10-26T01:30:00Z"}},
		// Two readings in one gap are one instant, and the end of the gap is the same instant.
		{"0,30 2,3 * * *", "Europe/Zurich", "2026-03-29T00:00:00Z", Policy{},
			[]string{"2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z"}},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", Policy{},
			[]string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
		{"0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", Policy{Gap: GapSkip},
			[]string{"2011-12-29T22:00:00Z", "2011-12-30T22:00:00Z"}},
		{"0 * * * *", "Europe/Zurich", "2026-10-24T23:00:00Z", Policy{}, // each hour that passes
			[]string{"2026-10-24T23:00:00Z", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z",
				"2026-10-25T02:00:00Z"}},
		{"30 * * * *", "Europe/Zurich", "2026-03-29T00:00:00Z", Policy{},
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"}},
		{"0 */2 * * *", "Europe/Zurich", "2027-03-28T00:00:00Z", Policy{},
			[]string{"2027-03-28T01:00:00Z", "2027-03-28T02:00:00Z"}},
		{"0 */2 * * *", "Europe/Zurich", "2026-10-24T23:00:00Z", Policy{},
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z"}},
		{"30 2 28 3 *", "Europe/Zurich", "2027-01-01T00:00:00Z", Policy{},
			[]string{"2027-03-28T01:00:00Z", "2028-03-28T00:30:00Z"}},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", Policy{},
			[]string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
		{"0 0 * 1 *", "UTC", "2027-01-31T12:00:00Z", Policy{}, []string{"2028-01-01T00:00:00Z"}},
		{"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", Policy{},
			[]string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", Policy{}, []string{"2104-02-29T00:00:00Z"}},
		{"0 0 31 * *", "UTC", "2026-01-31T00:00:01Z", Policy{}, []string{"2026-03-31T00:00:00Z"}},
		{"0 0 13 * FRI", "UTC", "2026-11-12T00:00:00Z", Policy{}, // cron: either of the two
			[]string{"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"}},
		{"0 0 13 11 *", "UTC", "2026-11-13T00:00:00Z", Policy{}, []string{"2026-11-13T00:00:00Z"}},
		{"*/20 30 2 * * SUN", "UTC", "2026-11-21T00:00:00Z", Policy{},
			[]string{"2026-11-22T02:30:00Z", "2026-11-22T02:30:20Z", "2026-11-22T02:30:40Z"}},
		{"@weekly", "UTC", "2026-11-21T00:00:00Z", Policy{}, []string{"2026-11-22T00:00:00Z"}},
		{"@every 90s", "Europe/Zurich", "1970-01-01T00:01:31Z", Policy{},
			[]string{"1970-01-01T00:03:00Z", "1970-01-01T00:04:30Z"}},
		{"@every 1s", "UTC", "1969-12-31T23:59:58.5Z", Policy{},
			[]string{"1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"}},
	} {
		r, err := ParseRecurrence(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		var got []string
		for at := range r.Times(zone(t, test.zone), instant(t, test.from), test.p) {
			if len(got) == len(test.want) {
				break
			}
			got = append(got, at.Format(time.RFC3339))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s in %s from %s: %q, want %q", test.text, test.zone, test.from, got, test.want)
		}
	}
}

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestCronTextThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"", "has 0 fields"},
		{"* * * *", "has 4 fields"},
		{"TZ=x", "the zone is a field of its own"},
		{"CRON_TZ=Europe/Zurich 0 2 * * *", "the zone is a field of its own"},
		{"*/90 * * * *", `minute "*/90": a step of 1 to 59`},
		{"0-50/90 * * * *", `minute "0-50/90": a step of 1 to 59`},
		{"*/0 * * * *", `minute "*/0": a step`},
		{"0 2 * * 7", `weekday "7": want 0 (Sunday) to 6`},
		{"0 2 * * FRU", `weekday "FRU"`},
		{"0 24 * * *", `hour "24": want 0 to 23`},
		{"60 24 0 13 8", "minute \"60\": want 0 to 59, with , - / and *\nhour \"24\""},
		{"0 0 L * *", `day of the month "L"`},
		{"0 0 30 2 *", "never comes"},
		{"0 0 31 2,4,6,9,11 *", "never comes"},
		{"@reboot", "want @hourly"},
		{"@every 0s", "whole seconds"},
		{"@every 1.5s", "whole seconds"},
		{"@every -1m", "whole seconds"},
		{strings.Repeat("x", 1000), "cron text of 1000 characters"},
		{"0 5-2 * * *", `hour "5-2"`},
		{"0 , * * *", `hour ","`},
	} {
		_, err := ParseRecurrence(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60q: %v, want %q", test.text, err, test.want)
		}
	}
}

// Each accepted recurrence has a time, and nothing panics.
func FuzzRecurrence(f *testing.F) {
	for _, s := range []string{"0 2 * * SUN", "*/5 * * * * *", "@every 1h", "TZ=x", "*/90 * * * *", "0 0 30 2 *",
		"? ? ? ? ?", "1-5,7/2 0 1 JAN *", "0 0 29 2 1-5", "first Sunday 02:00"} {
		f.Add(s)
	}
	z := zone(f, "Europe/Zurich")
	from := time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRecurrence(text)
		if err != nil {
			return
		}
		at, ok := first(r.Times(z, from, Policy{}))
		if !ok || at.Before(from) {
			t.Errorf("%q: %v, %v", text, at, ok)
		}
		again, err := ParseRecurrence(r.String())
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%q says of itself %q: %v", text, r, err)
		}
	})
}
