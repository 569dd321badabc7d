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

// The last day of a window or a freeze is a part of it, when it is applied and when it is in force;
// the file is kept as it was written.
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
	if kept := table.Files[0].Content; kept != text {
		t.Errorf("it is kept as\n%s", kept)
	}
	again, _, err := table.Apply(Application{Files: []File{{"w.yaml", text}}})
	if err != nil || !again.SameTexts(table) {
		t.Errorf("the same file is a change: %v\n%s", err, again.Files[0].Content)
	}
}
