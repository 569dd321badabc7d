package fleet

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Changes lists the differences between two inventories.
type Changes struct {
	Added   []string     `json:"added"`   // hosts, sorted
	Removed []string     `json:"removed"` // hosts, sorted
	Changed []HostChange `json:"changed"` // sorted by host
	Limits  []Change     `json:"limits"`  // sorted; From or To is empty for a new or removed one
}

// HostChange lists the fields of one host that differ.
type HostChange struct {
	Host   string   `json:"host"`
	Fields []Change `json:"fields"` // in the order of Host; a label is "labels.role"
}

// Change is one field whose value differs.
type Change struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// Empty reports whether the inventories are equal.
func (c Changes) Empty() bool {
	return len(c.Added)+len(c.Removed)+len(c.Changed)+len(c.Limits) == 0
}

// String returns a line for a log: how many hosts differ, and their names.
func (c Changes) String() string {
	var names []string
	for _, h := range c.Changed {
		names = append(names, h.Host)
	}
	var parts []string
	for _, p := range []struct {
		word  string
		names []string
	}{{"added", c.Added}, {"removed", c.Removed}, {"changed", names}} {
		if len(p.names) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s: %s", len(p.names), p.word, abbreviate(Fold(p.names))))
		}
	}
	if len(c.Limits) > 0 {
		parts = append(parts, strconv.Itoa(len(c.Limits))+" limits changed")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// Diff returns how the inventory to differs from the inventory from. If from is nil, all
// hosts count as added.
func Diff(from, to *Inventory) Changes {
	if from == nil {
		from = &Inventory{}
	}
	c := Changes{Added: []string{}, Removed: []string{}, Changed: []HostChange{}, Limits: []Change{}}
	for i := range from.hosts {
		if _, stays := to.index[from.hosts[i].Name]; !stays {
			c.Removed = append(c.Removed, from.hosts[i].Name)
		}
	}
	for i := range to.hosts {
		h := &to.hosts[i]
		j, was := from.index[h.Name]
		if !was {
			c.Added = append(c.Added, h.Name)
			continue
		}
		if fields := diffHosts(from.hosts[j], *h); len(fields) > 0 {
			c.Changed = append(c.Changed, HostChange{h.Name, fields})
		}
	}
	c.Limits = append(c.Limits, diffMaps(limitTexts(from.limits), limitTexts(to.limits), "")...)
	return c
}

// diffHosts compares two hosts field by field.
func diffHosts(a, b Host) []Change {
	if reflect.DeepEqual(a, b) { // nearly all are
		return nil
	}
	var list []Change
	for _, f := range hostFieldsOf(a) {
		list = append(list, Change{Field: f.name, From: f.text})
	}
	for i, f := range hostFieldsOf(b) {
		list[i].To = f.text
	}
	list = slices.DeleteFunc(list, func(c Change) bool { return c.From == c.To })
	return append(list, diffMaps(a.Labels, b.Labels, "labels.")...)
}

func limitTexts(limits []Limit) map[string]string {
	texts := make(map[string]string, len(limits))
	for _, l := range limits {
		text := fmt.Sprintf("%d in zone %s", l.Max, l.Zone)
		if l.Customer != "" {
			text += " of customer " + l.Customer
		}
		texts[l.Name] = text
	}
	return texts
}

// diffMaps compares two maps key by key.
func diffMaps(a, b map[string]string, prefix string) []Change {
	var list []Change
	for key, was := range a {
		if now, there := b[key]; !there || now != was {
			list = append(list, Change{prefix + key, was, now})
		}
	}
	for key, now := range b {
		if _, there := a[key]; !there {
			list = append(list, Change{prefix + key, "", now})
		}
	}
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.Field, b.Field) })
	return list
}

type fieldText struct{ name, text string }

// hostFieldsOf returns all fields of a host except its name and labels as text. The list
// has the same fields in the same order for every host.
func hostFieldsOf(h Host) []fieldText {
	var list []fieldText
	for name, value := range values(&h, hostFieldList()) {
		text := ""
		switch v := value.(type) {
		case string:
			text = v
		case []string:
			text = strings.Join(v, ", ")
		case Fence:
			text = string(v)
		default:
			if !reflect.ValueOf(v).IsZero() {
				data, _ := json.Marshal(v) // a host is JSON wherever it goes
				text = string(data)
			}
		}
		list = append(list, fieldText{name, text})
	}
	return list
}
