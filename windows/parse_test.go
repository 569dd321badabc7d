package windows

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const example = `
windows:
  - name: acme-sunday
    customer: acme
    zone: Europe/Zurich
    start: "0 2 * * SUN"
    end: "04:00"
    cutoff: 15m
    from: 2026-01-01
    until: 2027-12-31
    gap: skip
    fold: second
    runbooks: [firmware, reboot]
    at_end: stop_at_safe_point
    on_change: cancel
    approval: none
  - {name: nights, site: zrh1, zone: UTC, start: ["0 22 * * *", "0 0 * * *"], length: 90m}
  - {name: once, host: fw001, zone: UTC, dates: ["2026-12-24 22:00", 2026-12-26], end: "00:00"}
  - {name: theirs, group: pair-1, zone: Europe/Zurich, ics: acme.ics}
freezes:
  - {name: year-end, customer: acme, zone: Europe/Zurich, from: 2026-12-20, until: 2027-01-04 06:00, reason: peak}
  - {name: incident, zone: UTC, from: 2026-12-01}
`

func TestParse(t *testing.T) {
	t.Parallel()
	a, err := Parse([]File{{"w.yaml", example}}, []File{{"acme.ics", calendar}})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Windows) != 4 || len(a.Freezes) != 2 {
		t.Fatalf("%d windows, %d freezes", len(a.Windows), len(a.Freezes))
	}
	w := a.Windows[0]
	want := Window{
		Name: "acme-sunday", For: Scope{Customer, "acme"}, Zone: w.Zone, Times: w.Times,
		Policy: Policy{GapSkip, FoldSecond}, End: 4 * time.Hour, Cutoff: 15 * time.Minute,
		From: wall(t, "2026-01-01"), Until: wall(t, "2028-01-01"), Runbooks: []string{"firmware", "reboot"},
		AtEnd: StopAtSafePoint, OnChange: CancelJobs,
	}
	if d := cmp.Diff(want, w, cmp.Comparer(func(a, b Zone) bool { return a.String() == b.String() }),
		cmp.Comparer(func(a, b Recurrence) bool { return a == b })); d != "" {
		t.Error(d)
	}
	if n := a.Windows[1]; len(n.Times.Recurrences) != 2 || n.Length != 90*time.Minute || !n.Approval {
		t.Errorf("%+v", n)
	}
	if n := a.Windows[2]; len(n.Times.Dates) != 2 || n.End != 24*time.Hour {
		t.Errorf("%+v", n)
	}
	if n := a.Windows[3]; len(n.Times.Events) == 0 {
		t.Errorf("%+v", n)
	}
	if f := a.Freezes[1]; f.For.Level != Everyone || f.Until != 0 {
		t.Errorf("%+v", f)
	}
	if got := Attachments(File{"w.yaml", example}); !cmp.Equal(got, []string{"acme.ics"}) {
		t.Errorf("attached: %q", got)
	}
}

