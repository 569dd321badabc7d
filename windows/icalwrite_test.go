package windows

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A calendar that is exported and read again is open at the same times, however the clocks change.
func TestAnExportedCalendarOpensTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("windows:\n- {name: %s, customer: acme, zone: %s, start: %q, %s, fold: %s, approval: none}\n",
			rapid.SampledFrom([]string{"w", strings.Repeat("long-", 40) + "x"}).Draw(t, "name"),
			rapid.SampledFrom([]string{"Europe/Zurich", "UTC", "Pacific/Apia", "Australia/Lord_Howe"}).Draw(t, "zone"),
			rapid.SampledFrom([]string{"0 2 * * SUN", "30 2 * * *", "0 0 1 * *", "0 2,3 * * *"}).Draw(t, "start"),
			rapid.SampledFrom([]string{"length: 20m", "length: 90m", `end: "04:00"`, `end: "00:00"`}).Draw(t, "end"),
			rapid.SampledFrom([]string{"first", "second"}).Draw(t, "fold"))
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 700).Draw(t, "day"))
		openings := func(files, attached []File) []Opening {
			a, err := Parse(files, attached)
			if err != nil {
				t.Fatalf("%v in\n%s", err, attached)
			}
			all := NewBook(a).Openings(acme, from, Work{Window: true}, 1000)
			i := slices.IndexFunc(all, func(o Opening) bool { return o.End.After(from.AddDate(0, 0, 60)) })
			return all[:max(i, 0)]
		}
		was := openings([]File{{"w.yaml", text}}, nil)
		a, err := Parse([]File{{"w.yaml", text}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var list []Approved
		for o := range NewBook(a).Occurrences(a.Windows[0].Name, from) {
			if o.Start.After(from.AddDate(0, 0, 100)) {
				break
			}
			list = append(list, o)
		}
		ics := WriteICal(list, from)
		for line := range strings.SplitSeq(string(ics), "\r\n") {
			if len(line) > 75 {
				t.Fatalf("a line of %d bytes: %s", len(line), line)
			}
		}
		is := openings([]File{{"i.yaml", "windows:\n- {name: i, customer: acme, zone: UTC, ics: a.ics, approval: none}\n"}},
			[]File{{"a.ics", string(ics)}})
		same := func(a, b Opening) bool { return a.Start.Equal(b.Start) && a.End.Equal(b.End) }
		if !slices.EqualFunc(was, is, same) {
			t.Fatalf("it was open %v, and is %v by\n%s", was, is, ics)
		}
	})
}

func TestWhatNobodyApprovedIsTentative(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-11-22T01:00:00Z")
	o := Occurrence{Window: "w", Start: now, End: now.Add(time.Hour)}
	got := string(WriteICal([]Approved{{Occurrence: o}, {Occurrence: o, OK: true}}, now))
	if strings.Count(got, "STATUS:TENTATIVE") != 1 || strings.Count(got, "STATUS:CONFIRMED") != 1 {
		t.Errorf("it is\n%s", got)
	}
}
