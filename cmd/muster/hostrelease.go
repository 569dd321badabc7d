package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
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
		ValidArgsFunction: completeHosts,
	}
	addReason(c, &reason)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return exit(exitUsage, err)
		}
		if err := needReason(reason, "no process of it is left"); err != nil {
			return exit(exitUsage, err)
		}
		var did jobs.Released
		err := s.giveOr(ctx, "/v1/hosts/"+url.PathEscape(args[0])+"/release",
			api.OrderRequest{Reason: reason, As: s.as}, &did,
			"look at `muster hosts show "+args[0]+"` before you give it again")
		if err != nil {
			return err
		}
		if s.json {
			return s.writeJSON(did)
		}
		return s.write(releasedText(did))
	})
}

func releasedText(d jobs.Released) string {
	if d.Already {
		return fmt.Sprintf("host %s was not locked\n", cell(d.Host))
	}
	return fmt.Sprintf("host %s is free; it was locked until %s for job %s\n", cell(d.Host),
		moment(d.Until), cell(string(d.Job)))
}
