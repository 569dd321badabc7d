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
		Short: "Check that the parts of the queue agree, and mend what differs",
		Long: `fsck checks every job of every task: the job must be in exactly one place until it has
its outcome, the counters must agree with the jobs, and each job that holds a group or
a limit must exist. fsck finds what a fault of muster or of Redis, or a change by hand,
has left; in a sound queue it finds nothing, also while jobs run. With --mend it
corrects what it can. A job about which nothing is known any more ends unknown and
never runs again.

Exit codes: 0 nothing is left to do, 1 something is.`,
		Example: `  muster fsck
  muster fsck --zone zrh --mend --reason 'Redis was restored from a backup'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&zone, "zone", "", "only this `zone`; all if not given")
	c.Flags().BoolVar(&mend, "mend", false, "correct what can be corrected")
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
