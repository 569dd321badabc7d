package windows

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// manyEvents returns a calendar of daily events since 2020, each at a minute of its own.
func manyEvents(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "BEGIN:VEVENT\nUID:e%d\nDTSTART;TZID=Europe/Zurich:202001%02dT%02d%02d00\n"+
			"DURATION:PT30M\nRRULE:FREQ=DAILY\nEND:VEVENT\n", i, i%28+1, i/60%24, i%60)
	}
	return calendarOf(b.String())
}

// manyCustomers returns a timetable of customers with a window each, of a calendar of their own.
func manyCustomers(customers, events int) Timetable {
	t := Timetable{Version: 1}
	text := "windows:\n"
	for c := range customers {
		text += fmt.Sprintf("- {name: w%d, customer: c%d, zone: Europe/Zurich, ics: c%d.ics, approval: none}\n",
			c, c, c)
		t.Attached = append(t.Attached, File{fmt.Sprintf("c%d.ics", c), manyEvents(events)})
	}
	t.Files = []File{{"w.yaml", text}}
	return t
}

// Measures the cost of a worker's decision: it reads the entries for its host's customer, and
// decides.
//
// go test -run '^$' -bench AWorkerReads ./windows
func BenchmarkAWorkerReads1000EventsOfItsCustomer(b *testing.B) {
	book, err := manyCustomers(100, eventsMax).Book()
	if err != nil {
		b.Fatal(err)
	}
	texts, err := book.Excerpts()
	if err != nil {
		b.Fatal(err)
	}
	place := Place{Host: "fw1", Customer: "c7"}
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for b.Loop() {
		x, err := ReadExcerpt(texts["customer c7"])
		if err != nil {
			b.Fatal(err)
		}
		v := BookOf(x).Admit(place, now, Work{Window: true, Estimate: 20 * time.Minute})
		if !v.OK {
			b.Fatal(v.Why)
		}
	}
	b.ReportMetric(float64(len(texts["customer c7"])), "bytes")
}

// Measures the cost of a new version for a server, and for a worker that finds no excerpts.
func BenchmarkATimetableOf1000EventsIsRead(b *testing.B) {
	t := manyCustomers(1, eventsMax)
	for b.Loop() {
		if _, err := t.Book(); err != nil {
			b.Fatal(err)
		}
	}
}

// fill sets each part of a value to something other than its zero value.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *Zone:
		*x = zone(t, "Europe/Zurich")
		return
	case *Recurrence:
		*x = recurrence(t, "0 2 * * SUN")
		return
	case *time.Time:
		*x = instant(t, "2026-11-22T01:00:00Z")
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				fill(t, v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(7)
	default:
		t.Fatalf("%s: how is it filled, and kept?", v.Type())
	}
}

var alike = cmp.Options{
	cmp.Comparer(func(a, b Zone) bool { return a.String() == b.String() }),
	cmp.Comparer(func(a, b Recurrence) bool { return a == b }),
}

// Workers decide by excerpts, so they would miss a new field of a window, a freeze or an event
// that excerpts leave out.
func TestAnExcerptSaysAllThatIsAgreed(t *testing.T) {
	t.Parallel()
	var x Excerpt
	fill(t, reflect.ValueOf(&x).Elem())
	x.Zones = nil
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadExcerpt(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&x, got, alike); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	newer := strings.Replace(string(text), `"windows":[{`, `"windows":[{"Unless":"full moon",`, 1)
	if _, err := ReadExcerpt([]byte(newer)); err == nil {
		t.Error("what a newer muster wrote is taken, without what it says")
	}
}

// An excerpt has to hold all that a book computes for a window.
func TestAnExcerptSaysAllThatABookKnowsOfAWindow(t *testing.T) {
	t.Parallel()
	var got []string
	for f := range reflect.TypeFor[entry]().NumField() {
		got = append(got, reflect.TypeFor[entry]().Field(f).Name)
	}
	want := []string{"Window", "hash", "approvals", "asks", "ever"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("keep it in Approvable, too (-want +got):\n%s", d)
	}
}

