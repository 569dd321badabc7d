package hosts

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"muster/cli"
	"muster/fleet"
)

// factColumns returns the facts of the hosts that a selector picks, by host, if a table will show
// some.
func factColumns(ctx context.Context, s *cli.Session, on string, columns []string) (
	map[string]fleet.Facts, error) {
	isFact := func(name string) bool { return strings.HasPrefix(name, fleet.FactPrefix) }
	if s.JSON || !slices.ContainsFunc(columns, isFact) {
		return nil, nil
	}
	if on = cmp.Or(on, "all"); len(on) > cli.URLMax {
		on = "all" // of more hosts than the table shows, but it fits a URL
	}
	l, err := facts(ctx, s.Client, on)
	said := make(map[string]fleet.Facts, len(l.Hosts))
	for _, h := range l.Hosts {
		said[h.Host] = h.Facts
	}
	return said, err
}
