package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/jobs"
	"muster/server"
)

func newNodes() *cobra.Command {
	c := &cobra.Command{
		Use:               "nodes",
		Short:             "List the machines that work, and what they have in hand",
		Example:           "  muster nodes\n  muster nodes -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.AddCommand(newThaw())
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		var l server.NodeList
		if err := s.get(ctx, "/v1/nodes", nil, &l); err != nil {
			return err
		}
		for i := range l.Nodes {
			l.Nodes[i].Children = filled(l.Nodes[i].Children)
		}
		s.banner(ctx)
		return s.list(filled(l.Nodes), nodeGrid(l.Nodes, s.now()),
			"there are no nodes, so no job runs: start one with `muster master`")
	})
}

func nodeGrid(list []jobs.Node, now time.Time) grid {
	g := newGrid("NODE", ">PID", "STATE", "ZONES", ">CHILDREN", ">SLOTS", ">JOBS", "VERSION", "SEEN",
		"NOTE")
	for _, n := range list {
		g.add(cell(n.ID), strconv.Itoa(n.PID), cell(n.State), cell(strings.Join(n.Zones, ",")),
			fmt.Sprintf("%d/%d", len(n.Children), n.Limit), strconv.Itoa(n.Slots),
			strconv.Itoa(inHand(n)), cell(n.Version), ago(n.Seen, now), orDash(cell(n.Note)))
	}
	return g
}

// inHand is how many jobs a node works on.
func inHand(n jobs.Node) int {
	sum := 0
	for _, c := range n.Children {
		switch {
		case len(c.Jobs) > 0:
			sum += len(c.Jobs)
		case c.Job != "":
			sum++
		}
	}
	return sum
}
