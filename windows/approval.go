package windows

import (
	"iter"
	"slices"
	"time"
)

// Approval is the consent of a customer to a window as it was then, for a time or for occurrences.
type Approval struct {
	ID     string    `json:"id"`
	Window string    `json:"window"`
	Hash   string    `json:"hash"` // hash of the window that was approved, see [Window.Hash]
	By     string    `json:"by"`   // the person who approved
	For    string    `json:"for,omitempty"`
	At     time.Time `json:"at"`
	// Customer limits the approval to hosts of this customer. Empty: to those of the customer that
	// the window names, or else to hosts without a customer.
	Customer string `json:"customer,omitempty"`
	Ref      string `json:"reference,omitempty"` // ticket or mail, for people

	// The approval covers the occurrences that begin at From or later and end at Until or before; or
	// the occurrences that begin at Starts.
	From   time.Time   `json:"from,omitzero"`
	Until  time.Time   `json:"until,omitzero"`
	Starts []time.Time `json:"starts,omitempty"`

	// Voided is the time from which on the approval is void, for ever. Zero: it is valid, or nobody
	// has marked it since the window was changed, see [Timetable.Settle].
	Voided  time.Time `json:"voided,omitzero"`
	VoidWhy string    `json:"void_why,omitempty"`
}

// covers reports whether the approval covers an occurrence of its window.
func (a Approval) covers(o Occurrence) bool {
	if len(a.Starts) > 0 {
		return slices.ContainsFunc(a.Starts, o.Start.Equal)
	}
	return !o.Start.Before(a.From) && !o.End.After(a.Until)
}

// Void returns the approvals that match no window as it is now: their windows changed since.
func (b *Book) Void() []Approval {
	good := map[string]bool{}
	for _, entries := range b.windows {
		for _, e := range entries {
			for _, a := range e.approvals {
				good[a.ID] = true
			}
		}
	}
	var void []Approval
	for _, a := range b.agreed.Approvals {
		if !good[a.ID] {
			void = append(void, a)
		}
	}
	return void
}

// Approved is an occurrence with the approval that covers it.
type Approved struct {
	Occurrence
	Approval string // id of the approval; empty: no approval covers it, or it needs none
	OK       bool
}

// Occurrences yields the occurrences of a window that end after from, each with its approval. It
// yields none if the book has no window of that name.
func (b *Book) Occurrences(name string, from time.Time) iter.Seq[Approved] {
	for _, entries := range b.windows {
		for _, e := range entries {
			if e.Name == name {
				return e.occurrences(from)
			}
		}
	}
	return func(func(Approved) bool) {}
}

// usable yields the occurrences in which work may be done. If the customer has to approve, it
// searches only between the first and the last approved time.
func (e *entry) usable(from time.Time) iter.Seq[Approved] {
	if !e.Approval {
		return e.occurrences(from)
	}
	var first, last time.Time
	for i, a := range e.approvals {
		begin, end := a.From, a.Until
		if len(a.Starts) > 0 {
			begin = slices.MinFunc(a.Starts, time.Time.Compare)
			end = slices.MaxFunc(a.Starts, time.Time.Compare)
		}
		if i == 0 || begin.Before(first) {
			first = begin
		}
		last = later(last, end)
	}
	return func(yield func(Approved) bool) {
		if len(e.approvals) == 0 {
			return
		}
		for x := range e.occurrences(later(from, first)) {
			if x.Start.After(last) || x.OK && !yield(x) {
				return
			}
		}
	}
}

func (e *entry) occurrences(from time.Time) iter.Seq[Approved] {
	return func(yield func(Approved) bool) {
		for o := range e.Occurrences(from) {
			x := Approved{Occurrence: o, OK: !e.Approval}
			for _, a := range e.approvals {
				if a.covers(o) {
					x.Approval, x.OK = a.ID, true
					break
				}
			}
			if !yield(x) {
				return
			}
		}
	}
}
