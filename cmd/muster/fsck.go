package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

func newFsck() *cobra.Command {
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
	completeFlagWith(c, "zone", completeZones)
	addReason(c, &reason)
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		names := []string{zone}
		if zone == "" {
			list, err := s.zones(ctx)
			if err != nil {
				return err
			}
			names = names[:0]
			for _, z := range list {
				names = append(names, z.Zone)
			}
		} else if err := fleet.CheckZone(zone); err != nil {
			return exit(exitUsage, fmt.Errorf("--zone: %w", err))
		}
		return s.fsck(ctx, names, api.FsckRequest{Mend: mend,
			OrderRequest: api.OrderRequest{Reason: reason, As: s.as}})
	})
}

// fsck examines zones and tells what was found in each.
func (s *session) fsck(ctx context.Context, zones []string, b api.FsckRequest) error {
	list, well := []jobs.Fsck{}, true
	for _, zone := range zones {
		var f jobs.Fsck
		err := s.do(ctx, call{method: http.MethodPost, bound: submitTimeout,
			path: "/v1/zones/" + url.PathEscape(zone) + "/fsck", body: b}, &f)
		if err != nil {
			return err
		}
		f.Findings = filled(f.Findings)
		list, well = append(list, f), well && f.Well()
	}
	var err error
	if s.json {
		err = s.writeJSON(list)
	} else {
		err = s.write(fsckText(list, s.colours))
	}
	if err == nil && !well {
		return exit(exitNotAll, nil)
	}
	return err
}

func fsckText(list []jobs.Fsck, colours palette) string {
	text := ""
	for _, f := range list {
		text += fmt.Sprintf("zone %s: %s of %s examined, ", cell(f.Zone), count(f.Jobs, "job"),
			count(f.Tasks, "task"))
		if len(f.Findings) == 0 {
			text += "nothing found\n"
			continue
		}
		text += count(len(f.Findings), "finding") + "\n"
		for _, x := range f.Findings {
			done := colours.paint(yellow, "found ")
			if x.Mended {
				done = colours.paint(green, "mended")
			}
			text += fmt.Sprintf("  %s  %s: %s: %s\n", done, cell(x.Object), cell(string(x.What)),
				cell(x.Detail))
		}
	}
	return text
}
