package windows

import (
	"iter"
	"slices"
)

// Agreed is all that is agreed about times.
type Agreed struct {
	Windows   []Window // names are unique
	Freezes   []Freeze // names are unique
	Approvals []Approval

	// Doubts are what may surprise whoever wrote it: what is not opened because it is not clear
	// that it was meant to be, and what is read in another way than some expect. By "window
	// NAME" and "freeze NAME".
	Doubts map[string][]string
}

// Book answers questions about what is agreed. It does not change; it is safe for
// concurrent use.
type Book struct {
	agreed  Agreed
	windows map[Scope][]*entry
	freezes map[Scope][]*Freeze
}

// An entry is a window with what is approved of it as it is.
type entry struct {
	Window
	hash      string
	approvals []Approval
	asks      bool            // its customers have to approve it
	ever      map[string]bool // customers who approved it once; "" if the window names its own
}

// NewBook returns a book of a. What a points to must not be changed any more.
func NewBook(a Agreed) *Book {
	b := &Book{agreed: a, windows: map[Scope][]*entry{}, freezes: map[Scope][]*Freeze{}}
	for _, w := range a.Windows {
		e := &entry{Window: w, hash: w.Hash(), asks: w.Approval, ever: map[string]bool{}}
		for _, approval := range a.Approvals {
			if approval.Window == w.Name {
				e.ever[approval.Customer] = true
			}
			if approval.Window == w.Name && approval.Voided.IsZero() && approval.Hash == e.hash {
				e.approvals = append(e.approvals, approval)
			}
		}
		b.windows[w.For] = append(b.windows[w.For], e)
	}
	for i := range a.Freezes {
		f := &a.Freezes[i]
		b.freezes[f.For] = append(b.freezes[f.For], f)
	}
	return b
}

// Agreed is what the book is of.
func (b *Book) Agreed() Agreed { return b.agreed }

// Window returns the one of that name.
func (b *Book) Window(name string) (Window, bool) {
	i := slices.IndexFunc(b.agreed.Windows, func(w Window) bool { return w.Name == name })
	if i < 0 {
		return Window{}, false
	}
	return b.agreed.Windows[i], true
}

// Explanation says which windows hold for a place, and why.
type Explanation struct {
	Level   Level    // of the windows that hold; Everyone: there are none
	Windows []Window // that hold
	Hidden  []Window // that would, were there none of a more special level
	Others  []Window // that do not: they are of other customers, or this one never approved them
	Freezes []Freeze // that are for the place, whether they are on or not
}

// Explain finds the windows of a place. The most special level that has any holds
// alone: a host with a window of its own is not open in its customer's. A window that is not for
// the customer of the place hides none.
func (b *Book) Explain(p Place) Explanation {
	var e Explanation
	for s := range p.scopes() {
		hold, rest := b.entriesAt(s, p.Customer)
		for _, w := range rest {
			e.Others = append(e.Others, w.Window)
		}
		for _, w := range hold {
			if len(e.Windows) == 0 || s.Level == e.Level {
				e.Level = s.Level
				e.Windows = append(e.Windows, w.Window)
				continue
			}
			e.Hidden = append(e.Hidden, w.Window)
		}
	}
	for f := range b.freezesOf(p) {
		e.Freezes = append(e.Freezes, *f)
	}
	return e
}

// holding are the windows that hold for a place.
func (b *Book) holding(p Place) []*entry {
	for s := range p.scopes() {
		if hold, _ := b.entriesAt(s, p.Customer); len(hold) > 0 {
			return hold
		}
	}
	return nil
}

// freezesOf are the freezes that are for a place.
func (b *Book) freezesOf(p Place) iter.Seq[*Freeze] {
	return func(yield func(*Freeze) bool) {
		for s := range p.scopes() {
			for _, f := range b.freezes[s] {
				if (f.Customer == "" || f.Customer == p.Customer) && !yield(f) {
					return
				}
			}
		}
	}
}
