package intake

import (
	"context"
	"maps"
	"slices"

	"muster/fleet"
	"muster/server/draft"
	"muster/server/stock"
)

// checkFacts finds out which hosts of a draft keep no records, and reports those of which nobody
// knows a fact that the runbook needs, and those whose user muster cannot become.
func checkFacts(ctx context.Context, look *stock.Looker, v stock.Scene, p *draft.Draft) (
	[]error, error) {
	if wrong := p.CheckBecome(); len(wrong) > 0 {
		return wrong, nil
	}
	if len(p.Frozen.Facts()) > 0 {
		said, err := look.Said(ctx, v.Stock)
		if err != nil {
			return nil, err
		}
		if wrong := p.CheckFacts(said); len(wrong) > 0 {
			return wrong, nil
		}
	}
	return nil, noteFences(ctx, look, v, p)
}

// noteFences notes which hosts of a draft keep no record of attempts, and of which groups no member
// can carry a marker.
func noteFences(ctx context.Context, look *stock.Looker, v stock.Scene, p *draft.Draft) error {
	why, err := look.Unfenced(ctx, v.Stock, p.Picked)
	p.Fences.Unfenced = fleet.Fold(slices.Sorted(maps.Keys(why)))
	if err != nil || !p.Task.Spec.Disruptive {
		return err
	}
	marked := map[string]bool{} // group to whether a member can carry a marker
	for _, h := range p.Picked {
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
	if why, err = look.Unfenced(ctx, v.Stock, members); err != nil {
		return err
	}
	for _, h := range members {
		marked[h.Group] = marked[h.Group] || why[h.Name] == ""
	}
	maps.DeleteFunc(marked, func(_ string, can bool) bool { return can })
	p.Fences.Unmarked = slices.Sorted(maps.Keys(marked))
	return nil
}
