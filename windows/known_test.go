package windows

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Whatever was read before, a timetable says the same as if nobody had read any of it: its entries,
// its mistakes with their lines, what an application of files makes of it.
func TestWhatIsKnownChangesNoAnswer(t *testing.T) {
	t.Parallel()
	text := func(t *rapid.T, label string) string {
		var b strings.Builder
		b.WriteString("windows:\n")
		for range rapid.IntRange(1, 3).Draw(t, label+" windows") {
			fmt.Fprintf(&b, "- {name: w%d, customer: acme, zone: UTC, start: '0 2 * * *', length: %dh%s}\n",
				rapid.IntRange(1, 8).Draw(t, label+" name"), rapid.IntRange(0, 3).Draw(t, label+" length"),
				rapid.SampledFrom([]string{"", "", ", except: [2026-12-24]"}).Draw(t, label+" more"))
		}
		if rapid.Bool().Draw(t, label+" freezes") {
			b.WriteString("freezes:\n- {name: f, customer: acme, zone: UTC" +
				rapid.SampledFrom([]string{", from: 2026-12-20", ", ics: acme.ics"}).Draw(t, label+" freeze") + "}\n")
		}
		return b.String()
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) File {
			return File{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label), text(t, label)}
		}
		fresh, knowing := Timetable{}, Timetable{}
		for i := range rapid.IntRange(1, 6).Draw(t, "applies") {
			attached := []File{{"acme.ics", strings.ReplaceAll(calendar, "20261227", fmt.Sprint(20261225+i))}}
			a := Application{Files: []File{draw(fmt.Sprint("file ", i))}, Attached: attached,
				Pruning: Pruning{Prune: rapid.Bool().Draw(t, "prune")}}
			if rapid.Bool().Draw(t, "removes") {
				a.Remove = []string{"window w1"}
			}
			fresh.Known = nil
			one, did, err := fresh.Apply(a)
			two, also, other := knowing.Apply(a)
			if diff := cmp.Diff([]any{one.Files, one.Attached, did, fmt.Sprint(err)},
				[]any{two.Files, two.Attached, also, fmt.Sprint(other)}); diff != "" {
				t.Fatalf("applied: %s", diff)
			}
			if err != nil {
				continue
			}
			now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			known := two.Known
			one.Known = nil
			one, book, err := one.Settle(NewBook(Agreed{}), now)
			two, again, other := two.Settle(NewBook(Agreed{}), now)
			if fmt.Sprint(err) != fmt.Sprint(other) {
				t.Fatalf("%v, and %v", err, other)
			}
			if err != nil {
				continue
			}
			if !reflect.DeepEqual(book.agreed, again.agreed) {
				t.Fatalf("settled: %+v\nand %+v", book.agreed, again.agreed)
			}
			for f := range known {
				if strings.Contains(f.Content, "ics") {
					t.Fatalf("what %q says is taken for known, and its calendar may change", f.Content)
				}
			}
			fresh, knowing = one, two
		}
	})
}

// Of many files, those that were read before are not read again.
func TestFilesAreReadOnce(t *testing.T) {
	t.Parallel()
	var table Timetable
	file := func(i, length int) File {
		return File{fmt.Sprint("f", i), fmt.Sprintf("windows:\n- {name: w%d, customer: acme, zone: UTC, "+
			"start: '0 2 * * *', length: %dh}\n", i, length)}
	}
	for i := range 50 {
		table.Files = append(table.Files, file(i, 1))
	}
	book, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	table.Known = book.Known()
	next, _, err := table.Apply(Application{Files: []File{file(7, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := next.Known[file(7, 2)]; !known || len(next.Known) != 50 {
		t.Errorf("%d files are known", len(next.Known))
	}
	// A file that says what it does not say was not read.
	next.Known = Known{file(0, 1): next.Known[file(7, 2)]}
	next.Files = []File{file(0, 1), file(1, 1)}
	book, err = next.Book()
	if err != nil {
		t.Fatal(err)
	}
	if _, is := book.Window("w7"); !is || len(book.agreed.Windows) != 2 {
		t.Errorf("the book has %+v", book.agreed.Windows)
	}
}
