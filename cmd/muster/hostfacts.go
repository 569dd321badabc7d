package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"muster/fleet"
)

// factColumns are the facts of the hosts that a selector picks, by host, if a table is to
// show some.
func (s *session) factColumns(ctx context.Context, on string, columns []string) (
	map[string]fleet.Facts, error) {
	isFact := func(name string) bool { return strings.HasPrefix(name, fleet.FactPrefix) }
	if s.json || !slices.ContainsFunc(columns, isFact) {
		return nil, nil
	}
	if on = cmp.Or(on, "all"); len(on) > urlMax {
		on = "all" // of more hosts than are shown, but it fits a URL
	}
	l, err := s.facts(ctx, on)
	said := make(map[string]fleet.Facts, len(l.Hosts))
	for _, h := range l.Hosts {
		said[h.Host] = h.Facts
	}
	return said, err
}
