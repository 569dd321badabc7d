package ops

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/fleet"
)

func newThaw() *cobra.Command {
	zone, reason := "", ""
	c := &cobra.Command{
		Use:   "thaw",
		Short: "End the freeze of a zone before its time",
		Long: `A zone freezes when its Redis may have forgotten something, until every child has
reported its jobs in hand or the longest lock has ended. thaw ends the freeze at once,
in one zone or in all frozen ones. That is safe only if every child that works has
reported: otherwise a host may get a second job beside the first.`,
		Example: `  muster nodes thaw --reason 'all nodes were restarted'
  muster nodes thaw --zone zrh --reason 'node3 is powered off'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&zone, "zone", "", "only this `zone`; all frozen ones if not given")
	cli.CompleteFlagWith(c, "zone", complete.Zones)
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		if err := cli.NeedReason(reason, "all nodes were restarted"); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		zones := []string{zone}
		if zone == "" {
			var err error
			if zones, err = frozenZones(ctx, s.Client); err != nil {
				return err
			}
		} else if err := fleet.CheckZone(zone); err != nil {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("--zone: %w", err))
		}
		return thawZones(ctx, s, zones, reason)
	})
}

func frozenZones(ctx context.Context, c *cli.Client) ([]string, error) {
	list, err := c.Zones(ctx)
	var frozen []string
	for _, z := range list {
		if !z.Frozen.IsZero() {
			frozen = append(frozen, z.Zone)
		}
	}
	return frozen, err
}

func thawZones(ctx context.Context, s *cli.Session, zones []string, reason string) error {
	list := []api.Thawed{}
	for _, zone := range zones {
		var did api.Thawed
		if err := s.Order(ctx, "/v1/zones/"+url.PathEscape(zone)+"/thaw", reason, &did); err != nil {
			return err
		}
		list = append(list, did)
	}
	if s.JSON {
		return s.WriteJSON(list)
	}
	text := ""
	for _, did := range list {
		if did.Already {
			text += fmt.Sprintf("zone %s was not frozen: nothing to do\n", cli.Cell(did.Zone))
		} else {
			text += fmt.Sprintf("zone %s is no longer frozen\n", cli.Cell(did.Zone))
		}
	}
	if text == "" {
		s.Say("no zone is frozen")
	}
	return s.Write(text)
}
