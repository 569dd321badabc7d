package orders

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/jobs"
)

func newRolloutChains() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "chains",
		Short: "List orders of several tasks (run --staged, --roll-back) that have not ended",
		Example: `  muster rollout chains
  muster rollout chains -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.ChainList
		if err := s.Get(ctx, "/v1/chains", nil, &l); err != nil {
			return err
		}
		g := cli.NewGrid("CHAIN", "RUNBOOK", "OPERATOR", "STATE", ">TOTAL", ">FAILED", ">MAY FAIL", "AT",
			"WHY")
		for _, i := range l.Chains {
			g.Add(cli.Cell(string(i.Chain)), cli.Cell(i.Runbook), cli.Cell(i.Operator),
				cli.Cell(string(i.State)),
				fmt.Sprint(i.Total), fmt.Sprint(i.Failed), fmt.Sprint(i.MaxFailed),
				cli.OrDash(cli.Moment(i.At)),
				cli.OrDash(cli.Fit(cli.Cell(i.Why), watch.LineColumns)))
		}
		watch.Banner(ctx, s)
		return s.List(cli.Filled(l.Chains), g, "no order of several tasks is on its way")
	})
}

func newRolloutUndo() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "undo TASK",
		Short: "Undo on all hosts what run --staged or --roll-back did",
		Long: `undo cancels the jobs that have not begun, and undoes the rest with the runbook that the
task's own runbook names under undo. It does so once.`,
		Example:           `  muster rollout undo 0wcy7y2fb2 --reason 'customers of acme are cut off'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if err == nil {
			if err = cli.NeedReason(reason, "customers of acme are cut off"); err != nil {
				err = cli.Exit(cli.ExitUsage, err)
			}
		}
		if err != nil {
			return err
		}
		return orderChain(ctx, s, id, "undo", reason)
	})
}

// orderChain gives an order about a chain and shows the chain afterwards.
func orderChain(ctx context.Context, s *cli.Session, id jobs.TaskID, verb, reason string) error {
	var i jobs.ChainInfo
	if err := s.Order(ctx, watch.ChainPath(id)+"/"+verb, reason, &i); err != nil {
		return cli.RefusedUse(err)
	}
	return watch.WriteChain(s.Screen, i)
}
