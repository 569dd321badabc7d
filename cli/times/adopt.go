package times

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

func newWindowsAdopt() *cobra.Command {
	reason, yes, discard := "", false, false
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Have a server sign the timetable that Redis has, after you have looked at it",
		Long: `adopt vouches for the windows, freezes and approvals that Redis has. Servers with a key
sign all that changes them, and neither change nor believe a timetable that no server has
signed: one of an earlier version of muster, or one that somebody else wrote into Redis.
Nodes that require signatures begin nothing until then.

adopt shows the whole timetable, and on a terminal it asks; --yes answers beforehand.
Exactly what was shown is signed. Look at each freeze that you miss, and each approval
that you do not know. With --discard an empty timetable is signed in its place: apply the
files then, and approve the windows anew.`,
		Example: `  muster windows adopt --reason 'upgrade to signed windows'
  muster windows adopt --discard --reason 'INC-9: somebody wrote into Redis'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cli.AddReason(c, &reason)
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&discard, "discard", false, "sign an empty timetable in its place")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		if err := cli.NeedReason(reason, "upgrade to signed windows"); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		body := api.AdoptRequest{OrderRequest: api.OrderRequest{Reason: reason, As: s.As},
			Discard: discard}
		done := "an empty timetable is signed"
		if !discard {
			l, err := windowList(ctx, s.Client)
			if err != nil {
				return err
			}
			if l.Doubt != "" {
				fmt.Fprintf(s.Err, "%sversion %d, %s\nnobody vouches for it: %s\n", listText(s.Screen, l),
					l.Version, cli.Cell(l.Hash), cli.Cell(l.Doubt))
			}
			body.Hash, done = l.Hash, "the timetable is signed"
		}
		if !yes && !s.JSON && s.OutTerm && fromTerminal(c.InOrStdin()) {
			agreed, err := consents(c.InOrStdin(), s.Err, "Is this what was agreed?")
			if err != nil {
				return err
			}
			if !agreed {
				return errors.New("nothing was signed")
			}
		}
		return changeTimes(ctx, s, cli.Call{Path: "/v1/windows/adopt", Body: body}, done)
	})
}
