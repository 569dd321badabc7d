package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/fleet"
)

func newThaw() *cobra.Command {
	zone, reason := "", ""
	c := &cobra.Command{
		Use:   "thaw",
		Short: "End the freeze of a zone before its time",
		Long: `A zone freezes when its Redis may have forgotten something, until every child has
said what it has in hand or its longest lock is over. thaw ends that at once, in one
zone or in all that are frozen. It is safe if no child works that was not heard of:
otherwise a host may get a second job beside the first.`,
		Example: `  muster nodes thaw --reason 'all nodes were restarted'
  muster nodes thaw --zone zrh --reason 'node3 is powered off'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&zone, "zone", "", "only this `zone`; all frozen ones if not given")
	completeFlagWith(c, "zone", completeZones)
	addReason(c, &reason)
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		if err := needReason(reason, "all nodes were restarted"); err != nil {
			return exit(exitUsage, err)
		}
		zones := []string{zone}
		if zone == "" {
			var err error
			if zones, err = s.frozenZones(ctx); err != nil {
				return err
			}
		} else if err := fleet.CheckZone(zone); err != nil {
			return exit(exitUsage, fmt.Errorf("--zone: %w", err))
		}
		return s.thaw(ctx, zones, reason)
	})
}

func (c *client) frozenZones(ctx context.Context) ([]string, error) {
	list, err := c.zones(ctx)
	var frozen []string
	for _, z := range list {
		if !z.Frozen.IsZero() {
			frozen = append(frozen, z.Zone)
		}
	}
	return frozen, err
}

func (s *session) thaw(ctx context.Context, zones []string, reason string) error {
	list := []api.Thawed{}
	for _, zone := range zones {
		var did api.Thawed
		if err := s.order(ctx, "/v1/zones/"+url.PathEscape(zone)+"/thaw", reason, &did); err != nil {
			return err
		}
		list = append(list, did)
	}
	if s.json {
		return s.writeJSON(list)
	}
	text := ""
	for _, did := range list {
		if did.Already {
			text += fmt.Sprintf("zone %s was not frozen: nothing to do\n", cell(did.Zone))
		} else {
			text += fmt.Sprintf("zone %s is no longer frozen\n", cell(did.Zone))
		}
	}
	if text == "" {
		s.say("no zone is frozen")
	}
	return s.write(text)
}
