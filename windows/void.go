package windows

import (
	"slices"
	"time"
)

// Void returns the approval, void from a time on, for ever.
func (a Approval) Void(at time.Time, why string) Approval {
	if a.Voided.IsZero() {
		a.Voided, a.VoidWhy = at, why
	}
	return a
}

// Settle returns the timetable with its book. It marks the approvals that are void, by the book
// before or by the new one. A window that is changed back to its earlier form still needs a new
// approval, because nobody knows why it was changed back, and whether the customer has been asked.
func (t Timetable) Settle(before *Book, now time.Time) (Timetable, *Book, error) {
	t.void(before, now)
	next, err := t.Book()
	if err != nil {
		return t, nil, err
	}
	t.Known = next.known
	if t.void(next, now) {
		next, err = t.Book()
	}
	return t, next, err
}

// void marks the approvals that are void by a book, and reports whether there was one to mark.
func (t *Timetable) void(b *Book, now time.Time) bool {
	why := map[string]string{}
	for _, a := range b.Void() {
		if why[a.ID] = "window " + a.Window + " was changed"; !b.has(a.Window) {
			why[a.ID] = "window " + a.Window + " was taken away"
		}
	}
	marked := false
	approvals := slices.Clone(t.Approvals)
	for i, a := range approvals {
		if text, void := why[a.ID]; void && a.Voided.IsZero() {
			approvals[i], marked = a.Void(now, text), true
		}
	}
	t.Approvals = approvals
	return marked
}

func (b *Book) has(window string) bool { _, ok := b.Window(window); return ok }
