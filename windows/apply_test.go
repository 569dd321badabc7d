package windows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const acmeFile = `# what acme agreed to
windows:
  - {name: acme-night, customer: acme, zone: UTC, start: "0 2 * * *", length: 1h}
  - name: acme-day   # by word of mouth
    customer: acme
    zone: Europe/Zurich
    start: ["0 12 * * SAT", "0 12 * * SUN"]
    end: "13:00"
  - {name: site, site: zrh1, zone: UTC, start: "0 4 * * *", length: 1h}
freezes:
  - {name: acme-peak, customer: acme, zone: UTC, from: 2026-12-20, until: 2027-01-04, reason: peak}
`

const globexFile = `windows:
- {name: globex-night, customer: globex, zone: UTC, ics: calendar.ics}
`

// names returns the windows and freezes of a timetable.
func (t Timetable) names(test *testing.T) string {
	test.Helper()
	b, err := t.Book()
	if err != nil {
		test.Fatal(err)
	}
	var names []string
	for _, i := range b.agreed.items() {
		_, name, _ := strings.Cut(i.key, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// A file of one customer once removed the windows of all others, without a question.
func TestWhatFilesDoNotNameStays(t *testing.T) {
	t.Parallel()
	ics := []File{{"calendar.ics", calendar}}
	apply := func(t *testing.T, to Timetable, p Pruning, text string) (Timetable, Applied) {
		t.Helper()
		next, did, err := to.Apply(Application{Files: []File{{"w.yaml", text}}, Pruning: p})
		if err != nil {
			t.Fatal(err)
		}
		return next, did
	}
	both := Timetable{Version: 7}
	both, _, err := both.Apply(Application{Files: []File{{"g.yaml", globexFile}}, Attached: ics})
	if err != nil {
		t.Fatal(err)
	}
	both, _ = apply(t, both, Pruning{}, acmeFile)
	const all = "acme-day acme-night acme-peak globex-night site"
	if got := both.names(t); got != all {
		t.Fatalf("of both there is %s", got)
	}
	if again, _ := apply(t, both, Pruning{}, acmeFile); !again.SameTexts(both) {
		t.Errorf("the same files are a change: %+v", again)
	}
	const night = `windows: [{name: acme-night, customer: acme, zone: UTC, start: "0 3 * * *", length: 1h}]`
	const shared = `windows: [{name: site2, site: zrh1, zone: UTC, start: "0 3 * * *", length: 1h}]`
	for _, test := range []struct {
		name string
		Pruning
		text string
		want string
		left []string
	}{
		{"changed", Pruning{}, night, all, []string{"freeze acme-peak", "window acme-day"}},
		{"and pruned", Pruning{Prune: true}, night, "acme-night globex-night site", nil},
		{"of none", Pruning{Prune: true}, shared, "acme-day acme-night acme-peak globex-night site2", nil},
		{"another's", Pruning{Customers: []string{"globex"}}, night, "acme-day acme-night acme-peak site",
			[]string{"freeze acme-peak", "window acme-day"}},
		{"nothing but pruned", Pruning{Customers: []string{"acme"}}, "windows: []", "globex-night site", nil},
		{"all", Pruning{All: true}, night, "acme-night", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			next, did := apply(t, both, test.Pruning, test.text)
			if got := next.names(t); got != test.want || !slices.Equal(did.Left, test.left) {
				t.Errorf("there is %s, want %s; left are %q, want %q", got, test.want, did.Left, test.left)
			}
			if got := both.names(t); got != all {
				t.Errorf("the timetable that was there has %s", got)
			}
		})
	}
}

// Entries that stay of a file keep their approvals, and the comments that people wrote beside
// them.
func TestWhatStaysOfAFileIsNotChanged(t *testing.T) {
	t.Parallel()
	var table Timetable
	table, _, err := table.Apply(Application{Files: []File{{"w.yaml", acmeFile}}})
	if err != nil {
		t.Fatal(err)
	}
	was, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	table, _, err = table.Apply(Application{Files: []File{{"x.yaml",
		`windows: [{name: acme-night, customer: acme, zone: UTC, start: "0 3 * * *", length: 1h}]`}}})
	if err != nil {
		t.Fatal(err)
	}
	is, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	want := Change{Added: []string{}, Changed: []string{"window acme-night"}, Removed: []string{}, Void: []string{}}
	if d := cmp.Diff(want, was.Compare(is)); d != "" {
		t.Error(d)
	}
	if !strings.Contains(table.Files[0].Content, "# by word of mouth") {
		t.Errorf("it is\n%s", table.Files[0].Content)
	}
}

func TestWhatCannotBeAppliedIsSaid(t *testing.T) {
	t.Parallel()
	table := Timetable{Files: []File{{"g.yaml", globexFile}, {"w.yaml", acmeFile}},
		Attached: []File{{"calendar.ics", calendar}}}
	for name, test := range map[string]struct {
		Application
		want string
	}{
		"a name of another": {Application{Files: []File{{"n.yaml",
			"windows:\n\n- {name: acme-day, customer: globex, zone: UTC, start: '0 2 * * *', length: 1h}"}}},
			"n.yaml:3: window acme-day is there already, and belongs to customer acme: names are unique"},
		"a calendar of another": {Application{
			Files:    []File{{"n.yaml", "windows: [{name: x, customer: acme, zone: UTC, ics: calendar.ics}]"}},
			Attached: []File{{"calendar.ics", strings.Replace(calendar, "T02", "T03", 1) + "\n"}}},
			"calendar.ics: it is in force with another content"},
	} {
		_, _, err := table.Apply(test.Application)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

// Two readers of the same entries get the same basis. A change of these entries changes it, and a
// change of another owner's entries does not.
func TestTheBasisIsOfWhatTheFilesAreAbout(t *testing.T) {
	t.Parallel()
	table := Timetable{Files: []File{{"g.yaml", globexFile}, {"w.yaml", acmeFile}},
		Attached: []File{{"calendar.ics", calendar}}}
	basis := func(t1 Timetable) string {
		_, did, err := t1.Apply(Application{Files: []File{{"n.yaml",
			"windows: [{name: acme-new, customer: acme, zone: UTC, start: '0 5 * * *', length: 1h}]"}}})
		if err != nil {
			t.Fatal(err)
		}
		return did.Basis
	}
	before := basis(table)
	for text, same := range map[string]bool{
		"windows: [{name: g2, customer: globex, zone: UTC, start: '0 5 * * *', length: 1h}]":        true,
		"windows: [{name: acme-day, customer: acme, zone: UTC, start: '0 5 * * *', length: 1h}]":    false,
		"windows: [{name: acme-fourth, customer: acme, zone: UTC, start: '0 5 * * *', length: 1h}]": false,
	} {
		other, _, err := table.Apply(Application{Files: []File{{"o.yaml", text}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := basis(other) == before; got != same {
			t.Errorf("%s: the same basis: %t, want %t", text, got, same)
		}
	}
}

// Entries that stay in force count together with the applied ones, because each worker reads both.
func TestTheLimitIsOfWhatIsInForceThen(t *testing.T) {
	t.Parallel()
	many := func(name string, n int) string {
		text := "windows:\n"
		for i := range n {
			text += fmt.Sprintf("- {name: %s%d, customer: acme, zone: UTC, start: '0 2 * * *', length: 1h}\n", name, i)
		}
		return text
	}
	table, _, err := Timetable{}.Apply(Application{Files: []File{{"a.yaml", many("a", scopeMax-1)}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = table.Apply(Application{Files: []File{{"b.yaml", many("b", 1)}}}); err != nil {
		t.Error(err)
	}
	b := Application{Files: []File{{"b.yaml", many("b", 2)}}}
	want := "b.yaml:2: 2001 windows, freezes and events of calendars for customer acme (window b0, window b1, 1999 of " +
		"them in force already and not in the files): at most 2000"
	if _, _, err = table.Apply(b); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	b.Prune = true
	if _, _, err = table.Apply(b); err != nil {
		t.Errorf("in their place: %v", err)
	}
}
