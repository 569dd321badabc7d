package windows

import (
	"fmt"
	"testing"
	"time"
)

// An approval stays void for ever, even if the window returns to its earlier form, and even in a
// timetable in which nobody has marked it.
func TestAnApprovalThatIsVoidStaysVoid(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-11-20T12:00:00Z")
	files := func(length string) []File {
		return []File{{"w.yaml", fmt.Sprintf("windows:\n- {name: a, customer: acme, zone: UTC, start: '0 2 * * *', "+
			"length: %s}\n", length)}}
	}
	book := func(table Timetable) *Book {
		t.Helper()
		b, err := table.Book()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	settle := func(was, is Timetable) Timetable {
		t.Helper()
		is, next, err := is.Settle(book(was), now)
		if err != nil {
			t.Fatal(err)
		}
		if len(next.Void()) != len(book(is).Void()) {
			t.Error("the book is not that of the timetable")
		}
		return is
	}
	first := Timetable{Files: files("59m")}
	w, _ := book(first).Window("a")
	first.Approvals = []Approval{{ID: "x", Window: "a", Hash: w.Hash(), By: "carol", From: now,
		Until: now.Add(100 * 24 * time.Hour)}}
	first = settle(Timetable{}, first)
	open := func(table Timetable) bool {
		return book(table).Admit(acme, now.Add(14*time.Hour), Work{Window: true}).OK
	}
	if !open(first) || !first.Approvals[0].Voided.IsZero() {
		t.Fatalf("what was approved is not open: %+v", first.Approvals)
	}
	for name, between := range map[string][]File{"changed": files("58m"), "taken away": {{"w.yaml", "windows: []"}}} {
		second := first
		second.Files = between
		unmarked := second // somebody changed the window, and did not mark the approval
		second = settle(first, second)
		if a := second.Approvals[0]; !a.Voided.Equal(now) || a.VoidWhy != "window a was "+name || open(second) {
			t.Errorf("%s: the approval is %+v", name, a)
		}
		if !first.Approvals[0].Voided.IsZero() {
			t.Error("the timetable that was there is changed")
		}
		for whose, was := range map[string]Timetable{"marked": second, "unmarked": unmarked} {
			third := was
			third.Files = files("59m")
			if third = settle(was, third); open(third) || third.Approvals[0].Voided.IsZero() {
				t.Errorf("%s, %s, and then it is what it was: the approval is %+v", name, whose, third.Approvals[0])
			}
		}
	}
}
