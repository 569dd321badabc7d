package stock

import (
	"context"
	"slices"
	"sync"

	"muster/fleet"
	"muster/server/web"
)

// partsMax bounds the parts that are kept: those of the callers who asked last.
const partsMax = 32

// parts keep the part of the inventory that each caller sees, with the index of its labels.
type parts struct {
	mu   sync.Mutex
	of   *Stock
	list []part // the newest last
}

type part struct {
	view  *web.View
	stock *Stock
}

// seen returns the hosts of an inventory that a view shows; the inventory may be nil. Whatever is
// made of it can name no other host.
func (p *parts) seen(v *web.View, st *Stock) *Stock {
	if st == nil || v.Whole() {
		return st
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of != st {
		p.of, p.list = st, nil
	}
	for _, one := range p.list {
		if one.view.Same(v) {
			return one.stock
		}
	}
	one := part{v, st.only(v)}
	if len(p.list) == partsMax {
		p.list = slices.Delete(p.list, 0, 1)
	}
	p.list = append(p.list, one)
	return one.stock
}

// only returns the part of an inventory that a view shows. Its selectors, groups and suggestions
// know no other host.
func (st *Stock) only(v *web.View) *Stock {
	hosts := slices.DeleteFunc(st.Hosts(), func(h fleet.Host) bool { return !v.Sees(h.Name) })
	inv, err := fleet.New(hosts, st.Limits()...)
	if err != nil { // they were all right among the others
		inv = &fleet.Inventory{}
	}
	return &Stock{inv, st.Version}
}

// Unknown returns the words for a host that the caller does not see, or that is not there: they
// are the same.
func (l *Looker) Unknown(ctx context.Context, host string) (string, error) {
	v, err := l.Scene(ctx, "")
	switch {
	case err != nil:
		return "", err
	case v.Stock == nil:
		return ErrNone.Error(), nil
	}
	return v.Unknown(host), nil
}

// SeenNow returns the hosts of the inventory in force that a view shows; nil: there is none.
func (l *Looker) SeenNow(v *web.View) *Stock { return l.parts.seen(v, l.store.Now()) }
