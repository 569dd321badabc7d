package windows

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Nothing is open on a day that is left out: no occurrence begins on it, and none reaches into it.
func TestOnADayThatIsLeftOutNothingIsOpen(t *testing.T) {
	t.Parallel()
	read := func(more string) Window {
		t.Helper()
		a, err := Parse([]File{{"w.yaml", "windows:\n- {name: w, customer: acme, zone: Europe/Zurich, " + more +
			", approval: none}\n"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a.Windows[0]
	}
	from := instant(t, "2026-12-22T12:00:00Z")
	for more, want := range map[string][]string{
		`start: every day 02:00, length: 2h, except: [2026-12-24]`: {
			"2026-12-23T01:00Z/2026-12-23T03:00Z", "2026-12-25T01:00Z/2026-12-25T03:00Z"},
		// The window of the 23rd begins the day before, the one of the 24th on the day. An end at
		// midnight does not reach into the day.
		`start: "0 22 * * *", length: 4h, except: 2026-12-24`: {
			"2026-12-22T21:00Z/2026-12-23T01:00Z", "2026-12-25T21:00Z/2026-12-26T01:00Z"},
		`start: "0 22 * * *", end: "24:00", except: 2026-12-24`: {
			"2026-12-22T21:00Z/2026-12-22T23:00Z", "2026-12-23T21:00Z/2026-12-23T23:00Z"},
		`start: first Sunday 02:00, length: 2h, except: [2027-01-01 to 2027-01-31, 2027-02-07]`: {
			"2027-03-07T01:00Z/2027-03-07T03:00Z", "2027-04-04T00:00Z/2027-04-04T02:00Z"},
		`dates: [2026-12-24 02:00, 2026-12-25 02:00, 2026-12-26 02:00], length: 1h, except: [2026-12-25]`: {
			"2026-12-24T01:00Z/2026-12-24T02:00Z", "2026-12-26T01:00Z/2026-12-26T02:00Z"},
	} {
		if got := occurrences(read(more), from, 2); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", more, got, want)
		}
	}
	w := read("start: every day 22:00, length: 4h, except: [2026-12-24, 2026-12-26]")
	got := strings.Join(w.Surprises(from), "; ")
	if !strings.Contains(got, "except 2026-12-24: its opening of 2026-12-23 22:00 reaches into that day") {
		t.Errorf("surprises with %q", got)
	}
	w = read("start: every Sunday 04:00, length: 4h, except: [2026-12-24]")
	if got := strings.Join(w.Surprises(from), "; "); got != "except 2026-12-24 leaves out nothing: it is not open then" {
		t.Errorf("surprises with %q", got)
	}
	if a, b := read("start: every day 02:00, length: 2h"), read("start: every day 02:00, length: 2h, "+
		"except: 2030-01-01"); a.Hash() == b.Hash() {
		t.Error("an approval of the one is one of the other")
	}
}

func TestDaysThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	_, err := Parse([]File{{"w.yaml", `windows:
- name: w
  customer: acme
  zone: UTC
  start: every day 02:00
  length: 2h
  except: [24.12.2026, 2026-12-24 22:00, 2026-12-26 to 2026-12-24, 2026-02-30]
`}}, nil)
	for _, want := range []string{`w.yaml:7: except: "24.12.2026" is no day: want 2026-12-24, or 2026-12-24 to`,
		`"2026-12-24 22:00" is no day`, `"2026-12-26 to 2026-12-24" ends before it begins`, `"2026-02-30" is no day`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A schedule has no tick on a day that is left out, and does not count through the ticks of that
// day.
func TestAScheduleLeavesDaysOut(t *testing.T) {
	t.Parallel()
	list, err := ParseSchedules([]File{{"s.yaml", `schedules:
- {name: nightly, cron: every day 03:00, zone: Europe/Zurich, runbook: exec, on: all, except: [2026-12-24 to 2026-12-26]}
- {name: each, cron: "@every 1s", zone: UTC, runbook: exec, on: all, except: [2026-12-24 to 2036-12-26]}
`}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := list[0].Schedule()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for at := range s.Ticks(instant(t, "2026-12-22T12:00:00Z")) {
		if got = append(got, at.Format(time.DateTime)); len(got) == 3 {
			break
		}
	}
	want := []string{"2026-12-23 02:00:00", "2026-12-27 02:00:00", "2026-12-28 02:00:00"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if f := s.Fire(instant(t, "2026-12-23T02:00:00Z"), instant(t, "2026-12-25T02:00:05Z")); len(f.Ticks) != 0 ||
		!f.Next.Equal(instant(t, "2026-12-27T02:00:00Z")) {
		t.Errorf("on a day that is left out: %+v", f)
	}
	if each, err := list[1].Schedule(); err != nil {
		t.Error(err)
	} else if at, _ := first(each.Ticks(instant(t, "2026-12-24T12:00:00Z"))); at.Format(time.DateOnly) != "2036-12-27" {
		t.Errorf("the first tick behind ten years is %s", at)
	}
	if d := list[0].Differences(Entry{}); !slices.Contains(d, "except: (none) → 2026-12-24 to 2026-12-26") {
		t.Errorf("differences: %v", d)
	}
	if list[0].SameTimes(Entry{Cron: list[0].Cron, Zone: list[0].Zone, Gap: "first", Fold: "first", Enabled: true}) {
		t.Error("it is due at the same times as one without except")
	}
}
