package hosts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/enroll"
	"muster/cli/reach"
	"muster/fleet"
	"muster/jobs"
)

// NewHosts also runs alone: hosts SELECTOR is hosts ls SELECTOR.
func NewHosts() *cobra.Command {
	c := newHostsList("hosts [SELECTOR]")
	c.AddCommand(newHostsList("ls [SELECTOR]"), newHostShow(), newHostDrain(), newHostUndrain(),
		newHostRelease(),
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
		Long: `Without a selector all hosts are listed, drained ones too. With one it is what a task
would run on: drained hosts are left out, unless the selector mentions drained.

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
		"`list` of columns: "+strings.Join(hostColumnNames, ", ")+", a label, or a fact such as fact.os")
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

// hostColumnNames are the columns of a table of hosts that are not labels.
var hostColumnNames = []string{"host", "address", "user", "zone", "customer", "group", "fence",
	"drained", "labels"}

// hostGrid returns a table of hosts. Without a list of columns it has all columns that are not
// empty.
func hostGrid(l api.HostList, columns []string, said map[string]fleet.Facts) (cli.Grid, error) {
	if len(columns) == 0 {
		columns = slices.DeleteFunc(slices.Clone(hostColumnNames), func(name string) bool {
			return name == "drained" && len(l.Drained) == 0
		})
	}
	var errs []error
	var head []string
	for _, name := range columns {
		has := func(h fleet.Host) bool { _, ok := h.Labels[name]; return ok }
		if fact, is := strings.CutPrefix(name, fleet.FactPrefix); is {
			if !slices.Contains(fleet.FactNames(), fact) {
				errs = append(errs, fmt.Errorf("--columns: there is no fact %q: want some of %s%s", fact,
					fleet.FactPrefix, strings.Join(fleet.FactNames(), ", "+fleet.FactPrefix)))
			}
		} else if !slices.Contains(hostColumnNames, name) && !slices.ContainsFunc(l.Hosts, has) {
			errs = append(errs, fmt.Errorf("--columns: %q is no column, and no label of these hosts: want "+
				"some of %s", name, strings.Join(hostColumnNames, ", ")))
		}
		head = append(head, strings.ToUpper(cli.Cell(name)))
	}
	g := cli.NewGrid(head...)
	for _, h := range l.Hosts {
		var cells []string
		for _, name := range columns {
			if fact, is := strings.CutPrefix(name, fleet.FactPrefix); is {
				cells = append(cells, cli.OrDash(cli.SaidCell(said[h.Name][fact])))
				continue
			}
			cells = append(cells, hostCell(h, l, name))
		}
		g.Add(cells...)
	}
	return g, errors.Join(errs...)
}

func hostCell(h fleet.Host, l api.HostList, column string) string {
	switch column {
	case "host":
		return cli.Cell(h.Name)
	case "address":
		return cli.Cell(reach.Address(h))
	case "user":
		return cli.OrDash(cli.Cell(h.User))
	case "zone":
		return cli.Cell(h.Zone)
	case "customer":
		return cli.OrDash(cli.Cell(h.Customer))
	case "group":
		return cli.OrDash(cli.Cell(h.Group))
	case "fence":
		return fenceCell(h.Fence, l.Unfenced[h.Name])
	case "drained":
		if d, is := l.Drained[h.Name]; is {
			return drainText(&d)
		}
		return "-"
	case "labels":
		return cli.OrDash(labelText(h.Labels))
	}
	return cli.OrDash(cli.Cell(h.Labels[column]))
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
