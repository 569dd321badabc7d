package windows

import (
	"iter"
	"slices"
)

// Agreed holds all windows, freezes and approvals.
type Agreed struct {
	Windows   []Window // names are unique
	Freezes   []Freeze // names are unique
	Approvals []Approval

	// Doubts lists what may surprise the author of an entry: events that do not open a window
	// because it is not clear that they were meant to, and texts that have another meaning than some
	// expect. Its keys are "window NAME" and "freeze NAME".
	Doubts map[string][]string
}

// Book answers questions about windows, freezes and approvals. It is safe for concurrent use.
type Book struct {
	agreed  Agreed
	windows map[Scope][]*entry
	freezes map[Scope][]*Freeze
	known   Known
}

// An entry is a window with the approvals of its present form.
type entry struct {
	Window
	hash      string
	approvals []Approval
	asks      bool            // the customers of its hosts have to approve it
	ever      map[string]bool // customers who approved it once; "" if the window names its own
}

// NewBook returns a book of a. The caller must not change the data of a any more.
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

// Known returns what the files say of which the book was made.
func (b *Book) Known() Known { return b.known }

// Agreed returns the windows, freezes and approvals of the book.
func (b *Book) Agreed() Agreed { return b.agreed }

// Window returns the window of that name.
func (b *Book) Window(name string) (Window, bool) {
	i := slices.IndexFunc(b.agreed.Windows, func(w Window) bool { return w.Name == name })
	if i < 0 {
		return Window{}, false
	}
	return b.agreed.Windows[i], true
}

// Explanation says which windows apply to a place, and why.
type Explanation struct {
	Level   Level    // of the windows that apply; Everyone: none does
	Windows []Window // windows that apply
	Hidden  []Window // windows that would apply if there were none of a more special level
	// windows that do not apply: they belong to other customers, or this one never approved them
	Others  []Window
	Freezes []Freeze // freezes for the place, whether they are on or not
}

// Explain finds the windows of a place. Only windows of the most special level apply: a host with
// a window of its own is not open in the window of its customer. Windows for other customers hide
// none.
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

// holding returns the windows that apply to a place.
func (b *Book) holding(p Place) []*entry {
	for s := range p.scopes() {
		if hold, _ := b.entriesAt(s, p.Customer); len(hold) > 0 {
			return hold
		}
	}
	return nil
}

// freezesOf yields the freezes for a place.
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
