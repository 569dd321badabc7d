package hosts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/enroll"
	"muster/fleet"
	"muster/jobs"
)

// NewHosts also runs alone: hosts SELECTOR is hosts ls SELECTOR.
func NewHosts() *cobra.Command {
	c := newHostsList("hosts [SELECTOR]")
	c.AddCommand(newHostsList("ls [SELECTOR]"), newHostShow(), newHostDrain(), newHostUndrain(),
		newHostRelease(), newQuarantine(), newUnquarantine(), newQuarantined(),
		enroll.New(), newHostsImport(), withLive(newHostsCheck()), newHostsDiff())
	return c
}

// hostsFlags are the flags of hosts ls.
type hostsFlags struct {
	fold    bool
	columns []string
}

func newHostsList(use string) *cobra.Command {
	var f hostsFlags
	c := &cobra.Command{
		Use:   use,
		Short: "List the hosts of the fleet, or those that a selector picks",
		Long: `Without a selector ls lists all hosts, drained ones too. With a selector it lists the
hosts that a task would run on: drained hosts are left out, unless the selector mentions
drained.

` + cli.SelectorHelp,
		Example: `  muster hosts ls
  muster hosts ls 'customer=acme,role in (fw,vpn)'
  muster hosts ls 'fw[001-020]!fw007' --fold
  muster hosts ls '{drained}' -o json
  muster hosts ls @replaced.txt --columns host,address,role`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	c.Flags().BoolVar(&f.fold, "fold", false, "names only, in short: fw[001-300],vpn1")
	c.Flags().StringSliceVar(&f.columns, "columns", nil,
		"`list` of columns: "+strings.Join(hostColumnNames(), ", ")+
			", a label, or a fact such as fact.os")
	c.MarkFlagsMutuallyExclusive("fold", "columns")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		on, err := s.SelectorArg(ctx, args, cli.OrLeaveOut)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return listHosts(ctx, s, on, f)
	})
}

func listHosts(ctx context.Context, s *cli.Session, on string, f hostsFlags) error {
	l, err := s.Hosts(ctx, api.HostQuery{On: on})
	if err != nil {
		return err
	}
	s.SayLeftOut(l.LeftOut)
	switch {
	case f.fold && s.JSON:
		return s.WriteJSON(foldedHosts{l.Folded, l.Total})
	case f.fold:
		return s.Write(cli.Cell(l.Folded) + "\n")
	}
	said, err := factColumns(ctx, s, on, f.columns)
	if err != nil {
		return err
	}
	g, err := hostGrid(l, f.columns, said)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	rows := make([]hostRow, len(l.Hosts))
	for i, h := range l.Hosts {
		rows[i] = hostRow{Host: h, Unfenced: l.Unfenced[h.Name]}
		if d, drained := l.Drained[h.Name]; drained {
			rows[i].Drained = &d
		}
	}
	return s.List(rows, g, "there are no hosts")
}

// foldedHosts is hosts ls --fold in JSON.
type foldedHosts struct {
	Hosts string `json:"hosts"`
	Count int    `json:"count"`
}

// hostRow is a host in JSON.
type hostRow struct {
	fleet.Host
	Drained  *jobs.Drain `json:"drained,omitempty"`
	Unfenced string      `json:"unfenced,omitempty"` // why it keeps no record of attempts
}

// drainText explains why a host is drained; nil or empty: by its inventory.
func drainText(d *jobs.Drain) string {
	if d == nil || d.Note == "" {
		return "by a label of the inventory"
	}
	return cli.Cell(d.Note)
}

func labelText(labels map[string]string) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, cli.Cell(fmt.Sprintf("%s=%s", k, labels[k])))
	}
	return strings.Join(list, ",")
}
