package hosts

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/fleet"
	"muster/jobs"
)

func newHostRelease() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "release HOST",
		Short: "Say that nothing is at work any more on a host that stayed locked",
		Long: `release gives a host back that stays locked behind a job which has ended: one that ended
unknown may be at work there up to its bound, and no other job begins before. Look at the
host first: muster hosts show tells for which job it is locked. A host of a job that has
not ended is not released; cancel that job.

A redundancy group that the job froze stays frozen: muster group clear.`,
		Example: `  muster hosts show fw001
  muster hosts release fw001 --reason 'no process of the upgrade is left, checked by hand'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		if err := cli.NeedReason(reason, "no process of it is left"); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		var did jobs.Released
		err := s.GiveOr(ctx, "/v1/hosts/"+url.PathEscape(args[0])+"/release",
			api.OrderRequest{Reason: reason, As: s.As}, &did,
			"look at `muster hosts show "+args[0]+"` before you give it again")
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(did)
		}
		return s.Write(releasedText(did))
	})
}

func releasedText(d jobs.Released) string {
	if d.Already {
		return fmt.Sprintf("host %s was not locked\n", cli.Cell(d.Host))
	}
	return fmt.Sprintf("host %s is free; it was locked until %s for job %s\n", cli.Cell(d.Host),
		cli.Moment(d.Until), cli.Cell(string(d.Job)))
}
