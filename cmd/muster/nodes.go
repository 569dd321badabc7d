package main

import (
	"context"
	"errors"
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

func newQueue() *cobra.Command {
	watch := false
	c := &cobra.Command{
		Use:   "queue",
		Short: "Show what waits in each zone",
		Example: `  muster queue
  muster queue --watch`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&watch, "watch", false, "look again each second, on a terminal")
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		if watch && (!s.outTerm || s.json) {
			return exit(exitUsage, errors.New("--watch draws on a terminal: leave it out in a pipe, and "+
				"with -o json"))
		}
		if watch {
			return s.watchQueue(ctx)
		}
		zones, err := s.zones(ctx)
		if err != nil {
			return err
		}
		s.banner(ctx)
		return s.list(zones, queueGrid(zones, s.colours), nothingWaits)
	})
}

const nothingWaits = "there are no zones: nothing was ever submitted, and no node is up"

func (c *client) zones(ctx context.Context) ([]server.Zone, error) {
	var q server.QueueInfo
	err := c.get(ctx, "/v1/queue", nil, &q)
	return filled(q.Zones), err
}

// eraseScreen clears the terminal and starts at its top.
const eraseScreen = "\x1b[H\x1b[2J"

// watchQueue draws the queue each second until ctx is done.
func (s *session) watchQueue(ctx context.Context) error {
	for {
		zones, err := again(ctx, s.patience, func() ([]server.Zone, error) { return s.zones(ctx) },
			func(err error, _ time.Duration) { s.say("%s", troubleWords(err)) })
		if err != nil {
			return err
		}
		text := queueGrid(zones, s.colours).render(s.tableWidth(), !s.headless)
		if len(zones) == 0 {
			text = nothingWaits + "\n"
		}
		for _, line := range s.standing(ctx, "") {
			text += s.colours.paint(yellow, line) + "\n"
		}
		if err := s.write(eraseScreen + text); err != nil {
			return err
		}
		if !sleep(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

func queueGrid(zones []server.Zone, colours palette) grid {
	g := newGrid("ZONE", ">QUEUED", ">AGAIN", ">DUE", "OLDEST", ">OVERDUE", "NOTE")
	for _, z := range zones {
		overdue := "-"
		if z.Overdue > 0 {
			overdue = span(seconds(z.Overdue))
		}
		g.add(cell(z.Zone), num(z.Queued), num(z.Again), num(z.Due), moment(z.Oldest), overdue,
			orDash(colours.paint(yellow, zoneNote(z))))
	}
	return g
}

func num(n int64) string { return strconv.FormatInt(n, 10) }

// zoneNote says why nothing starts in a zone, if that is so.
func zoneNote(z server.Zone) string {
	var list []string
	if !z.Frozen.IsZero() {
		list = append(list, "frozen until "+moment(z.Frozen))
	}
	for _, note := range []string{z.Halted, z.Paused} {
		if note != "" {
			list = append(list, cell(note))
		}
	}
	if z.Why != "" {
		list = append(list, cell(z.Why))
	}
	return strings.Join(list, "; ")
}
