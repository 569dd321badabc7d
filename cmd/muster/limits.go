package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

func newLimits() *cobra.Command {
	c := &cobra.Command{
		Use:   "limits",
		Short: "List the limits of the inventory, and who counts against them",
		Long: `A limit says how many jobs may be at work at a time: on all hosts with a label, or of
all runbooks that name it. It is defined in the inventory; hosts are named here whose
jobs count against it now.`,
		Example:           "  muster limits\n  muster limits -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		var l api.LimitList
		if err := s.get(ctx, "/v1/limits", nil, &l); err != nil {
			return err
		}
		for i := range l.Limits {
			l.Limits[i].Holders = filled(l.Limits[i].Holders)
		}
		return s.list(filled(l.Limits), limitGrid(l.Limits, s.colours),
			"there are no limits: define them under `limits` in the inventory")
	})
}

func limitGrid(list []jobs.Limit, colours palette) grid {
	g := newGrid("LIMIT", "ZONE", ">USED", ">MAX", ">WAIT", "HOSTS")
	for _, l := range list {
		used := strconv.Itoa(l.Used)
		if l.Used >= l.Max {
			used = colours.paint(yellow, used)
		}
		var hosts []string
		for _, id := range l.Holders {
			hosts = append(hosts, id.Host())
		}
		folded := cell(fleet.Fold(hosts))
		if l.Used > len(l.Holders) && len(l.Holders) > 0 {
			folded += ",…"
		}
		g.add(cell(l.Name), cell(l.Zone), used, strconv.Itoa(l.Max), strconv.Itoa(l.Waits),
			orDash(fit(folded, 100)))
	}
	return g
}
