// Package lanes has the command lanes: it shows the lanes of tasks, and lets one continue behind a
// task that failed.
//
// Floor 6: may import cli, cli/complete and what is below.
package lanes

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/jobs"
)

// New makes the command lanes.
func New() *cobra.Command {
	c := cli.Command(&cobra.Command{
		Use:   "lanes [KEY]",
		Short: "Show tasks that wait for their turn in a lane",
		Long: `A lane is a key that tasks share whose work must be in order, such as changes of one
policy: muster run --lane rules/acme. lanes lists the tasks of each lane in their order,
and why each waits. If a task failed and tasks of mode gate wait behind it, a person
decides: muster lanes continue TASK.`,
		Example: `  muster lanes
  muster lanes rules/acme -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		query := url.Values{}
		if len(args) > 0 {
			query.Set("key", args[0])
		}
		var l api.LaneList
		if err := s.Client.Get(ctx, "/v1/lanes", query, &l); err != nil {
			return err
		}
		return s.List(cli.Filled(l.Lanes), grid(l.Lanes), "no task is in a lane")
	})
	c.AddCommand(newContinue())
	return c
}

func grid(list []api.LaneInfo) cli.Grid {
	g := cli.NewGrid("CUSTOMER", "LANE", "TASK", "RUNBOOK", "OPERATOR", "MODE", "SINCE", "STATE",
		"WHY")
	for _, l := range list {
		for _, t := range l.Tasks {
			g.Add(cli.OrDash(cli.Cell(l.Customer)), cli.Cell(l.Key), cli.Cell(string(t.Task)),
				cli.Cell(t.Runbook), cli.Cell(t.By), cli.Cell(t.Mode), cli.Moment(t.Since),
				cli.Cell(t.State), cli.OrDash(cli.Cell(t.Why)))
		}
	}
	return g
}

func newContinue() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "continue TASK",
		Short: "Let a lane continue without a task that failed",
		Long: `continue takes a task that failed out of its lane, so that the next task of mode gate
begins. Nothing of the failed task is done again, and nothing of it is taken back: look
first at what it left on the hosts.`,
		Example:           `  muster lanes continue 0wcy7y2fb2 --reason 'fw7 has its old rules again'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := jobs.ParseTaskID(args[0])
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		var l api.LaneInfo
		err = s.Order(ctx, "/v1/tasks/"+string(id)+"/lane/continue", reason, &l)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(l)
		}
		return s.Write(continued(l, id))
	})
}

// continued describes a lane that continues.
func continued(l api.LaneInfo, without jobs.TaskID) string {
	var b strings.Builder
	fmt.Fprintf(&b, "lane %s continues without task %s\n", cli.Cell(l.Key), without)
	for _, t := range l.Tasks {
		fmt.Fprintf(&b, "  %s %s\n", t.Task, t.State)
	}
	return b.String()
}
