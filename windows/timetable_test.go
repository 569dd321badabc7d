package windows

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTimetable(t *testing.T) {
	t.Parallel()
	at := instant(t, "2026-11-21T12:00:00Z")
	order := FreezeOrder{Name: "outage", Level: "customer", Of: "acme", From: at,
		Until: at.Add(time.Hour), Reason: "INC-7", By: "alice", At: at}
	table := Timetable{Version: 3, Files: []File{{"w.yaml", example}},
		Attached: []File{{"acme.ics", calendar}}, Freezes: []FreezeOrder{order}}
	book, err := table.Book()
	if err != nil {
		t.Fatal(err)
	}
	f, until, frozen := book.Frozen(acme, at)
	if !frozen || f.Name != "outage" || !until.Equal(order.Until) {
		t.Errorf("frozen by %q until %s: %v", f.Name, until, frozen)
	}
	if _, _, frozen := book.Frozen(acme, order.Until); frozen {
		t.Error("frozen at its end")
	}

	for _, test := range []struct {
		change func(*FreezeOrder)
		want   string
	}{
		{func(o *FreezeOrder) { o.Name = "year-end" }, "year-end is there already"},
		{func(o *FreezeOrder) { o.Name = "" }, `name ""`},
		{func(o *FreezeOrder) { o.Level = "planet" }, `level "planet"`},
		{func(o *FreezeOrder) { o.Of = "" }, `name ""`},
		{func(o *FreezeOrder) { o.Until = at }, "is not after"},
	} {
		wrong := order
		test.change(&wrong)
		table.Freezes = []FreezeOrder{wrong}
		if _, err := table.Book(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	book := func(a Agreed) *Book { return NewBook(a) }
	kept, changed, gone := sunday(t), sunday(t), sunday(t)
	changed.Name, gone.Name = "changed", "gone"
	approval := Approval{ID: "a1", Window: "changed", Hash: changed.Hash()}
	stale := Approval{ID: "a0", Window: "changed", Hash: "older"}
	before := book(Agreed{Windows: []Window{kept, changed, gone}, Freezes: []Freeze{{Name: "x"}},
		Approvals: []Approval{approval, stale}})
	changed.Cutoff++
	added := sunday(t)
	added.Name = "added"
	after := book(Agreed{Windows: []Window{kept, changed, added}, Freezes: []Freeze{{Name: "x", From: 1}},
		Approvals: []Approval{approval, stale}})
	want := Change{Added: []string{"window added"}, Changed: []string{"freeze x", "window changed"},
		Removed: []string{"window gone"}, Void: []string{"a1"},
		Voided: []Voided{{Approval: "a1", Window: "changed"}}}
	if d := cmp.Diff(want, before.Compare(after)); d != "" {
		t.Error(d)
	}
	if c := after.Compare(after); c.Any() {
		t.Errorf("nothing changed, and %v", c)
	}
}
