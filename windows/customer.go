package windows

import (
	"iter"
	"slices"
	"time"
)

// Whose names the hosts for which the window is, as in "site zrh1, customer acme".
func (w Window) Whose() string { return whose(w.For, w.Customer) }

// Whose names the hosts for which the freeze is.
func (f Freeze) Whose() string { return whose(f.For, f.Customer) }

func whose(s Scope, customer string) string {
	if customer == "" {
		return s.String()
	}
	return s.String() + ", " + Scope{Customer, customer}.String()
}

// Owner returns the customer to whom the window belongs; empty: to none.
func (w Window) Owner() string { return owner(w.For, w.Customer) }

// Owner returns the customer to whom the freeze belongs; empty: to none.
func (f Freeze) Owner() string { return owner(f.For, f.Customer) }

func owner(s Scope, customer string) string {
	if s.Level == Customer {
		return s.Name
	}
	return customer
}

// at returns the entry as it applies to the hosts of a customer: with the approvals of that
// customer alone. The entry does not apply if it belongs to another customer, or if this customer
// has to approve it and never did. It applies to a customer who approved it once, even if that
// approval is void or over, because the reason for a special window still exists.
func (e *entry) at(customer string) (*entry, bool) {
	switch {
	case e.Customer != "" && e.Customer != customer:
		return nil, false
	case !e.asks || e.For.Level == Customer:
		return e, true
	case !e.ever[customer] && (e.Customer == "" || !e.ever[""]):
		return nil, false
	}
	others := func(a Approval) bool {
		return a.Customer != customer && (a.Customer != "" || e.Customer == "")
	}
	if !slices.ContainsFunc(e.approvals, others) {
		return e, true
	}
	theirs := *e
	theirs.approvals = slices.DeleteFunc(slices.Clone(e.approvals), others)
	return &theirs, true
}

// entriesAt returns the entries of a scope in two parts: those that apply to the hosts of a
// customer, and the rest.
func (b *Book) entriesAt(s Scope, customer string) (hold, rest []*entry) {
	for _, e := range b.windows[s] {
		if theirs, ok := e.at(customer); ok {
			hold = append(hold, theirs)
			continue
		}
		rest = append(rest, e)
	}
	return hold, rest
}

// unapproved returns a window that would apply to a place if its customer had approved it; or nil.
func (b *Book) unapproved(p Place) *entry {
	for s := range p.scopes() {
		_, rest := b.entriesAt(s, p.Customer)
		for _, e := range rest {
			if e.Customer == "" || e.Customer == p.Customer {
				return e
			}
		}
	}
	return nil
}

// OccurrencesAt yields the occurrences of a window at a place that end after from, each with the
// approval of the customer of that place. It yields none if the window does not apply there.
func (b *Book) OccurrencesAt(p Place, name string, from time.Time) iter.Seq[Approved] {
	for s := range p.scopes() {
		hold, _ := b.entriesAt(s, p.Customer)
		for _, e := range hold {
			if e.Name == name {
				return e.occurrences(from)
			}
		}
	}
	return func(func(Approved) bool) {}
}
