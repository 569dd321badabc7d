package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
)

func leftOut(p fleet.Picked) api.LeftOut {
	return api.LeftOut{Drained: fleet.Fold(p.Drained), Gone: fleet.Fold(p.Gone)}
}

// scene is what selectors are about at this moment.
type scene struct {
	*stock  // with the labels of the moment; nil: there is none
	drained map[string]jobs.Drain
	earlier map[fleet.Earlier][]string // hosts of earlier tasks, as far as the selector asks
	wrong   []error                    // with what the selector says of these
}

// scene finds out what a selector is about; without one, how things stand. Its error
// is about Redis: what is wrong with the selector is said by pick and choose.
func (s *Server) scene(ctx context.Context, on string) (scene, error) {
	drained, err := s.queue.Hub.Drains.Drained(ctx)
	if err != nil {
		return scene{}, err
	}
	st, err := s.withFacts(ctx, s.stock.current.Load(), on)
	if err != nil {
		return scene{}, err
	}
	v := scene{drained: drained, stock: s.stock.moment.of(st, drained),
		earlier: map[fleet.Earlier][]string{}}
	sel, err := fleet.ParseSelector(on)
	if err != nil {
		return v, nil
	}
	for _, e := range sel.Earlier() {
		names, err := s.earlier(ctx, e)
		var bad *earlierError
		switch {
		case errors.As(err, &bad):
			v.wrong = append(v.wrong, bad)
		case err != nil:
			return v, err
		}
		v.earlier[e] = names
	}
	return v, nil
}

// pick picks hosts for work.
func (v scene) pick(on string) (fleet.Picked, error) {
	sel, err := v.parse(on)
	if err != nil {
		return fleet.Picked{}, err
	}
	return v.Pick(sel)
}

// parse reads a selector, for Pick and Select.
func (v scene) parse(on string) (fleet.Selector, error) {
	switch {
	case v.stock == nil:
		return fleet.Selector{}, errNoInventory
	case len(v.wrong) > 0:
		return fleet.Selector{}, errors.Join(v.wrong...)
	}
	sel, err := fleet.ParseSelector(on)
	return sel.Resolve(v.earlier), err
}

// earlierError is what is wrong with a task in a selector.
type earlierError struct {
	what fleet.Earlier
	why  string
}

func (e *earlierError) Error() string { return fmt.Sprintf("%s: %s", e.what, e.why) }

// earlier finds the hosts on which an earlier task ended in some way.
func (s *Server) earlier(ctx context.Context, e fleet.Earlier) ([]string, error) {
	id, err := jobs.ParseTaskID(e.Task)
	outcome := jobs.Outcome(e.Outcome)
	switch {
	case err != nil:
		return nil, &earlierError{e, err.Error()}
	case outcome != "" && !outcome.Valid():
		return nil, &earlierError{e, "want one of " + joined(jobs.Outcomes(), ", ")}
	}
	names := []string{}
	err = s.queue.Read.Jobs.EachJob(ctx, id, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			if outcome == "" || j.State == jobs.Ended && (j.Outcome == outcome) != e.Not {
				names = append(names, j.Host)
			}
		}
		return nil
	})
	if errors.Is(err, queue.ErrNotFound) {
		return nil, &earlierError{e, "there is no such task, or no more"}
	}
	return names, err
}

// momentLabels are the labels that hosts have at the moment, beside those of the
// inventory. The last answer is kept, with the index of the hosts in it.
type momentLabels struct {
	last atomic.Pointer[momentStock]
}

type momentStock struct {
	of      *stock
	drained []string
	with    *stock
}

// of is the inventory with the labels of the moment; nil if there is none.
func (l *momentLabels) of(st *stock, drained map[string]jobs.Drain) *stock {
	if st == nil || len(drained) == 0 {
		return st
	}
	names := sortedNames(drained)
	if last := l.last.Load(); last != nil && last.of == st && slices.Equal(last.drained, names) {
		return last.with
	}
	labels := make(map[string]map[string]string, len(names))
	for _, name := range names {
		labels[name] = map[string]string{fleet.Drained: "true"}
	}
	with := &stock{st.WithLabels(labels), st.version}
	l.last.Store(&momentStock{st, names, with})
	return with
}

// undrainable tells of hosts that are drained by a label of the inventory.
func undrainable(hosts []fleet.Host) []string {
	var names []string
	for _, h := range hosts {
		if _, labelled := h.Labels[fleet.Drained]; labelled {
			names = append(names, h.Name)
		}
	}
	return names
}

// zonesOf sorts hosts by their zones.
func zonesOf(hosts []fleet.Host) map[string][]string {
	zones := map[string][]string{}
	for _, h := range hosts {
		zones[h.Zone] = append(zones[h.Zone], h.Name)
	}
	return zones
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
