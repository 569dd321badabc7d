package calendar

import (
	"context"
	"slices"

	"muster/jobs"
	"muster/server/web"
	"muster/windows"
)

// A sight has the scopes and the customers of the hosts that a caller sees; nil: all.
type sight struct {
	scopes    map[windows.Scope]bool
	customers map[string]bool
}

// sightOf returns what the caller of a context sees of the times.
func (s Windows) sightOf(ctx context.Context) *sight {
	v := web.ViewOf(ctx)
	if v.Whole() {
		return nil
	}
	see := &sight{map[windows.Scope]bool{}, map[string]bool{}}
	st, err := s.Stock.Get()
	if err != nil {
		return see
	}
	for _, h := range st.Hosts() {
		if !v.Sees(h.Name) {
			continue
		}
		see.customers[h.Customer] = true
		for scope := range jobs.Place(h).Scopes() {
			see.scopes[scope] = true
		}
	}
	return see
}

// Sees reports whether the caller sees a host of a window or a freeze with this scope and owner.
func (s Windows) Sees(ctx context.Context, scope windows.Scope, owner string) bool {
	return s.sightOf(ctx).of(scope, owner)
}

// of reports whether a window or a freeze of a scope, and of an owner, concerns a host that is
// seen.
func (s *sight) of(scope windows.Scope, owner string) bool {
	return s == nil || s.scopes[scope] && (owner == "" || s.customers[owner])
}

// read returns the timetable and its book without the approvals of customers whose hosts the caller
// does not see.
func (s Windows) read(ctx context.Context, see *sight) (windows.Timetable, *windows.Book, error) {
	table, book, err := s.Calendar.Read(ctx)
	if err != nil || see == nil {
		return table, book, err
	}
	table.Approvals = slices.DeleteFunc(slices.Clone(table.Approvals), func(a windows.Approval) bool {
		w, there := book.Window(a.Window)
		customer := a.Customer
		if customer == "" && there {
			customer = w.Owner()
		}
		return !there || !see.of(w.For, w.Owner()) || !see.customers[customer]
	})
	if book, err = table.Book(); err != nil {
		return table, nil, web.Problem(err)
	}
	return table, book, nil
}
