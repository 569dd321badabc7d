package stock

import (
	"context"
	"strings"

	"muster/fleet"
	"muster/jobs"
)

// Facts keeps what hosts said of themselves. The mark changes with the facts.
type Facts interface {
	Facts(ctx context.Context) (list map[string]jobs.HostFacts, mark string, err error)
	FactsMark(ctx context.Context) (string, error)
}

// A saidStock has the facts of hosts as labels for selectors. A Looker keeps the last one,
// with the index of the hosts in it.
type saidStock struct {
	of   *Stock
	mark string // of the facts
	with *Stock
	said map[string]fleet.Facts // by host
}

// withFacts returns the inventory with facts as labels, if the selector mentions any. The
// inventory may be nil.
func (l *Looker) withFacts(ctx context.Context, st *Stock, on string) (*Stock, error) {
	if st == nil || !strings.Contains(on, fleet.FactPrefix) {
		return st, nil
	}
	f, err := l.factsOf(ctx, st)
	if err != nil {
		return nil, err
	}
	return f.with, nil
}

// Unfenced returns the hosts that keep no record of attempts, and why, as far as is known.
func (l *Looker) Unfenced(ctx context.Context, st *Stock, hosts []fleet.Host) (map[string]string,
	error) {
	f, err := l.factsOf(ctx, st)
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

// Said returns what the hosts of an inventory said of themselves, by host.
func (l *Looker) Said(ctx context.Context, st *Stock) (map[string]fleet.Facts, error) {
	f, err := l.factsOf(ctx, st)
	if err != nil {
		return nil, err
	}
	return f.said, nil
}

func (l *Looker) factsOf(ctx context.Context, st *Stock) (*saidStock, error) {
	mark, err := l.facts.FactsMark(ctx)
	if err != nil {
		return nil, err
	}
	if last := l.said.Load(); last != nil && last.of == st && last.mark == mark {
		return last, nil
	}
	all, mark, err := l.facts.Facts(ctx)
	if err != nil {
		return nil, err
	}
	labels := make(map[string]map[string]string, len(all))
	said := make(map[string]fleet.Facts, len(all))
	for host, f := range all {
		said[host] = f.Facts
		labels[host] = said[host].Labels()
	}
	f := &saidStock{st, mark, st.labelled(labels), said}
	l.said.Store(f)
	return f, nil
}
