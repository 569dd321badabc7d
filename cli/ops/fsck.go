package ops

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/fleet"
	"muster/jobs"
)

// NewFsck makes the command fsck.
func NewFsck() *cobra.Command {
	zone, reason, mend := "", "", false
	c := &cobra.Command{
		Use:   "fsck",
		Short: "Compare what the queue says in several places, and mend what differs",
		Long: `fsck looks at every job of every task: it must be in exactly one place until it has its
outcome, the counters must be what is there, and who holds a group or a limit must
exist. It finds what a fault of muster, of Redis or of a person's hand has left; on a
sound queue it finds nothing, also while work goes on. With --mend it puts right what
it can. A job of which nothing is known any more ends unknown, it never runs again.

Exit codes: 0 nothing is left to do, 1 something is.`,
		Example: `  muster fsck
  muster fsck --zone zrh --mend --reason 'Redis was restored from a backup'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&zone, "zone", "", "only this `zone`; all if not given")
	c.Flags().BoolVar(&mend, "mend", false, "put right what can be")
	cli.CompleteFlagWith(c, "zone", complete.Zones)
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		names := []string{zone}
		if zone == "" {
			list, err := s.Zones(ctx)
			if err != nil {
				return err
			}
			names = names[:0]
			for _, z := range list {
				names = append(names, z.Zone)
			}
		} else if err := fleet.CheckZone(zone); err != nil {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("--zone: %w", err))
		}
		return fsckZones(ctx, s, names, api.FsckRequest{Mend: mend,
			OrderRequest: api.OrderRequest{Reason: reason, As: s.As}})
	})
}

// fsckZones examines zones and prints the findings of each.
func fsckZones(ctx context.Context, s *cli.Session, zones []string, b api.FsckRequest) error {
	list, well := []jobs.Fsck{}, true
	for _, zone := range zones {
		var f jobs.Fsck
		err := s.Do(ctx, cli.Call{Method: http.MethodPost, Bound: cli.SubmitTimeout,
			Path: "/v1/zones/" + url.PathEscape(zone) + "/fsck", Body: b}, &f)
		if err != nil {
			return err
		}
		f.Findings = cli.Filled(f.Findings)
		list, well = append(list, f), well && f.Well()
	}
	var err error
	if s.JSON {
		err = s.WriteJSON(list)
	} else {
		err = s.Write(fsckText(list, s.Colours))
	}
	if err == nil && !well {
		return cli.Exit(cli.ExitNotAll, nil)
	}
	return err
}

func fsckText(list []jobs.Fsck, colours cli.Palette) string {
	text := ""
	for _, f := range list {
		text += fmt.Sprintf("zone %s: %s of %s examined, ", cli.Cell(f.Zone), cli.Count(f.Jobs, "job"),
			cli.Count(f.Tasks, "task"))
		if len(f.Findings) == 0 {
			text += "nothing found\n"
			continue
		}
		text += cli.Count(len(f.Findings), "finding") + "\n"
		for _, x := range f.Findings {
			done := colours.Paint(cli.Yellow, "found ")
			if x.Mended {
				done = colours.Paint(cli.Green, "mended")
			}
			text += fmt.Sprintf("  %s  %s: %s: %s\n", done, cli.Cell(x.Object), cli.Cell(string(x.What)),
				cli.Cell(x.Detail))
		}
	}
	return text
}
