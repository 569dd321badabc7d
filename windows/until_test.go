package windows

import (
	"slices"
	"strings"
	"testing"
)

const untilFile = `windows:
  - name: plain # to the last day of the year
    customer: acme
    zone: Europe/Zurich
    start: "0 2 * * *"
    length: 2h
    until: 2026-12-31   # the 31st is the last day
    approval: none
  - {name: quoted, customer: acme, zone: UTC, start: "0 2 * * *", length: 1h, until: '2026-12-31', approval: none}
  - {name: "ünïcode", customer: acme, zone: UTC, start: "0 2 * * *", length: 1h, approval: none, until: "2026-12-31"}
  - {name: timed, customer: acme, zone: UTC, start: "0 2 * * *", length: 1h, until: 2026-12-31 00:00, approval: none}
  - {name: ever, customer: acme, zone: UTC, start: "0 2 * * *", length: 1h, until: 9999-12-31, approval: none}
freezes:
  - {name: peak, customer: acme, zone: UTC, from: 2026-12-24, until: 2026-12-24, reason: x}
`

// The last day of a window or a freeze is one of it, and it is kept so that no version of muster
// reads it otherwise; lines and comments stay where they were.
func TestUntilIsTheEndOfThatDay(t *testing.T) {
	t.Parallel()
	text := strings.Replace(untilFile, "ünïcode", "unicode", 1)
	text = strings.Replace(text, "customer: acme, zone: UTC, start: \"0 2 * * *\", length: 1h, approval: none, until",
		"runbooks: [\"ü\"], customer: acme, zone: UTC, start: \"0 2 * * *\", length: 1h, approval: none, until", 1)
	table, _, err := Timetable{}.Apply(Application{Files: []File{{"w.yaml", text}}})
	if err != nil {
		t.Fatal(err)
	}
	book, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	if len(book.Agreed().Outdated) != 0 {
		t.Errorf("outdated: %v", book.Agreed().Outdated)
	}
	fresh, err := Parse([]File{{"w.yaml", text}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(fresh.items(), book.Agreed().items()) {
		t.Errorf("what is kept is not what was read:\n%v\n%v", fresh.items(), book.Agreed().items())
	}
	for name, want := range map[string]string{"plain": "2027-01-01 00:00", "quoted": "2027-01-01 00:00",
		"unicode": "2027-01-01 00:00", "timed": "2026-12-31 00:00", "ever": "9999-12-31 23:59:59"} {
		if w, _ := book.Window(name); w.Until.String() != want {
			t.Errorf("%s: until %s, want %s", name, w.Until, want)
		}
	}
	if f := book.Agreed().Freezes[0]; !f.Holds(instant(t, "2026-12-24T23:59:00Z")) ||
		f.Holds(instant(t, "2026-12-25T00:00:00Z")) {
		t.Errorf("the freeze of one day is until %s", f.Until)
	}
	kept := table.Files[0].Content
	if strings.Count(kept, "\n") != strings.Count(text, "\n") ||
		!strings.Contains(kept, `    until: "2027-01-01 00:00"   # the 31st is the last day`) {
		t.Errorf("it is kept as\n%s", kept)
	}
	again, _, err := table.Apply(Application{Files: []File{{"w.yaml", text}}})
	if err != nil || !again.SameTexts(table) {
		t.Errorf("the same file is a change: %v\n%s", err, again.Files[0].Content)
	}
}

// What an older muster took ends when it ended, and it is told that it would end later now.
func TestAnUntilThatIsKeptStaysWhatItWas(t *testing.T) {
	t.Parallel()
	table := Timetable{Files: []File{{"w.yaml", strings.Replace(untilFile, "ünïcode", "unicode", 1)}}}
	table.Files[0].Content = strings.Replace(table.Files[0].Content, "from: 2026-12-24", "from: 2026-12-20", 1)
	book, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	if w, _ := book.Window("plain"); w.Until != wall(t, "2026-12-31") {
		t.Errorf("it is until %s", w.Until)
	}
	if f := book.Agreed().Freezes[0]; f.Until != wall(t, "2026-12-24") {
		t.Errorf("the freeze is until %s", f.Until)
	}
	out := book.Agreed().Outdated
	for _, name := range []string{"window plain", "window quoted", "freeze peak"} {
		if !strings.Contains(strings.Join(out[name], "; "), "is the first moment of that day, as an older muster read it") {
			t.Errorf("%s: %q", name, out[name])
		}
	}
	if len(out["window timed"]) > 0 {
		t.Errorf("timed: %q", out["window timed"])
	}
	// Other files of the customer leave it what it is.
	next, _, err := table.Apply(Application{Files: []File{{"x.yaml",
		"windows: [{name: quoted, customer: acme, zone: UTC, start: '0 5 * * *', length: 1h, until: 2026-12-31}]"}}})
	if err != nil {
		t.Fatal(err)
	}
	if book, err = next.Book(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"plain": "2026-12-31 00:00", "quoted": "2027-01-01 00:00"} {
		if w, _ := book.Window(name); w.Until.String() != want {
			t.Errorf("%s: until %s, want %s", name, w.Until, want)
		}
	}
	_, _, err = Timetable{}.Apply(Application{Files: []File{{"a.yaml", "windows:\n- {name: q, customer: acme, " +
		"zone: UTC, start: '0 5 * * *', length: 1h,\n  until: &end 2026-12-31}\n"}}})
	if err == nil || !strings.Contains(err.Error(), "a.yaml:3: until: write 2026-12-31 without a tag") {
		t.Errorf("an anchor: %v", err)
	}
}
