package calendar

import (
	"context"
	"slices"

	"muster/access"
	"muster/jobs"
	"muster/server/stock"
	"muster/server/web"
	"muster/windows"
)

// A deed is an act about the hosts of a scope, or about those of one customer among them.
type deed struct {
	verb     access.Verb
	of       windows.Scope
	customer string // empty: all customers
	hidden   error  // the answer for a caller who sees none of these hosts
}

// refuse returns the answer for a caller who may not do a deed; nil: the caller may.
func (d deed) refuse(ctx context.Context, hosts *stock.Store) error {
	v, act := web.ViewOf(ctx), access.Act{Verb: d.verb}
	if v.May(act) {
		return nil
	}
	st, err := hosts.Get()
	if err != nil {
		return web.Away(err.Error())
	}
	var list []string
	for _, h := range st.Hosts() {
		for scope := range jobs.Place(h).Scopes() {
			if scope == d.of && (d.customer == "" || h.Customer == d.customer) {
				list = append(list, h.Name)
			}
		}
	}
	if !slices.ContainsFunc(list, v.Sees) {
		return d.hidden
	}
	for _, name := range list {
		if !v.Sees(name) {
			return v.RefuseHouse(act)
		}
	}
	return v.Refuse(act, list)
}
