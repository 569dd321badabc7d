package server

import (
	"context"
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
}

// withFacts is the inventory with facts as labels, if the selector mentions any. It
// may be nil.
func (s *Server) withFacts(ctx context.Context, st *stock, on string) (*stock, error) {
	if st == nil || !strings.Contains(on, fleet.FactPrefix) {
		return st, nil
	}
	mark, err := s.queue.FactsMark(ctx)
	if err != nil {
		return nil, err
	}
	if last := s.factLabels.last.Load(); last != nil && last.of == st && last.mark == mark {
		return last.with, nil
	}
	all, mark, err := s.queue.Facts(ctx)
	if err != nil {
		return nil, err
	}
	labels := make(map[string]map[string]string, len(all))
	for host, f := range all {
		labels[host] = fleet.Facts(f.Facts).Labels()
	}
	with := &stock{st.WithLabels(labels), st.version}
	s.factLabels.last.Store(&factStock{st, mark, with})
	return with, nil
}
