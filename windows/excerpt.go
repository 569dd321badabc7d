package windows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An Excerpt holds the windows, freezes and approvals for one [Scope] in a form that needs no
// parsing. A worker that decides about a host loads the excerpts of its place only, so the entries
// of other customers cost it no time.
type Excerpt struct {
	Windows []Approvable `json:"windows,omitempty"`
	Freezes []Freeze     `json:"freezes,omitempty"`

	// Zones are the zones that a calendar file defines itself. Events name them as "#0".
	Zones [][]zoneSpan `json:"zones,omitempty"`
}

// Approvable is a window with the approvals of its present form.
type Approvable struct {
	Window
	Hash      string     `json:"hash"`
	Approvals []Approval `json:"approvals,omitempty"`
	Ever      []string   `json:"ever,omitempty"` // customers who approved it once, see [entry]
}

// A zoneSpan is a [span] in the form that is kept.
type zoneSpan [3]int64

// Excerpts returns the excerpts of all scopes for which the book has an entry, by [Scope.String].
func (b *Book) Excerpts() (map[string][]byte, error) {
	all := map[string]*Excerpt{}
	of := func(s Scope) *Excerpt {
		if all[s.String()] == nil {
			all[s.String()] = &Excerpt{}
		}
		return all[s.String()]
	}
	for scope, entries := range b.windows {
		x := of(scope)
		for _, e := range entries {
			w := e.Window
			w.Times.Events = x.lend(w.Times.Events)
			x.Windows = append(x.Windows, Approvable{Window: w, Hash: e.hash, Approvals: e.approvals,
				Ever: slices.Sorted(maps.Keys(e.ever))})
		}
	}
	for scope, freezes := range b.freezes {
		x := of(scope)
		for _, f := range freezes {
			lent := *f
			lent.Events = x.lend(lent.Events)
			x.Freezes = append(x.Freezes, lent)
		}
	}
	texts := make(map[string][]byte, len(all))
	for scope, x := range all {
		var err error
		if texts[scope], err = json.Marshal(x); err != nil {
			return nil, fmt.Errorf("%s: %w", scope, err)
		}
	}
	return texts, nil
}

// lend returns the events with numbers in place of zones that no name identifies; the excerpt
// keeps these zones beside the events.
func (x *Excerpt) lend(events []Event) []Event {
	if len(events) == 0 {
		return nil
	}
	out := make([]Event, len(events))
	// for this calendar only: two calendars may have different zones of one name
	names := map[string]string{}
	for i, e := range events {
		rules, own := e.Zone.rules.(table)
		if out[i] = e; !own {
			continue
		}
		if names[e.Zone.name] == "" {
			names[e.Zone.name] = "#" + strconv.Itoa(len(x.Zones))
			spans := make([]zoneSpan, len(rules))
			for i, s := range rules {
				spans[i] = zoneSpan{s.from, s.to, s.offset}
			}
			x.Zones = append(x.Zones, spans)
		}
		out[i].Zone = Zone{name: names[e.Zone.name], rules: lentZone{}}
	}
	return out
}

// lentZone stands for the rules of a zone that are kept in Excerpt.Zones.
type lentZone struct{}

func (lentZone) at(int64) span { return span{from: always, to: never} }

// ReadExcerpt reads one of [Book.Excerpts]. It refuses unknown fields, because a newer muster may
// use them to say that a window is not open.
func ReadExcerpt(text []byte) (*Excerpt, error) {
	x := &Excerpt{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(x); err != nil {
		return nil, fmt.Errorf("the timetable that is stored for workers: %w", err)
	}
	zones := make(map[string]Zone, len(x.Zones))
	for i, spans := range x.Zones {
		rules := make(table, len(spans))
		for i, s := range spans {
			rules[i] = span{from: s[0], to: s[1], offset: s[2]}
		}
		name := "#" + strconv.Itoa(i)
		zones[name] = Zone{name: name, rules: rules}
	}
	for i := range x.Windows {
		if err := giveBack(x.Windows[i].Times.Events, zones); err != nil {
			return nil, err
		}
	}
	for i := range x.Freezes {
		if err := giveBack(x.Freezes[i].Events, zones); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// giveBack gives events their zones back.
func giveBack(events []Event, zones map[string]Zone) error {
	for i, e := range events {
		if _, lent := e.Zone.rules.(lentZone); !lent {
			continue
		}
		z, ok := zones[e.Zone.name]
		if !ok || len(z.rules.(table)) == 0 {
			return fmt.Errorf("an event is of zone %q, which is not kept", clip(e.Zone.name))
		}
		events[i].Zone = z
	}
	return nil
}

// BookOf returns a book of some excerpts. It must hold all entries of a place.
func BookOf(excerpts ...*Excerpt) *Book {
	b := &Book{windows: map[Scope][]*entry{}, freezes: map[Scope][]*Freeze{}}
	for _, x := range excerpts {
		for i := range x.Windows {
			w := &x.Windows[i]
			b.agreed.Windows = append(b.agreed.Windows, w.Window)
			e := &entry{Window: w.Window, hash: w.Hash, asks: w.Approval, ever: map[string]bool{},
				approvals: w.Approvals}
			for _, customer := range w.Ever {
				e.ever[customer] = true
			}
			b.windows[w.For] = append(b.windows[w.For], e)
		}
		for i := range x.Freezes {
			f := &x.Freezes[i]
			b.agreed.Freezes = append(b.agreed.Freezes, *f)
			b.freezes[f.For] = append(b.freezes[f.For], f)
		}
	}
	return b
}

// MarshalText writes the name of a zone.
func (z Zone) MarshalText() ([]byte, error) {
	if _, own := z.rules.(table); own {
		return nil, errors.New("zone " + z.name + " has no name that is known elsewhere")
	}
	return []byte(z.String()), nil
}

// UnmarshalText reads the text that MarshalText has written.
func (z *Zone) UnmarshalText(text []byte) error {
	if name := string(text); strings.HasPrefix(name, "#") {
		*z = Zone{name: name, rules: lentZone{}}
		return nil
	}
	var err error
	*z, err = LoadZone(string(text))
	return err
}

// MarshalText writes the text that the recurrence was read from.
func (r Recurrence) MarshalText() ([]byte, error) { return []byte(r.text), nil }

// UnmarshalText reads the text that MarshalText has written.
func (r *Recurrence) UnmarshalText(text []byte) error {
	var err error
	*r, err = ParseRecurrence(string(text))
	return err
}
