package calendar

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/jobs"
	"muster/server/stock"
	"muster/server/web"
	"muster/windows"
)

// agreeing is the customer whose approval of a window it is. The window says that, or the
// inventory if only one customer has hosts there; else who approves has to say it.
// Of customers whose hosts are not seen it says nothing.
func agreeing(hosts *stock.Store, w windows.Window, said string, sees func(string) bool) (string,
	error) {
	if its := w.Owner(); its != "" {
		if said != "" && said != its {
			return "", web.Mistake("body.customer", "window %s is of customer %s: %s cannot approve it",
				w.Name, its, web.Clip(said))
		}
		return its, nil
	}
	there := customersOf(hosts, w.For, sees)
	switch {
	case said != "" && len(there) > 0 && !slices.Contains(there, said):
		return "", web.Mistake("body.customer", "customer %s has no host of %s: want %s", web.Clip(said),
			w.For, strings.Join(there, " or "))
	case said != "":
		return said, nil
	case len(there) == 1:
		return there[0], nil
	case len(there) == 0:
		return "", web.Mistake("body.customer", "window %s is for %s, and no host of a customer is "+
			"there: say which customer agrees", w.Name, w.For)
	}
	return "", web.Mistake("body.customer", "window %s is for %s, where %s have hosts: say which of "+
		"them agrees, each has to", w.Name, w.For, strings.Join(there, " and "))
}

// customersOf are those who have hosts of a scope, in order. Hosts without a customer count as
// those of one without a name, and those that are not seen do not count.
func customersOf(hosts *stock.Store, scope windows.Scope, sees func(string) bool) []string {
	st, err := hosts.Get()
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for _, h := range st.Hosts() {
		for one := range jobs.Place(h).Scopes() {
			if one == scope && sees(h.Name) {
				found[h.Customer] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// shared says who has to approve a window, if these are several.
func shared(hosts *stock.Store, w windows.Window) []string {
	if !w.Approval || w.Owner() != "" {
		return nil
	}
	several := customersOf(hosts, w.For, func(string) bool { return true })
	if len(several) < 2 {
		return nil
	}
	return []string{fmt.Sprintf("window %s is for %s, where %s have hosts: it is of no effect for "+
		"hosts of a customer who did not approve it", w.Name, w.For, strings.Join(several, " and "))}
}
