package triggers

import (
	"fmt"
	"slices"
	"strings"

	"muster/fleet"
	"muster/internal/wording"
)

// Narrow returns those hosts that an event means, of the hosts that the selector of the trigger
// picks, or why there are none. It leaves hosts out and never adds one. Of an event of a customer
// it refuses hosts of others, and more hosts than the trigger may have at once.
func (t Trigger) Narrow(b Bound, picked []fleet.Host) ([]string, error) {
	hosts := picked
	if t.Work.Aim.Host != nil {
		var lost []string
		hosts, lost = named(picked, b.Hosts)
		if len(lost) > 0 {
			return nil, fmt.Errorf("host: the event names %s, and selector %s picks no such host",
				wording.ClipList(quoted(lost)), wording.Quote(t.Work.Aim.On))
		}
	}
	for _, l := range t.Work.Aim.Labels {
		want := b.Labels[l.Label]
		if want == "" { // the trigger was changed after the event came
			return nil, fmt.Errorf("label %s: the event gives no value for it", l.Label)
		}
		hosts = slices.DeleteFunc(slices.Clone(hosts), func(h fleet.Host) bool {
			return labelOf(h, l.Label) != want
		})
		if len(hosts) == 0 {
			return nil, fmt.Errorf("label %s: none of the hosts that are meant has %s", l.Label,
				shown(want))
		}
	}
	var foreign []string
	names := make([]string, 0, len(hosts))
	for _, h := range hosts {
		names = append(names, h.Name)
		if b.Customer != "" && h.Customer != b.Customer {
			foreign = append(foreign, h.Name)
		}
	}
	switch {
	case len(foreign) > 0:
		return nil, fmt.Errorf("the event is of customer %s, and %d of %d hosts are not: %s",
			wording.Quote(b.Customer), len(foreign), len(names), wording.ClipList(fleet.Fold(foreign)))
	case len(names) > t.Work.Aim.AtMost:
		return nil, fmt.Errorf("at_most: the task would have %d hosts, and the trigger may have %d: "+
			"nothing is done", len(names), t.Work.Aim.AtMost)
	case len(names) == 0:
		return nil, fmt.Errorf("selector %s picks no host", wording.Quote(t.Work.Aim.On))
	}
	slices.Sort(names)
	return names, nil
}

// named returns the hosts with some names, and the names that no host has.
func named(hosts []fleet.Host, names []string) (found []fleet.Host, lost []string) {
	by := make(map[string]fleet.Host, len(hosts))
	for _, h := range hosts {
		by[h.Name] = h
	}
	for _, name := range names {
		if h, is := by[name]; is {
			found = append(found, h)
			continue
		}
		lost = append(lost, name)
	}
	return found, lost
}

// labelOf returns the value of a label as selectors see it; empty: the host lacks it.
func labelOf(h fleet.Host, label string) string {
	switch label {
	case "name":
		return h.Name
	case "customer":
		return h.Customer
	case "zone":
		return h.Zone
	case "group":
		return h.Group
	}
	return h.Labels[label]
}

// Reason returns the reason of the task for an event, for the audit log and for people.
func (b Bound) Reason() string {
	return strings.TrimSpace(fmt.Sprintf("event %s of %s %s", b.Event, b.Source,
		wording.OneLine(b.Kind, 60)))
}
