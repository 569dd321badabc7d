package inner

import (
	"encoding/json"
	"slices"
	"time"

	"muster/events"
	"muster/fleet"
	"muster/ingress"
	"muster/internal/wording"
)

// The kinds of muster's own events.
const (
	TaskEnded    = "task-ended"    // every job of a task has its outcome
	GroupFrozen  = "group-frozen"  // what a job did to a redundancy group is not known
	WindowMissed = "window-missed" // jobs have expired that waited for a window
	HostAdded    = "host-added"    // in the inventory
	HostChanged  = "host-changed"
	HostRemoved  = "host-removed"
	FactChanged  = "fact-changed" // a host reported another value than before
)

// Kinds returns all kinds.
func Kinds() []string { return slices.Concat(OfWork(), OfHosts(), []string{FactChanged}) }

// OfWork returns the kinds of events that come of work.
func OfWork() []string { return []string{TaskEnded, GroupFrozen, WindowMissed} }

// OfHosts returns the kinds of events that come of the inventory.
func OfHosts() []string { return []string{HostAdded, HostChanged, HostRemoved} }

// A Told is one of muster's own events.
type Told struct {
	events.Event // without a number
	Class        ingress.Class
}

// The bounds of an event.
const (
	// namesMax bounds the hosts that an event names. An event of more names none: a trigger must not
	// take a part of them for all.
	namesMax = 500
	noteMax  = 500 // bytes
)

// of names the kind, the customer and the time of an event.
type of struct {
	kind, customer string
	at             time.Time
}

// told makes an event. what tells the happening from others of its kind.
func told(o of, body any, what ...string) Told {
	kind := o.kind
	// The bodies are texts, numbers, and lists and maps of them: no error is possible.
	text, _ := json.Marshal(body)
	class := ingress.Result
	if !slices.Contains(OfWork(), kind) {
		class = ingress.Trigger // many may come at once, and nobody's work ends by them
	}
	id := ingress.IDOf(append([]string{events.Own, kind}, what...)...)
	return Told{events.Event{ID: id, Source: events.Own, Kind: kind, Customer: o.customer, At: o.at,
		Body: text}, class}
}

// A Find returns a host of the inventory in force.
type Find func(name string) (fleet.Host, bool)

// customers returns the customers of some hosts, and the one to whom all of them belong; empty: the
// hosts belong to several, or it is not known of one.
func customers(names []string, find Find) (all []string, one string) {
	known := true
	for _, name := range names {
		h, there := find(name)
		if !there || h.Customer == "" {
			known = false
		} else if !slices.Contains(all, h.Customer) {
			all = append(all, h.Customer)
		}
	}
	slices.Sort(all)
	if known && len(all) == 1 {
		one = all[0]
	}
	return all, one
}

// few returns names if an event may name so many hosts.
func few(names []string) []string {
	if len(names) > namesMax {
		return nil
	}
	return names
}

func note(text string) string { return wording.OneLine(text, noteMax) }
