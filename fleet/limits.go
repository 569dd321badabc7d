package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// limitEntry is a limit as it was read, with the file and line that define it. Its zone
// is empty until settleZone has found it.
type limitEntry struct {
	Limit
	file string
	line int
}

func (e limitEntry) who() string { return fmt.Sprintf("limit %q", abbreviate(e.Name)) }

// place returns " at file:line", or "" if the limit came from no file.
func (e limitEntry) place() string {
	if e.file == "" {
		return ""
	}
	return fmt.Sprintf(" at %s:%d", e.file, e.line)
}

func (r *reader) mistakeAtLimit(e limitEntry, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{e.file, e.line, fmt.Sprintf(format, args...)})
}

// readLimits reads the limits of a file; each is a number or a mapping.
func (r *reader) readLimits(n *yaml.Node) {
	r.who = ""
	fields := r.fields(n, "limits", nil)
	for _, name := range sortedKeys(fields) {
		key, _ := child(n, name)
		e := limitEntry{Limit: Limit{Name: name}, file: r.file, line: key.Line}
		r.who = e.who() + ": "
		if value := fields[name]; value.Kind == yaml.MappingNode {
			r.limitFields(value, &e)
		} else {
			r.wholeNumber(value, "max", &e.Max)
		}
		r.who = ""
		for _, err := range checkLimit(e.Limit) {
			r.mistake(e.line, "%v", err)
		}
		r.limits = append(r.limits, e)
	}
	r.who = ""
}

func (r *reader) limitFields(n *yaml.Node, e *limitEntry) {
	fields := r.fields(n, "this", []string{"max", "customer", "zone"})
	if fields == nil {
		return
	}
	if fields["max"] == nil {
		r.mistake(e.line, "max is missing: say how many jobs at a time")
	} else {
		r.wholeNumber(fields["max"], "max", &e.Max)
	}
	// checkLimit checks the rest of these values.
	given := func(s string) error {
		if s == "" {
			return errors.New("is empty: give one or leave it out")
		}
		return nil
	}
	r.text(fields, "customer", &e.Customer, given)
	r.text(fields, "zone", &e.Zone, given)
}

// wholeNumber reads decimal digits only, because YAML would read 010 as octal.
func (r *reader) wholeNumber(n *yaml.Node, what string, into *int) {
	s, err := scalar(n)
	if err != nil {
		r.mistake(n.Line, "%s %v", what, err)
		return
	}
	i, err := strconv.Atoi(s)
	if n.ShortTag() != "!!int" || !isDecimal(s) || err != nil {
		r.mistake(n.Line, "%s %q is not a number: want 0 to %d, without quotes", what, abbreviate(s),
			limitMax)
		return
	}
	*into = i
}

// checkLimits finds the zone of each limit and reports limits that cannot be enforced: one
// zone counts all jobs of a limit, and a customer's limit must not cover other hosts.
func (r *reader) checkLimits() {
	if len(r.limits) > limitsMax {
		r.mistakeAtLimit(r.limits[limitsMax], "%d limits: at most %d", len(r.limits), limitsMax)
		return
	}
	index := make(map[string]int, len(r.limits))
	for i, e := range r.limits {
		if first, twice := index[e.Name]; twice {
			r.mistakeAtLimit(e, "%s is there already%s: keep one of them", e.who(),
				r.limits[first].place())
			continue
		}
		index[e.Name] = i
	}
	members := make([][]entry, len(r.limits))
	for _, e := range r.entries {
		if len(index) == 0 {
			break
		}
		for _, name := range limitNames(e.host) {
			if i, limited := index[name]; limited {
				members[i] = append(members[i], e)
			}
		}
	}
	for i := range r.limits {
		r.settleZone(&r.limits[i], members[i])
		r.checkCustomer(r.limits[i], members[i])
	}
}

// limitNames returns the names of all limits that could cover a host.
func limitNames(h Host) []string {
	var names []string
	for _, key := range builtinLabels() {
		if value, has := (*hostLabels)(&h).Lookup(key); has && key != "group" {
			names = append(names, key+"/"+value)
		}
	}
	for key, value := range h.Labels {
		names = append(names, key+"/"+value)
	}
	return names
}

// settleZone finds the zone of a limit: the given zone, or else the zone of its hosts.
func (r *reader) settleZone(e *limitEntry, members []entry) {
	if key, value, _ := cutLimit(e.Name); key == "zone" {
		e.Zone = cmp.Or(e.Zone, value)
		if e.Zone != value {
			r.mistakeAtLimit(*e, "%s has the zone %q: it belongs to the zone that it limits",
				e.who(), abbreviate(e.Zone))
			return
		}
	}
	said := e.Zone != ""
	if !said && len(members) > 0 {
		e.Zone = members[0].host.Zone
	}
	e.Zone = cmp.Or(e.Zone, DefaultZone)
	i := slices.IndexFunc(members, func(m entry) bool { return m.host.Zone != e.Zone })
	switch {
	case i < 0:
	case said:
		r.mistakeAtLimit(*e, "%s lives in zone %q, but %s%s, which has this label, is in zone %q: "+
			"a limit lives in one zone", e.who(), e.Zone, members[i].who(), members[i].place(),
			members[i].host.Zone)
	default:
		r.mistakeAtLimit(*e, "%s is of hosts in two zones: %s%s is in %q, %s%s in %q: a limit lives "+
			"in one zone, so give each zone its own", e.who(), members[0].who(), members[0].place(),
			members[0].host.Zone, members[i].who(), members[i].place(), members[i].host.Zone)
	}
}

// checkCustomer reports a host of another customer that would count against a limit of
// this customer.
func (r *reader) checkCustomer(e limitEntry, members []entry) {
	if e.Customer == "" {
		return
	}
	i := slices.IndexFunc(members, func(m entry) bool { return m.host.Customer != e.Customer })
	if i >= 0 {
		r.mistakeAtLimit(e, "%s is of customer %q, but %s%s, which has this label, is of %q: "+
			"leave the customer out, or give that host another label", e.who(), e.Customer,
			members[i].who(), members[i].place(), members[i].host.Customer)
	}
}
