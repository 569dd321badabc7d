package windows

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFiring(t *testing.T) {
	t.Parallel()
	daily := Schedule{Name: "zsk", Zone: zone(t, "Europe/Zurich"), Times: recurrence(t, "30 2 * * *")}
	for _, test := range []struct {
		name, last, now string
		missed          Missed
		ticks           []string
		skipped         int
		next            string
	}{
		{"nothing is due", "2026-11-20T01:30:00Z", "2026-11-21T01:29:59Z", MissedOnce, nil, 0,
			"2026-11-21T01:30:00Z"},
		{"the moment", "2026-11-20T01:30:00Z", "2026-11-21T01:30:00Z", MissedOnce,
			[]string{"2026-11-21T01:30:00Z"}, 0, "2026-11-22T01:30:00Z"},
		{"the moment, skipping", "2026-11-20T01:30:00Z", "2026-11-21T01:30:10Z", MissedSkip,
			[]string{"2026-11-21T01:30:00Z"}, 0, "2026-11-22T01:30:00Z"},
		{"too late, skipping", "2026-11-20T01:30:00Z", "2026-11-21T01:30:11Z", MissedSkip, nil, 1,
			"2026-11-22T01:30:00Z"},
		{"three days away, once", "2026-11-18T01:30:00Z", "2026-11-21T12:00:00Z", MissedOnce,
			[]string{"2026-11-21T01:30:00Z"}, 2, "2026-11-22T01:30:00Z"},
		{"three days away, all", "2026-11-18T01:30:00Z", "2026-11-21T12:00:00Z", MissedAll,
			[]string{"2026-11-19T01:30:00Z", "2026-11-20T01:30:00Z", "2026-11-21T01:30:00Z"}, 0,
			"2026-11-22T01:30:00Z"},
		{"the missing hour", "2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z", MissedSkip,
			[]string{"2027-03-28T01:00:00Z"}, 0, "2027-03-29T00:30:00Z"},
		{"the hour that comes twice: the second is no tick", "2026-10-25T00:30:00Z",
			"2026-10-25T01:30:00Z", MissedSkip, nil, 0, "2026-10-26T01:30:00Z"},
		{"the clock was set back", "2026-11-21T01:30:00Z", "2026-11-20T12:00:00Z", MissedAll, nil, 0,
			"2026-11-22T01:30:00Z"},
	} {
		daily.Missed = test.missed
		f := daily.Fire(instant(t, test.last), instant(t, test.now))
		var ticks []string
		for _, at := range f.Ticks {
			ticks = append(ticks, at.Format(time.RFC3339))
		}
		if next := f.Next.Format(time.RFC3339); !slices.Equal(ticks, test.ticks) ||
			f.Skipped != test.skipped || next != test.next {
			t.Errorf("%s: ticks %q, skipped %d, next %s; want %q, %d, %s", test.name, ticks, f.Skipped,
				next, test.ticks, test.skipped, test.next)
		}
	}
}

// However often and whenever a server looks: with "all" each tick is fired once.
func TestEachTickIsFiredOnce(t *testing.T) {
	t.Parallel()
	texts := []string{"@every 90s", "*/5 * * * *", "30 * * * * *", "0 2,3 * * *"}
	z := zone(t, "Europe/Zurich")
	rapid.Check(t, func(rt *rapid.T) {
		s := Schedule{Zone: z, Missed: MissedAll,
			Times: recurrence(t, rapid.SampledFrom(texts).Draw(rt, "text"))}
		last := unix(rapid.Int64Range(1_790_000_000, 1_810_000_000).Draw(rt, "last"))
		from, now := last, last
		var fired []time.Time
		for range 20 {
			now = now.Add(time.Duration(rapid.IntRange(-600, 3600).Draw(rt, "step")) * time.Second)
			f := s.Fire(last, now)
			fired = append(fired, f.Ticks...)
			if n := len(f.Ticks); n > 0 {
				last = f.Ticks[n-1]
			}
		}
		var want []time.Time
		for tick := range s.Ticks(from.Add(time.Second)) {
			if tick.After(last) {
				break
			}
			want = append(want, tick)
		}
		if !slices.EqualFunc(fired, want, time.Time.Equal) {
			rt.Fatalf("fired %v\nwant %v", fired, want)
		}
	})
}

func TestAFloodOfTicksIsBounded(t *testing.T) {
	t.Parallel()
	s := Schedule{Times: recurrence(t, "@every 1s"), Missed: MissedAll}
	f := s.Fire(unix(0), unix(5000))
	if len(f.Ticks) != ticksMax || f.Skipped != 4000 || !f.Ticks[0].Equal(unix(4001)) {
		t.Errorf("%d ticks from %s, %d skipped", len(f.Ticks), f.Ticks[0], f.Skipped)
	}
}

func TestHashedTimes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"H 2 * * *", "N 2 * * *"},
		{"H H(0-7) * * *", "N N * * *"},
		{"H/15 * * * *", "N-59/15 * * * *"},
		{"H(0-29)/10 * * * *", "N-29/10 * * * *"},
		{"0 2 H * *", "0 2 N * *"},
		{"H 0 2 * * *", "N 0 2 * * *"},
		{"0 2 * * THU", "0 2 * * THU"},
		{"H(5-2) * * * *", "minute \"H(5-2)\": want a range"},
		{"0 H(0-24) * * *", "hour \"H(0-24)\": want a range within 0 to 23"},
		{"H/0 * * * *", "a step of 1 to 60"},
		{"Hx * * * *", "want H, H/n"},
		{"H", "has 1 fields"},
	} {
		r, err := ParseScheduleTimes("nightly", test.text)
		if err != nil {
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %s", test.text, err, test.want)
			}
			continue
		}
		if again, _ := ParseScheduleTimes("nightly", test.text); again != r {
			t.Errorf("%s: %s, and then %s", test.text, r, again)
		}
		got, want := strings.Fields(r.String()), strings.Fields(test.want)
		for i := range want {
			if !strings.HasPrefix(want[i], "N") && got[i] != want[i] ||
				strings.HasPrefix(want[i], "N") && !strings.HasSuffix(got[i], want[i][1:]) {
				t.Errorf("%s: %s, want %s", test.text, r, test.want)
			}
		}
	}
}

// Schedules with equal times are spread over time, and hosts over the jitter.
func TestSpread(t *testing.T) {
	t.Parallel()
	minutes, tenths := map[string]int{}, map[int64]int{}
	s := Schedule{Name: "nightly", Jitter: time.Hour}
	for i := range 6000 {
		r, err := ParseScheduleTimes(fmt.Sprintf("s%d", i), "H 2 * * *")
		if err != nil {
			t.Fatal(err)
		}
		minutes[strings.Fields(r.String())[0]]++
		offset := s.Offset(fmt.Sprintf("fw%04d", i))
		if offset < 0 || offset >= s.Jitter || offset != s.Offset(fmt.Sprintf("fw%04d", i)) {
			t.Fatalf("offset %s", offset)
		}
		tenths[int64(offset*10/time.Hour)]++
	}
	for m, n := range minutes {
		if n < 50 || n > 170 {
			t.Errorf("minute %s has %d of 6000 schedules", m, n)
		}
	}
	for tenth, n := range tenths {
		if n < 450 || n > 750 {
			t.Errorf("tenth %d has %d of 6000 hosts", tenth, n)
		}
	}
}