// All mistakes are reported at once, each with its line.
func TestParseTellsAllMistakes(t *testing.T) {
	t.Parallel()
	_, err := Parse([]File{{"w.yaml", `windows:
  - name: a
    site: zrh1
    group: pair-1
    zone: Europe/Zuerich
    start: ["0 2 * * 7", "TZ=x"]
    end: "25:00"
    cutoff: fast
    colour: red
  - {name: a, customer: -x, zone: UTC, start: "0 2 * * *", end: "04:00"}
  - {zone: UTC, host: b, start: "0 2 * * *", length: 1h, end: "04:00"}
  - {name: c, zone: UTC, start: "0 2 * * *", length: 1}
  - {name: d, host: d, zone: UTC, ics: gone.ics}
  - nonsense
freezes:
  - {name: f, from: 2026-13-01}
  - {name: g, zone: UTC, until: 2026-01-01}
  - {name: h, zone: UTC, from: 2026-01-02, until: 2026-01-01}
`}}, nil)
	if err == nil {
		t.Fatal("taken for good")
	}
	for _, want := range []string{
		`w.yaml:9: unknown key "colour"`, "w.yaml:4: site and group: give one",
		`w.yaml:5: zone "Europe/Zuerich" is not known`, `w.yaml:6: start: weekday "7"`,
		`w.yaml:6: start: "TZ=x": the zone is a field`, `w.yaml:7: end "25:00" is no time`,
		`w.yaml:8: cutoff: "fast": want a time`, "w.yaml:10: window a is there already, at w.yaml:2",
		`w.yaml:10: customer: name "-x"`, "w.yaml:11: a window without a name",
		"w.yaml:12: window c is for nobody", `w.yaml:12: length: "1"`, "w.yaml:13: ics: there is no file gone.ics",
		"w.yaml:14: a window: want a mapping", `w.yaml:16: from: "2026-13-01" is no date`, "w.yaml:16: no zone",
		"w.yaml:17: freeze g never begins", "w.yaml:18: until 2026-01-01 is not after",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
	for _, text := range []string{"", "windows: 7", "[]", "\tx", "windows: [{name: {}}]", "windows:\n- &a [*a]"} {
		if _, err := Parse([]File{{"x.yaml", text}}, nil); err == nil || !strings.Contains(err.Error(), "x.yaml") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example, calendar)
	f.Add("windows: [{name: x, ics: acme.ics, zone: UTC, host: a}]", "BEGIN:VCALENDAR\nEND:VCALENDAR")
	f.Fuzz(func(t *testing.T, text, ics string) {
		a, err := Parse([]File{{"w.yaml", text}}, []File{{"acme.ics", ics}})
		if err != nil {
			return
		}
		book := NewBook(a)
		for _, w := range a.Windows {
			n := 0
			for o := range w.Occurrences(unix(1_790_000_000)) {
				if n++; n > 20 || !o.End.After(o.Start) {
					break
				}
			}
			book.Admit(Place{Host: w.For.Name, Customer: w.For.Name}, unix(1_790_000_000), Work{Window: true})
		}
	})
}

const calendar = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VTIMEZONE\r\nTZID:Our Zone\r\n" +
	"BEGIN:STANDARD\r\nDTSTART:19701025T030000\r\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\r\n" +
	"TZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\n" +
	"BEGIN:DAYLIGHT\r\nDTSTART:19700329T020000\r\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\r\n" +
	"TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n" +
	"BEGIN:VEVENT\r\nUID:1@acme\r\nSUMMARY:Maintenance\\, al\r\n l nodes\r\n" +
	"DTSTART;TZID=Our Zone:20261018T020000\r\nDTEND;TZID=Our Zone:20261018T040000\r\n" +
	"RRULE:FREQ=WEEKLY;BYDAY=SU;UNTIL=20261115T010000Z\r\nEXDATE;TZID=Our Zone:20261101T020000\r\n" +
	"END:VEVENT\r\n" +
	"BEGIN:VEVENT\r\nUID:1@acme\r\nRECURRENCE-ID;TZID=Our Zone:20261108T020000\r\n" +
	"DTSTART;TZID=Our Zone:20261109T020000\r\nDURATION:PT1H30M\r\nEND:VEVENT\r\n" +
	"BEGIN:VEVENT\r\nUID:2@acme\r\nDTSTART;VALUE=DATE:20261224\r\nDTEND;VALUE=DATE:20261227\r\n" +
	"END:VEVENT\r\nEND:VCALENDAR\r\n"

func TestICal(t *testing.T) {
	t.Parallel()
	z := zone(t, "Europe/Zurich")
	events, err := ReadICal([]byte(calendar), z)
	if err != nil {
		t.Fatal(err)
	}
	w := Window{Zone: z, Times: Calendar{Events: events}}
	var got []string
	for o := range w.Occurrences(instant(t, "2026-10-01T00:00:00Z")) {
		got = append(got, o.Start.Format(time.RFC3339)+" "+o.End.Sub(o.Start).String())
	}
	want := []string{
		"2026-10-18T00:00:00Z 2h0m0s",
		"2026-10-25T00:00:00Z 2h0m0s", // the first of the two, and two hours of time
		"2026-11-09T01:00:00Z 1h30m0s",
		"2026-11-15T01:00:00Z 2h0m0s",
		"2026-12-23T23:00:00Z 72h0m0s",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if events[0].Summary != "Maintenance, all nodes" {
		t.Errorf("summary %q", events[0].Summary)
	}
}

func TestICalThatIsWrong(t *testing.T) {
	t.Parallel()
	event := func(lines string) string {
		return "BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + lines + "\nEND:VEVENT\nEND:VCALENDAR\n"
	}
	const start = "DTSTART:20261018T020000Z\n"
	for _, test := range []struct{ text, want string }{
		{"", "no iCalendar file"},
		{"hello", `line 1: "hello": want NAME:value`},
		{"BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR", "line 3: END:VCALENDAR without its BEGIN"},
		{"BEGIN:VCALENDAR\n", "line 1: BEGIN:VCALENDAR without its END"},
		{"BEGIN:VCALENDAR\nEND:VCALENDAR", "there is no event"},
		{event("UID:x"), "line 2: an event without DTSTART"},
		{event("DTSTART:tomorrow"), "line 3: DTSTART: \"tomorrow\" is no time"},
		{event("DTSTART;TZID=Nowhere:20261018T020000\nDURATION:PT1H"), `TZID "Nowhere" is no IANA zone`},
		{event(start), "line 2: an event without DTEND and DURATION"},
		{event(start + "DTEND:20261018T020000Z"), "line 4: DTEND is not after DTSTART"},
		{event(start + "DURATION:2h"), `line 4: duration "2h"`},
		{event(start + "DURATION:PT0S"), `duration "PT0S"`},
		{event(start + "DURATION:PT1H\nRRULE:FREQ=SECONDLY"), "want FREQ=DAILY"},
		{event(start + "DURATION:PT1H\nRRULE:FREQ=DAILY;BYHOUR=0,1,2,3,4;BYMINUTE=0,10,20,30,40,50"), "24 times a day"},
		{event(start + "DURATION:PT1H\nRRULE:nonsense"), "line 5: RRULE"},
		{event(start + "DURATION:PT1H\nEXDATE:x"), "line 5: EXDATE"},
		{event(start + "DURATION:PT1H\nSUMMARY:\xff"), "line 5: not UTF-8"},
		{strings.Repeat("BEGIN:X\n", 20), "more than 8 components"},
	} {
		events, err := ReadICal([]byte(test.text), Zone{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80q: %v, %v; want %q", test.text, events, err, test.want)
		}
	}
	// "/x/Europe/Zurich" is a zone with a prefix that makes it unique.
	if _, err := ReadICal([]byte(event("DTSTART;TZID=/x.org/1/Europe/Zurich:20261018T020000\nDURATION:PT1H")),
		Zone{}); err != nil {
		t.Error(err)
	}
}
