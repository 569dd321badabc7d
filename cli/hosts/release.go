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
		Short: "Unlock a host on which nothing of an ended job runs any more",
		Long: `release unlocks a host that is still locked for a job which has ended. A job that ended
unknown may be at work on the host until its bound, so no other job begins there before.
Look at the host first: muster hosts show names the job. If the job has not ended,
release refuses; cancel the job instead.

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
