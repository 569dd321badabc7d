package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
)

func newNodes() *cobra.Command {
	c := &cobra.Command{
		Use:               "nodes",
		Short:             "List the machines that work, and what they have in hand",
		Example:           "  muster nodes\n  muster nodes -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.AddCommand(newThaw(), newDuties())
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		var l api.NodeList
		if err := s.get(ctx, "/v1/nodes", nil, &l); err != nil {
			return err
		}
		for i := range l.Nodes {
			l.Nodes[i].Children = filled(l.Nodes[i].Children)
		}
		s.banner(ctx)
		s.freezes(ctx)
		err := s.list(filled(l.Nodes), nodeGrid(l.Nodes, s.now()),
			"there are no nodes, so no job runs: start one with `muster master`")
		if err != nil || s.json || s.headless || len(l.Duties) == 0 {
			return err
		}
		return s.write("\n" + dutyGrid(l.Duties).render(s.tableWidth(), true))
	})
}

// freezes says in which zones nothing starts, as Redis says itself: a node hears of it only
// when it asks for jobs, and with all its children busy it does not.
func (s *session) freezes(ctx context.Context) {
	if s.json {
		return
	}
	list, err := s.zones(ctx)
	if err != nil {
		return // it is no part of the answer
	}
	for _, z := range list {
		switch {
		case z.Owes:
			s.say("zone %s is frozen: %s", cell(z.Zone), cell(z.Why))
		case !z.Frozen.IsZero():
			s.say("zone %s is frozen until %s, %s left: %s", cell(z.Zone), moment(z.Frozen),
				span(max(z.Frozen.Sub(s.now()), 0)), cell(z.Why))
		}
	}
}

// dutyGrid tells which server does what only one does at a time.
func dutyGrid(list []jobs.Duty) grid {
	g := newGrid("DUTY", "SERVER", "TERM BEGAN")
	for _, d := range list {
		g.add(cell(d.Duty), dutyHolder(d), moment(jobs.TimeOf(jobs.Micros(d.Term))))
	}
	return g
}

func dutyHolder(d jobs.Duty) string {
	if d.Server == "" {
		return "nobody at this moment"
	}
	return cell(d.Server)
}

func newDuties() *cobra.Command {
	c := &cobra.Command{
		Use:   "duties",
		Short: "List what exactly one server does at a time, and which one that is",
		Long: `A duty is had by one server, for three seconds at a time. When that server dies another
one takes it over. tend looks after the queue, schedules fires the schedules, waves opens
waves and leads chains, history writes what happened into SQL.`,
		Example:           "  muster nodes duties\n  muster nodes duties -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		var l api.NodeList
		if err := s.get(ctx, "/v1/nodes", nil, &l); err != nil {
			return err
		}
		return s.list(filled(l.Duties), dutyGrid(l.Duties), "no server has had a duty yet")
	})
}

func nodeGrid(list []jobs.Node, now time.Time) grid {
	g := newGrid("NODE", ">PID", "STATE", "ZONES", ">CHILDREN", ">SLOTS", ">JOBS", "VERSION", "SEEN",
		"NOTE")
	for _, n := range list {
		g.add(cell(n.ID), strconv.Itoa(n.PID), cell(n.State), cell(strings.Join(n.Zones, ",")),
			fmt.Sprintf("%d/%d", len(n.Children), n.Limit), strconv.Itoa(n.Slots),
			strconv.Itoa(inHand(n)), cell(n.Version), ago(n.Seen, now), orDash(cell(nodeNote(n))))
	}
	return g
}

// nodeNote is what an operator should know of a node, its clock too.
func nodeNote(n jobs.Node) string {
	var notes []string
	if n.Clock.Wrong() {
		notes = append(notes, fmt.Sprintf("its clock is %s off that of Redis: it begins nothing that "+
			"needs a window", time.Duration(math.Abs(n.Clock.Skew)*float64(time.Second)).Round(
			time.Millisecond)))
	}
	if n.Clock.Loose != "" && n.State != queue.NodeGone {
		notes = append(notes, "no NTP")
	}
	if n.Note != "" {
		notes = append(notes, n.Note)
	}
	return strings.Join(notes, "; ")
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
