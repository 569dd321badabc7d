package windows

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/teambition/rrule-go"
	"pgregory.net/rapid"
)

// anyRule draws a rule that the library and RFC 5545 understand alike. They differ if both kinds
// of weekday stand in one rule: the library wants both, the RFC either.
func anyRule(t *rapid.T) rrule.ROption {
	some := func(label string, least, most, of int) []int {
		if rapid.IntRange(0, 3).Draw(t, label+"?") > 0 {
			return nil
		}
		n := rapid.IntRange(least, most)
		if least < 0 {
			n = rapid.OneOf(rapid.IntRange(least, -1), rapid.IntRange(1, most))
		}
		return rapid.SliceOfNDistinct(n, 1, of, rapid.ID[int]).Draw(t, label)
	}
	days := []rrule.Weekday{rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA, rrule.SU}
	o := rrule.ROption{
		Freq: rapid.SampledFrom([]rrule.Frequency{rrule.DAILY, rrule.WEEKLY, rrule.MONTHLY,
			rrule.YEARLY}).Draw(t, "freq"),
		Interval: rapid.IntRange(1, 5).Draw(t, "interval"), Wkst: rapid.SampledFrom(days).Draw(t, "wkst"),
		Bymonth: some("month", 1, 12, 4), Bymonthday: some("monthday", -31, 31, 4),
		Byhour: some("hour", 0, 23, 3), Byminute: some("minute", 0, 59, 2),
		Dtstart: time.Unix(rapid.Int64Range(1_500_000_000, 1_800_000_000).Draw(t, "start"), 0).UTC(),
	}
	if o.Freq == rrule.YEARLY {
		// For weeks at the edges of years the library forgets the days in the other year.
		o.Byyearday, o.Byweekno = some("yearday", -366, 366, 5), some("weekno", 2, 51, 4)
	}
	if by := some("weekday", 0, 6, 4); by != nil {
		nth := rapid.SampledFrom([]int{0, 1, 2, 5, -1, -3}).Draw(t, "nth")
		for _, d := range by {
			if o.Freq <= rrule.MONTHLY && nth != 0 && len(o.Byweekno) == 0 {
				o.Byweekday = append(o.Byweekday, days[d].Nth(nth))
				continue
			}
			o.Byweekday = append(o.Byweekday, days[d])
		}
	}
	if len(o.Bymonthday)+len(o.Byweekday)+len(o.Byhour) > 0 {
		o.Bysetpos = some("setpos", -4, 4, 2)
	}
	return o
}

// The library computes a rule from its beginning; muster can begin anywhere.
func TestRulesComeAsTheLibrarySays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := anyRule(t)
		o.Until = o.Dtstart.AddDate(9, 0, 0)
		library, err := rrule.NewRRule(o)
		if err != nil {
			t.Skip(err)
		}
		var want []Wall
		for _, at := range library.All() {
			want = append(want, Wall(at.Unix()))
		}
		r := newRule(&o, Wall(o.Dtstart.Unix()))
		r.Until = Wall(o.Until.Unix())
		from := r.Start + Wall(rapid.Int64Range(-1000, 4000).Draw(t, "day"))*day +
			Wall(rapid.Int64Range(0, day).Draw(t, "second"))
		i, _ := slices.BinarySearch(want, from)
		for begin, list := range map[Wall][]Wall{r.Start: want, from: want[i:]} {
			var got []Wall
			for c := r.from(begin); ; {
				w, ok := c.next()
				if !ok {
					break
				}
				got = append(got, w)
			}
			if !slices.Equal(got, list) {
				t.Fatalf("%s from %s (-want +got):\n%s", o.RRuleString(), begin, cmp.Diff(list, got))
			}
		}
		n := rapid.IntRange(1, 400).Draw(t, "count")
		if n <= len(want) && r.nth(n) != want[n-1] {
			t.Fatalf("%s: number %d is %s, want %s", o.RRuleString(), n, r.nth(n), want[n-1])
		}
	})
}