// A worker with the excerpts of its place decides as the server does with all entries.
func TestExcerptsDecideAsTheWhole(t *testing.T) {
	t.Parallel()
	table := Timetable{Version: 1, Files: []File{{"w.yaml", example}, {"o.yaml", "windows:\n" +
		"- {name: own, customer: other, zone: UTC, ics: outlook.ics, approval: none}\nfreezes:\n" +
		"- {name: all, zone: UTC, from: 2026-12-24, until: 2026-12-27, reason: x}\n" +
		"- {name: busy, customer: other, zone: UTC, ics: outlook.ics}\n"}},
		Attached: []File{{"acme.ics", calendar}, {"outlook.ics", outlook}}}
	table.Files = append(table.Files, File{"s.yaml", "windows:\n" +
		"- {name: site, site: zrh1, zone: UTC, start: '0 1 * * *', length: 4h, approval: required}\n" +
		"- {name: off, site: zrh1, zone: UTC, start: '0 6 * * *', length: 4h, approval: required}\n"})
	book, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"site", "off", "own"} {
		w, ok := book.Window(name)
		if !ok {
			t.Fatal(name)
		}
		a := Approval{ID: name, Window: name, Hash: w.Hash(), Customer: "acme", From: unix(0),
			Until: unix(1_830_000_000)}
		if name == "off" {
			a.Hash = "older"
		}
		table.Approvals = append(table.Approvals, a)
	}
	if book, err = table.Book(); err != nil {
		t.Fatal(err)
	}
	texts, err := book.Excerpts()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := Place{Host: rapid.SampledFrom([]string{"fw001", "fw002"}).Draw(t, "host"),
			Group:    rapid.SampledFrom([]string{"", "pair-1"}).Draw(t, "group"),
			Site:     rapid.SampledFrom([]string{"", "zrh1"}).Draw(t, "site"),
			Customer: rapid.SampledFrom([]string{"acme", "other", "nobody"}).Draw(t, "customer")}
		var parts []*Excerpt
		for s := range p.Scopes() {
			if text := texts[s.String()]; text != nil {
				x, err := ReadExcerpt(text)
				if err != nil {
					t.Fatal(err)
				}
				parts = append(parts, x)
			}
		}
		at := unix(rapid.Int64Range(1_790_000_000, 1_860_000_000).Draw(t, "at"))
		work := Work{Runbook: "firmware", Window: true,
			Estimate: time.Duration(rapid.IntRange(0, 200).Draw(t, "minutes")) * time.Minute}
		for _, work.Override = range []string{"", "x"} {
			if d := cmp.Diff(book.Admit(p, at, work), BookOf(parts...).Admit(p, at, work)); d != "" {
				t.Fatalf("%+v at %s (-whole +excerpts):\n%s", p, at, d)
			}
		}
	})
}

// Entries that cost every worker too much are refused when they are applied.
func TestCalendarsThatCostTooMuchAreRefused(t *testing.T) {
	t.Parallel()
	table := manyCustomers(3, eventsMax)
	table.Files[0].Content = strings.NewReplacer("customer: c0", "customer: c", "customer: c1", "customer: c",
		"customer: c2", "customer: c").Replace(table.Files[0].Content)
	_, err := Parse(table.Files, table.Attached)
	want := "w.yaml:2: 3000 windows, freezes and events of calendars for customer c (window w0, window w1, window w2)"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := table.Book(); err != nil {
		t.Errorf("what was taken once: %v", err)
	}
}

// The search for time for work that never fits is bounded, however many events there are.
func TestWhatNeverFitsIsNotSearchedForEver(t *testing.T) {
	t.Parallel()
	book, err := manyCustomers(1, eventsMax).Book()
	if err != nil {
		t.Fatal(err)
	}
	p, now := Place{Host: "fw1", Customer: "c0"}, instant(t, "2026-11-22T03:00:00Z")
	n := 0
	for range book.growing(p, now, "") {
		n++
	}
	v := book.Admit(p, now, Work{Window: true, Estimate: 30 * 24 * time.Hour})
	if n > occurrencesMax || v.OK || !strings.Contains(v.Why, "or 20000 occurrences") {
		t.Errorf("%d looks; %+v", n, v)
	}
}
