package windows

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"
)

// Times in words equal the times of the RRULE with the same meaning.
func TestWordsComeAsTheirRuleSays(t *testing.T) {
	t.Parallel()
	const clock = ";BYMINUTE=0;BYSECOND=0"
	for _, test := range []struct{ words, start, rule string }{
		{"every day 02:00", "2000-01-01", "FREQ=DAILY;BYHOUR=2"},
		{"daily at 02:00 and 14:00", "2000-01-01", "FREQ=DAILY;BYHOUR=2,14"},
		{"every Sunday 02:00", "2000-01-01", "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2"},
		{"every week on Mon, Thu 02:00", "2000-01-01", "FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=2"},
		{"every weekday at 22:00", "2000-01-01", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=22"},
		{"every weekend 02:00", "2000-01-01", "FREQ=WEEKLY;BYDAY=SA,SU;BYHOUR=2"},
		{"first Sunday 02:00", "2000-01-01", "FREQ=MONTHLY;BYDAY=1SU;BYHOUR=2"},
		{"every first Sunday at 02:00", "2000-01-01", "FREQ=MONTHLY;BYDAY=1SU;BYHOUR=2"},
		{"On the First and Third SUNDAY of the month at 02:00", "2000-01-01",
			"FREQ=MONTHLY;BYDAY=1SU,3SU;BYHOUR=2"},
		{"second Sunday 02:00", "2000-01-01", "FREQ=MONTHLY;BYDAY=2SU;BYHOUR=2"},
		{"every second Sunday of the month 02:00", "2000-01-01", "FREQ=MONTHLY;BYDAY=2SU;BYHOUR=2"},
		{"last Friday 22:00", "2000-01-01", "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=22"},
		{"last Friday of March, Jun and September at 22:00", "2000-01-01",
			"FREQ=MONTHLY;BYMONTH=3,6,9;BYDAY=-1FR;BYHOUR=22"},
		{"last day of the month 23:00", "2000-01-01", "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=23"},
		{"1st and 15th of each month 03:00", "2000-01-01", "FREQ=MONTHLY;BYMONTHDAY=1,15;BYHOUR=3"},
		{"fifth Monday 03:00", "2000-01-01", "FREQ=MONTHLY;BYDAY=5MO;BYHOUR=3"},
		{"every second week on Sunday 02:00 from 2026-01-04", "2026-01-04",
			"FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;BYHOUR=2"},
		{"every other week on Sunday from 2026-01-04 at 02:00", "2026-01-04",
			"FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;BYHOUR=2"},
		{"every second Sunday 02:00 from 2026-01-04", "2026-01-04", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;BYHOUR=2"},
		{"every 3 weeks on Mon and Sun 02:00 from 2026-01-04", "2026-01-04",
			"FREQ=WEEKLY;INTERVAL=3;BYDAY=MO,SU;BYHOUR=2"},
		{"every third day 02:00 from 2026-01-04", "2026-01-04", "FREQ=DAILY;INTERVAL=3;BYHOUR=2"},
		{"every Sunday 02:00 from 2027-01-01", "2027-01-01", "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2"},
	} {
		r, err := ParseRecurrence(test.words)
		if err != nil {
			t.Error(err)
			continue
		}
		o, err := rrule.StrToROption(test.rule + clock)
		if err != nil {
			t.Fatal(err)
		}
		o.Dtstart = time.Unix(int64(wall(t, test.start)), 0).UTC()
		library, err := rrule.NewRRule(*o)
		if err != nil {
			t.Fatal(err)
		}
		from, to := time.Unix(int64(wall(t, "2025-11-01")), 0).UTC(), time.Unix(int64(wall(t, "2029-01-01")), 0).UTC()
		var want, got []Wall
		for _, at := range library.Between(from, to, true) {
			want = append(want, Wall(at.Unix()))
		}
		for w := range r.walls(Wall(from.Unix())) {
			if w > Wall(to.Unix()) {
				break
			}
			got = append(got, w)
		}
		if len(got) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", test.words, got[:min(len(got), 5)], want[:min(len(want), 5)])
		}
	}
}

// Unclear words are refused, with an example of clear ones.
func TestWordsThatAreNotClearAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"first Sunday": "it says no time of the day",
		"Sunday 02:00": `"sunday" is not understood`,
		"every second week on Sunday 02:00": "nobody knows which is the first: say the day on which it comes " +
			"first, as \"from 2026-01-04\"",
		"every second week on Sunday 02:00 from 2026-01-03": "from 2026-01-03 is a Saturday: say a day on which it comes",
		"every second Sunday 02:00": "write \"every second week on sunday … from DATE\", or \"second sunday " +
			"of the month …\"",
		"every second day 02:00":                         "nobody knows which is the first",
		"every other week on Sunday 02:00 from soon":     `from "soon" is no date, as 2026-01-04`,
		"every 60 weeks on Sunday 02:00 from 2026-01-04": "at most 52",
		"first weekday of the month 02:00":               `"weekday" are several days: name them`,
		"first Sonntag 02:00":                            `"sonntag" is no weekday`,
		"first Sunday of Brumaire 02:00":                 `"brumaire" is no month`,
		"every Sunday of March 02:00":                    "of which month is for a day of it",
		"first Sunday 25:00":                             `"25:00" is no time of the day`,
		"first Sunday 2am":                               `"2am" is not understood`,
		"first Sunday 02:00 03:00":                       "it says twice",
		"sixth Sunday 02:00":                             `"sixth" is not understood`,
		"7th Sunday 02:00":                               "no month has 7 of a weekday",
		"32nd of the month 02:00":                        "no month has 32 days",
		"30th of February 02:00":                         "never comes",
		"first Sunday 02:00 TZ=UTC":                      `"tz=utc" is not understood`,
		"every":                                          `"" is no weekday`,
	} {
		_, err := ParseRecurrence(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		} else if !strings.Contains(want, "never") && !strings.Contains(err.Error(), `"every Sunday 02:00"`) {
			t.Errorf("%s: no example: %v", text, err)
		}
	}
	_, err := ParseRecurrence("0 2 * *")
	if err == nil || !strings.Contains(err.Error(), `or words as "first Sunday 02:00"`) {
		t.Errorf("cron text: %v", err)
	}
}

