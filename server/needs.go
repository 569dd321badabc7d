package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/fleet"
	"muster/jobs"
	"muster/scripts"
	"muster/server/stock"
)

// guarded tells whether a job of a task may need a group or a limit.
func guarded(s jobs.Spec, hosts []fleet.Host, limits []fleet.Limit) bool {
	if len(s.Needs) > 0 || s.Rollout != nil {
		return true
	}
	return slices.ContainsFunc(hosts, func(h fleet.Host) bool {
		return s.Disruptive && h.Group != "" || len(fleet.Needs(h, limits)) > 0
	})
}

// checkNeeds tells which limits that a runbook needs cannot be kept for some
// hosts: there is no such limit, or it is another zone's or customer's.
func checkNeeds(needs []string, hosts []fleet.Host, in *stock.Stock) []error {
	if in == nil {
		return nil // which is a mistake of its own
	}
	var wrong []error
	limits := in.Limits()
	for _, name := range needs {
		i := slices.IndexFunc(limits, func(l fleet.Limit) bool { return l.Name == name })
		if i < 0 {
			wrong = append(wrong, mistake("body.runbook", "it needs the limit %s, which is not defined%s: "+
				"define it under `limits` in the inventory", name, defined(limits)))
			continue
		}
		l := limits[i]
		away := func(h fleet.Host) bool { return h.Zone != l.Zone }
		if names := stock.Names(hosts, away); names != nil {
			wrong = append(wrong, mistake("body.on", "the limit %s lives in zone %s, where %d of %d hosts "+
				"are not: %s; submit a task for that zone alone", name, l.Zone, len(names), len(hosts),
				brief(fleet.Fold(names))))
		}
		foreign := func(h fleet.Host) bool { return l.Customer != "" && h.Customer != l.Customer }
		if names := stock.Names(hosts, foreign); names != nil {
			wrong = append(wrong, mistake("body.on", "the limit %s is of customer %s, which %d of %d hosts "+
				"are not of: %s", name, l.Customer, len(names), len(hosts), brief(fleet.Fold(names))))
		}
	}
	return wrong
}

// checkFacts tells of which hosts a fact is not known that a runbook needs, or is another.
func checkFacts(needs []scripts.FactNeed, hosts []fleet.Host, said map[string]fleet.Facts) []error {
	var wrong []error
	for _, n := range needs {
		unknown := stock.Names(hosts, func(h fleet.Host) bool { return said[h.Name][n.Name] == "" })
		if list := brief(fleet.Fold(unknown)); unknown != nil {
			wrong = append(wrong, mistake("body.on", "it needs the fact %s, which is not known of %d of %d "+
				"hosts: %s: `muster facts gather` asks them", n.Name, len(unknown), len(hosts), list))
		}
		other := stock.Names(hosts, func(h fleet.Host) bool {
			is := said[h.Name][n.Name]
			return is != "" && n.Value != "" && is != n.Value
		})
		if other != nil {
			wrong = append(wrong, mistake("body.on", "it needs the fact %s to be %s, and of %d of %d hosts "+
				"it is not: %s: `muster facts show` tells what it is", n.Name, n.Value, len(other),
				len(hosts), brief(fleet.Fold(other))))
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

// checkKey tells whether tasks can be told by a key: names, with '/' between them.
func checkKey(key string) error {
	if key == "" {
		return nil
	}
	if len(key) > keyMax {
		return fmt.Errorf("%q has %d bytes: at most %d", clip(key), len(key), keyMax)
	}
	for part := range strings.SplitSeq(key, "/") {
		if err := fleet.CheckName(part); err != nil {
			return fmt.Errorf("%q: want names, with '/' between them: %w", clip(key), err)
		}
	}
	return nil
}

// lookAtFacts finds out what the hosts of a plan do not keep, and what is not known of them
// that the runbook needs. It refuses hosts whose user muster cannot become.
func (s *Server) lookAtFacts(ctx context.Context, v stock.Scene, p *plan) ([]error, error) {
	if wrong := checkBecome(p.picked, p.secrets); len(wrong) > 0 {
		return wrong, nil
	}
	if needs := p.frozen.Facts(); len(needs) > 0 {
		said, err := s.look.Said(ctx, v.Stock)
		if err != nil {
			return nil, err
		}
		if wrong := checkFacts(needs, p.picked, said); len(wrong) > 0 {
			return wrong, nil
		}
	}
	return nil, s.lookAtFences(ctx, v, p)
}

// lookAtFences finds out what the hosts of a plan do not keep.
func (s *Server) lookAtFences(ctx context.Context, v stock.Scene, p *plan) error {
	why, err := s.look.Unfenced(ctx, v.Stock, p.picked)
	p.fences.Unfenced = fleet.Fold(slices.Sorted(maps.Keys(why)))
	if err != nil || !p.task.Spec.Disruptive {
		return err
	}
	marked := map[string]bool{} // group to whether a member can carry a marker
	for _, h := range p.picked {
		if h.Group != "" {
			marked[h.Group] = false
		}
	}
	var members []fleet.Host
	for _, h := range v.Stock.Hosts() {
		if _, asked := marked[h.Group]; asked {
			members = append(members, h)
		}
	}
	if why, err = s.look.Unfenced(ctx, v.Stock, members); err != nil {
		return err
	}
	for _, h := range members {
		marked[h.Group] = marked[h.Group] || why[h.Name] == ""
	}
	maps.DeleteFunc(marked, func(_ string, can bool) bool { return can })
	p.fences.Unmarked = slices.Sorted(maps.Keys(marked))
	return nil
}
