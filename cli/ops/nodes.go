package ops

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/watch"
	"muster/jobs"
)

// NewNodes makes the command nodes.
func NewNodes() *cobra.Command {
	c := &cobra.Command{
		Use:               "nodes",
		Short:             "List the nodes, and the jobs that they have in hand",
		Example:           "  muster nodes\n  muster nodes -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.AddCommand(newPauseNode(), newResumeNode(), newThaw(), newDuties())
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.NodeList
		if err := s.Get(ctx, "/v1/nodes", nil, &l); err != nil {
			return err
		}
		for i := range l.Nodes {
			l.Nodes[i].Children = cli.Filled(l.Nodes[i].Children)
		}
		none := whenNone(watch.Banner(ctx, s),
			"there are no nodes, so no job runs: start one with `muster master`")
		freezes(ctx, s)
		err := s.List(cli.Filled(l.Nodes), nodeGrid(l.Nodes, s.Now()), none)
		if err != nil || s.JSON || s.Headless || len(l.Duties) == 0 {
			return err
		}
		return s.Write("\n" + dutyGrid(l.Duties).Render(s.TableWidth(), true))
	})
}

// freezes prints the zones in which nothing starts, as Redis has them: a node learns of a freeze
// only when it asks for jobs, and with all its children busy it does not.
func freezes(ctx context.Context, s *cli.Session) {
	if s.JSON {
		return
	}
	list, err := s.Zones(ctx)
	if err != nil {
		return // freezes are no part of the answer
	}
	for _, z := range list {
		switch {
		case z.Owes:
			s.Say("zone %s is frozen: %s", cli.Cell(z.Zone), cli.Cell(z.Why))
		case !z.Frozen.IsZero():
			s.Say("zone %s is frozen until %s, %s left: %s", cli.Cell(z.Zone), cli.Moment(z.Frozen),
				cli.Span(max(z.Frozen.Sub(s.Now()), 0)), cli.Cell(z.Why))
		}
	}
}

// dutyGrid shows which server has each duty.
func dutyGrid(list []jobs.Duty) cli.Grid {
	g := cli.NewGrid("DUTY", "SERVER", "TERM BEGAN")
	for _, d := range list {
		g.Add(cli.Cell(d.Duty), dutyHolder(d), cli.Moment(jobs.TimeOf(jobs.Micros(d.Term))))
	}
	return g
}

func dutyHolder(d jobs.Duty) string {
	if d.Server == "" {
		return "nobody at this moment"
	}
	return cli.Cell(d.Server)
}

func newDuties() *cobra.Command {
	c := &cobra.Command{
		Use:   "duties",
		Short: "List the duties, and the server that has each",
		Long: `One server has each duty, for three seconds at a time. When that server dies, another
one takes the duty over. tend cares for the queue, schedules fires the schedules, waves
opens waves and continues chains, history writes events into SQL.`,
		Example:           "  muster nodes duties\n  muster nodes duties -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.NodeList
		if err := s.Get(ctx, "/v1/nodes", nil, &l); err != nil {
			return err
		}
		return s.List(cli.Filled(l.Duties), dutyGrid(l.Duties), "no server has had a duty yet")
	})
}

func nodeGrid(list []jobs.Node, now time.Time) cli.Grid {
	g := cli.NewGrid("NODE", ">PID", "STATE", "ZONES", ">CHILDREN", ">SLOTS", ">JOBS", "VERSION",
		"SEEN",
		"NOTE")
	for _, n := range list {
		g.Add(cli.Cell(n.ID), strconv.Itoa(n.PID), cli.Cell(stateOf(n)), cli.Cell(strings.Join(n.Zones,
			",")),
			fmt.Sprintf("%d/%d", len(n.Children), n.Most()), strconv.Itoa(n.Slots),
			strconv.Itoa(inHand(n)), cli.Cell(n.Version), cli.Ago(n.Seen, now),
			cli.OrDash(cli.Cell(nodeNote(n))))
	}
	return g
}

// nodeNote returns the warnings about a node, its clock included.
func nodeNote(n jobs.Node) string {
	var notes []string
	if n.Clock.Wrong() {
		notes = append(notes, fmt.Sprintf("its clock is %s off that of Redis: it begins nothing that "+
			"needs a window", time.Duration(math.Abs(n.Clock.Skew)*float64(time.Second)).Round(
			time.Millisecond)))
	}
	if n.Clock.Loose != "" && n.State != jobs.NodeGone {
		notes = append(notes, "no NTP")
	}
	notes = append(notes, held(n)...)
	if n.Note != "" {
		notes = append(notes, n.Note)
	}
	return strings.Join(notes, "; ")
}

// inHand returns how many jobs a node works on.
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