// A window in words behaves like any other: its file is read, it has openings, its excerpt is the
// same, and it follows changes of the clocks like one in cron text.
func TestAWindowInWordsIsOneInEveryWay(t *testing.T) {
	t.Parallel()
	read := func(start string) Window {
		t.Helper()
		a, err := Parse([]File{{"w.yaml", "windows:\n- name: w\n  customer: acme\n  zone: Europe/Zurich\n" +
			"  start: " + start + "\n  end: \"04:00\"\n  approval: none\n"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a.Windows[0]
	}
	from := instant(t, "2026-03-20T00:00:00Z")
	inWords, cron := read("every Sunday 02:00"), read(`"0 2 * * SUN"`)
	if got, want := occurrences(inWords, from, 60), occurrences(cron, from, 60); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	later := read("every second week on Sunday 02:00 from 2090-01-01")
	if got := occurrences(later, from, 1); len(got) != 1 || !strings.HasPrefix(got[0], "2090-01-01T01:00Z") {
		t.Errorf("from 2090: %v", got)
	}
	texts, err := NewBook(Agreed{Windows: []Window{inWords}}).Excerpts()
	if err != nil {
		t.Fatal(err)
	}
	x, err := ReadExcerpt(texts["customer acme"])
	if err != nil || !slices.Equal(occurrences(x.Windows[0].Window, from, 60), occurrences(inWords, from, 60)) {
		t.Errorf("the excerpt differs: %v", err)
	}
	for _, test := range [][2]string{{"fifth Monday 04:00", "not each month has a fifth Monday"},
		{"31st of each month 04:00", "not each month has 31 days"}, {"last day 04:00", ""}} {
		w := read(test[0])
		if got := strings.Join(w.Surprises(from), "; "); !strings.Contains(got, test[1]) || test[1] == "" && got != "" {
			t.Errorf("%s surprises with %q, want %q", test[0], got, test[1])
		}
	}
}

// Whatever the words: their times equal those of the library, or the text is refused with a
// message.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"first Sunday 02:00", "every second week on Sunday 02:00 from 2026-01-04",
		"last Friday of March, September at 22:00", "1st and 15th of each month 03:00, 04:30", "daily 00:00",
		"every weekday and Sunday 02:00", "every 366 days 23:59:59 from 2099-12-31", "on the the first",
		"every last day of Feb 02:00", "fifth Mon of feb 1:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseWords(text)
		if err != nil || len(text) > textMax {
			return
		}
		again, err := parseWords(strings.ToUpper(text))
		if err != nil && strings.EqualFold(strings.ToUpper(text), text) || err == nil &&
			!reflect.DeepEqual(r, again) {
			t.Fatalf("%q in upper case is %+v, %v", text, again, err)
		}
		last, n := Wall(0), 0
		for w := range r.walls(r.Start) {
			if n++; n > 30 {
				break
			}
			if n > 1 && w <= last || w < r.Start || !slices.Contains(r.Times, w.clock()) ||
				r.Weekdays != 0 && r.Weekdays&(1<<w.weekday()) == 0 {
				t.Fatalf("%q: %s after %s", text, w, last)
			}
			last = w
		}
		if n == 0 {
			t.Fatalf("%q never comes", text)
		}
	})
}
