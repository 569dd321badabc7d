package stock

import (
	"cmp"
	"errors"
	"slices"

	"muster/fleet"
)

// A Stock is an inventory and its version, which costs something to compute.
type Stock struct {
	*fleet.Inventory
	Version string
}

// ErrNone says that no inventory is configured, and what to do about it.
var ErrNone = errors.New("no inventory is configured, so no host is known: list its files " +
	"under `inventory` in muster.yaml, or in MUSTER_INVENTORY, and start the server again")

// errEmptied refuses a reload after which no host would be known.
var errEmptied = errors.New("no file is listed under `inventory` any more: without one " +
	"no host is known; to do without, start the server again")

// Find returns the hosts with these names, in the order of their names, and the names that the
// inventory does not have.
func (st *Stock) Find(names []string) (hosts []fleet.Host, gone []string) {
	for _, name := range names {
		if h, ok := st.Host(name); ok {
			hosts = append(hosts, h)
		} else {
			gone = append(gone, name)
		}
	}
	slices.SortFunc(hosts, func(a, b fleet.Host) int { return cmp.Compare(a.Name, b.Name) })
	return hosts, gone
}

// labelled returns the same stock with more labels, by host.
func (st *Stock) labelled(labels map[string]map[string]string) *Stock {
	return &Stock{st.WithLabels(labels), st.Version}
}

// Names returns the names of those hosts that a function picks, in their order.
func Names(hosts []fleet.Host, which func(fleet.Host) bool) []string {
	var names []string
	for _, h := range hosts {
		if which(h) {
			names = append(names, h.Name)
		}
	}
	return names
}
