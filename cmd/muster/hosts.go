package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster/fleet"
	"muster/server"
)

func newHosts() *cobra.Command {
	c := &cobra.Command{
		Use:   "hosts [SELECTOR]",
		Short: "List the hosts of the fleet, or those that a selector picks",
		Example: `  muster hosts
  muster hosts 'customer=acme,role in (fw,vpn)'
  muster hosts 'fw[001-020]' -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeHosts,
	}
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		var q url.Values
		if len(args) > 0 {
			if strings.TrimSpace(args[0]) == "" {
				return exit(exitUsage, errors.New("the selector is empty: leave it out to see all hosts"))
			}
			q = url.Values{"on": args}
		}
		var l server.HostList
		if err := s.get(ctx, "/v1/hosts", q, &l); err != nil {
			return err
		}
		return s.list(filled(l.Hosts), hostGrid(l.Hosts), "there are no hosts")
	})
}

func hostGrid(list []fleet.Host) grid {
	g := newGrid("HOST", "ADDRESS", "USER", "ZONE", "CUSTOMER", "GROUP", "FENCE", "LABELS")
	for _, h := range list {
		g.add(cell(h.Name), cell(net.JoinHostPort(h.Address, strconv.Itoa(h.Port))), orDash(cell(h.User)),
			cell(h.Zone), orDash(cell(h.Customer)), orDash(cell(h.Group)), cell(string(h.Fence)),
			orDash(labelText(h.Labels)))
	}
	return g
}

func labelText(labels map[string]string) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, cell(fmt.Sprintf("%s=%s", k, labels[k])))
	}
	return strings.Join(list, ",")
}
