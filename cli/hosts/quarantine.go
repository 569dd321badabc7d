package hosts

import (
	"context"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
)

func newQuarantine() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "quarantine HOST|SELECTOR",
		Short: "Let hosts take no job but checks",
		Long: `quarantine sets hosts aside: selectors leave them out, and jobs that wait for them
go on waiting, whatever their task. Only checks begin there: dry runs (--check, --diff)
and runbooks that have nothing but checks. A check that succeeds releases its host; so
does muster hosts unquarantine. A job that has begun goes on, and its host is verified.

The setting server.quarantine.unknown sets a host aside when a job ends unknown there.`,
		Example: `  muster hosts quarantine fw001 --reason 'it answers strangely since the upgrade'
  muster run firewall fw001 --check --arg-file ruleset=now.nft`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		return turnHosts(ctx, s, "quarantine", args, reason)
	})
}

func newUnquarantine() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "unquarantine HOST|SELECTOR",
		Short: "Let hosts in quarantine take every job again",
		Long: `unquarantine releases hosts that take only checks. Look at them first: muster hosts
quarantined names the job that ended unknown there.`,
		Example: `  muster hosts quarantined
  muster hosts unquarantine fw001 --reason 'its rules are the old ones, checked by hand'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := cli.NeedReason(reason, "its rules are the old ones, checked by hand"); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return turnHosts(ctx, s, "unquarantine", args, reason)
	})
}

func newQuarantined() *cobra.Command {
	c := &cobra.Command{
		Use:   "quarantined",
		Short: "List the hosts that take no job but checks",
		Example: `  muster hosts quarantined
  muster hosts quarantined -o json`,
		Args: cobra.NoArgs,
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.QuarantineList
		if err := s.Client.Get(ctx, "/v1/quarantine", nil, &l); err != nil {
			return err
		}
		g := cli.NewGrid("HOST", "ZONE", "SINCE", "JOB", "WHY")
		for _, h := range l.Hosts {
			g.Add(cli.Cell(h.Host), cli.Cell(h.Zone), cli.Moment(h.Since),
				cli.OrDash(cli.Cell(string(h.Job))), cli.Cell(h.Why))
		}
		return s.List(cli.Filled(l.Hosts), g, "no host is in quarantine")
	})
}
