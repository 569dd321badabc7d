package inner

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"muster/fleet"
	"muster/jobs"
)

// A HostChange is a host that differs in two versions of the inventory. One of them may not have
// it.
type HostChange struct {
	Name   string
	Before *fleet.Host
	After  *fleet.Host
}

// Changes returns the hosts that differ in two versions of the inventory, by name.
func Changes(before, after map[string]fleet.Host) (list []HostChange) {
	names := maps.Clone(before)
	if names == nil {
		names = map[string]fleet.Host{}
	}
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c := HostChange{Name: name}
		if h, there := before[name]; there {
			c.Before = &h
		}
		if h, there := after[name]; there {
			c.After = &h
		}
		if c.Before == nil || c.After == nil || len(c.fields()) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// fields returns the names of what differs in a host of both versions.
func (c HostChange) fields() (out []string) {
	before, after := fieldsOf(c.Before), fieldsOf(c.After)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !bytes.Equal(before[name], after[name]) {
			out = append(out, name)
		}
	}
	return out
}

func fieldsOf(h *fleet.Host) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if h != nil {
		text, _ := json.Marshal(h)     // a host that was read from JSON
		_ = json.Unmarshal(text, &out) // the object that was just written
	}
	return out
}

// hostSide has the parts of a host, in one version, that an event shows. Keys, users and the ways
// to a host are left out: a viewer of an event needs not know how muster logs in.
type hostSide struct {
	Address  string            `json:"address"`
	Customer string            `json:"customer,omitempty"`
	Zone     string            `json:"zone"`
	Group    string            `json:"group,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
}

func sideOf(h *fleet.Host) *hostSide {
	if h == nil {
		return nil
	}
	return &hostSide{h.Address, h.Customer, h.Zone, h.Group, h.Labels}
}

// Versions are those that were compared, and the step of the feed in which they were.
type Versions struct {
	From, To string
	Step     int64
	At       time.Time
}

// OfHost returns the event of a host that changed.
func OfHost(c HostChange, v Versions) Told {
	kind, customer := HostChanged, ""
	switch {
	case c.Before == nil:
		kind, customer = HostAdded, c.After.Customer
	case c.After == nil:
		kind, customer = HostRemoved, c.Before.Customer
	case c.Before.Customer == c.After.Customer: // else no customer may see the other one
		customer = c.After.Customer
	}
	var fields []string
	if kind == HostChanged {
		fields = c.fields()
	}
	return told(of{kind, customer, v.At}, struct {
		Host   string    `json:"host"`
		Fields []string  `json:"fields,omitempty"`
		Before *hostSide `json:"before,omitempty"`
		After  *hostSide `json:"after,omitempty"`
	}{c.Name, fields, sideOf(c.Before), sideOf(c.After)}, v.From, v.To, c.Name,
		strconv.FormatInt(v.Step, 10))
}

// measures are facts that differ whenever somebody looks: no event tells of them.
var measures = []string{"uptime", "disk_free", "clock_offset"}

// Lasting returns the facts that tell something of a host when they change.
func Lasting(facts map[string]string) map[string]string {
	out := maps.Clone(facts)
	maps.DeleteFunc(out, func(name, _ string) bool { return slices.Contains(measures, name) })
	if out == nil {
		out = map[string]string{}
	}
	return out
}

// A turn is what a fact was, and is.
type turn struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// OfFacts returns the event that facts of a host changed, compared with those that were told
// before; ok is false if none of them did.
func OfFacts(f jobs.HostFacts, before map[string]string, find Find) (e Told, ok bool) {
	after := Lasting(f.Facts)
	all := maps.Clone(after)
	maps.Copy(all, before)
	changed := map[string]turn{}
	for name := range all {
		if before[name] != after[name] {
			changed[name] = turn{before[name], after[name]}
		}
	}
	if len(changed) == 0 {
		return Told{}, false
	}
	host, _ := find(f.Host)
	return told(of{FactChanged, host.Customer, f.At.Time}, struct {
		Host    string            `json:"host"`
		Task    jobs.TaskID       `json:"task"` // the one that asked for the facts
		Names   []string          `json:"names"`
		Changed map[string]turn   `json:"changed"`
		Facts   map[string]string `json:"facts"`
	}{f.Host, f.Task, slices.Sorted(maps.Keys(changed)), changed, after}, f.Host, string(f.Task),
		strconv.FormatInt(f.At.UnixMicro(), 10)), true
}
