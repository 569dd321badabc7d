package draft

import (
	"fmt"
	"slices"
	"strings"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/server/fault"
	"muster/server/stock"
)

// guarded reports whether a job of a task may need a group or a limit.
func guarded(s jobs.Spec, hosts []fleet.Host, limits []fleet.Limit) bool {
	if len(s.Needs) > 0 || s.Rollout != nil {
		return true
	}
	return slices.ContainsFunc(hosts, func(h fleet.Host) bool {
		return s.Disruptive && h.Group != "" || len(fleet.Needs(h, limits)) > 0
	})
}

// checkNeeds reports the limits that a runbook needs and that cannot be kept for some
// hosts: there is no such limit, or it is another zone's or customer's.
func checkNeeds(needs []string, hosts []fleet.Host, in *stock.Stock) []error {
	if in == nil {
		return nil // that is a mistake of its own
	}
	var wrong []error
	limits := in.Limits()
	for _, name := range needs {
		i := slices.IndexFunc(limits, func(l fleet.Limit) bool { return l.Name == name })
		if i < 0 {
			wrong = append(wrong, fault.At("body.runbook", "it needs the limit %s, which is not defined%s: "+
				"define it under `limits` in the inventory", name, defined(limits)))
			continue
		}
		l := limits[i]
		away := func(h fleet.Host) bool { return h.Zone != l.Zone }
		if names := stock.Names(hosts, away); names != nil {
			wrong = append(wrong, fault.At("body.on", "the limit %s lives in zone %s, where %d of %d hosts "+
				"are not: %s; submit a task for that zone alone", name, l.Zone, len(names), len(hosts),
				wording.ClipList(fleet.Fold(names))))
		}
		foreign := func(h fleet.Host) bool { return l.Customer != "" && h.Customer != l.Customer }
		if names := stock.Names(hosts, foreign); names != nil {
			wrong = append(wrong, fault.At("body.on", "the limit %s is of customer %s, which %d of %d "+
				"hosts are not of: %s", name, l.Customer, len(names), len(hosts),
				wording.ClipList(fleet.Fold(names))))
		}
	}
	return wrong
}

// CheckFacts reports the hosts of which nobody knows a fact that the runbook needs, and those of
// which the fact is another.
func (p *Draft) CheckFacts(said map[string]fleet.Facts) []error {
	hosts := p.Picked
	var wrong []error
	for _, n := range p.Frozen.Facts() {
		unknown := stock.Names(hosts, func(h fleet.Host) bool { return said[h.Name][n.Name] == "" })
		if list := wording.ClipList(fleet.Fold(unknown)); unknown != nil {
			wrong = append(wrong, fault.At("body.on", "it needs the fact %s, which is not known of %d of "+
				"%d hosts: %s: `muster facts gather` asks them", n.Name, len(unknown), len(hosts), list))
		}
		other := stock.Names(hosts, func(h fleet.Host) bool {
			is := said[h.Name][n.Name]
			return is != "" && n.Value != "" && is != n.Value
		})
		if other != nil {
			wrong = append(wrong, fault.At("body.on", "it needs the fact %s to be %s, and of %d of %d "+
				"hosts it is not: %s: `muster facts show` tells what it is", n.Name, n.Value, len(other),
				len(hosts), wording.ClipList(fleet.Fold(other))))
		}
	}
	return wrong
}

// defined names some of the limits that there are.
func defined(limits []fleet.Limit) string {
	var names []string
	for _, l := range limits[:min(len(limits), examples)] {
		names = append(names, l.Name)
	}
	switch {
	case len(names) == 0:
		return " (there are none)"
	case len(limits) > len(names):
		names = append(names, "…")
	}
	return fmt.Sprintf(" (there are %s)", strings.Join(names, ", "))
}

// keyMax bounds the key of what supersedes what.
const keyMax = 128 // bytes

// checkKey reports whether a key can tell tasks apart: names, with '/' between them.
func checkKey(key string) error {
	if key == "" {
		return nil
	}
	if len(key) > keyMax {
		return fmt.Errorf("%q has %d bytes: at most %d", wording.Clip(key), len(key), keyMax)
	}
	for part := range strings.SplitSeq(key, "/") {
		if err := fleet.CheckName(part); err != nil {
			return fmt.Errorf("%q: want names, with '/' between them: %w", wording.Clip(key), err)
		}
	}
	return nil
}
