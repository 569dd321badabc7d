package server

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"muster/fleet"
)

// factLabels are what hosts said of themselves as labels for selectors. The last answer
// is kept, with the index of the hosts in it.
type factLabels struct {
	last atomic.Pointer[factStock]
}

type factStock struct {
	of   *stock
	mark string // of the facts
	with *stock
	said map[string]fleet.Facts // by host
}

// withFacts is the inventory with facts as labels, if the selector mentions any. It
// may be nil.
func (s *Server) withFacts(ctx context.Context, st *stock, on string) (*stock, error) {
	if st == nil || !strings.Contains(on, fleet.FactPrefix) {
		return st, nil
	}
	f, err := s.factsOf(ctx, st)
	if err != nil {
		return nil, err
	}
	return f.with, nil
}

// unfenced tells which hosts keep no record of attempts, and why, as far as is known.
func (s *Server) unfenced(ctx context.Context, st *stock, hosts []fleet.Host) (map[string]string,
	error) {
	f, err := s.factsOf(ctx, st)
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	for _, h := range hosts {
		if text := fleet.Unfenced(h, f.said[h.Name]); text != "" {
			why[h.Name] = text
		}
	}
	return why, nil
}

// lookAtFacts finds out what the hosts of a plan do not keep, and what is not known of them
// that the runbook needs. It refuses hosts whose user muster cannot become.
func (s *Server) lookAtFacts(ctx context.Context, v scene, p *plan) ([]error, error) {
	if wrong := checkBecome(p.picked, p.secrets); len(wrong) > 0 {
		return wrong, nil
	}
	if needs := p.frozen.Facts(); len(needs) > 0 {
		f, err := s.factsOf(ctx, v.stock)
		if err != nil {
			return nil, err
		}
		if wrong := checkFacts(needs, p.picked, f.said); len(wrong) > 0 {
			return wrong, nil
		}
	}
	return nil, s.lookAtFences(ctx, v, p)
}

// lookAtFences finds out what the hosts of a plan do not keep.
func (s *Server) lookAtFences(ctx context.Context, v scene, p *plan) error {
	why, err := s.unfenced(ctx, v.stock, p.picked)
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
	for _, h := range v.stock.Hosts() {
		if _, asked := marked[h.Group]; asked {
			members = append(members, h)
		}
	}
	if why, err = s.unfenced(ctx, v.stock, members); err != nil {
		return err
	}
	for _, h := range members {
		marked[h.Group] = marked[h.Group] || why[h.Name] == ""
	}
	maps.DeleteFunc(marked, func(_ string, can bool) bool { return can })
	p.fences.Unmarked = slices.Sorted(maps.Keys(marked))
	return nil
}

// factsOf is what the hosts of an inventory said.
func (s *Server) factsOf(ctx context.Context, st *stock) (*factStock, error) {
	mark, err := s.queue.Hub.Facts.FactsMark(ctx)
	if err != nil {
		return nil, err
	}
	if last := s.factLabels.last.Load(); last != nil && last.of == st && last.mark == mark {
		return last, nil
	}
	all, mark, err := s.queue.Hub.Facts.Facts(ctx)
	if err != nil {
		return nil, err
	}
	labels := make(map[string]map[string]string, len(all))
	said := make(map[string]fleet.Facts, len(all))
	for host, f := range all {
		said[host] = f.Facts
		labels[host] = said[host].Labels()
	}
	f := &factStock{st, mark, &stock{st.WithLabels(labels), st.version}, said}
	s.factLabels.last.Store(f)
	return f, nil
}
