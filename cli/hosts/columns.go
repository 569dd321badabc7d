package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/cli/reach"
	"muster/fleet"
)

// hostCell returns what a column shows of a host.
type hostCell func(fleet.Host, api.HostList) string

// hostColumns are the columns of hosts ls that are neither labels nor facts, from left to right.
var hostColumns = []struct {
	name string
	cell hostCell
}{
	{"host", func(h fleet.Host, _ api.HostList) string { return cli.Cell(h.Name) }},
	{"address", func(h fleet.Host, _ api.HostList) string { return cli.Cell(reach.Address(h)) }},
	{"user", func(h fleet.Host, _ api.HostList) string { return cli.OrDash(cli.Cell(h.User)) }},
	{"zone", func(h fleet.Host, _ api.HostList) string { return cli.Cell(h.Zone) }},
	{"customer", func(h fleet.Host, _ api.HostList) string {
		return cli.OrDash(cli.Cell(h.Customer))
	}},
	{"group", func(h fleet.Host, _ api.HostList) string { return cli.OrDash(cli.Cell(h.Group)) }},
	{"fence", func(h fleet.Host, l api.HostList) string {
		return fenceCell(h.Fence, l.Unfenced[h.Name])
	}},
	{"drained", func(h fleet.Host, l api.HostList) string {
		if d, is := l.Drained[h.Name]; is {
			return drainText(&d)
		}
		return "-"
	}},
	{"labels", func(h fleet.Host, _ api.HostList) string { return cli.OrDash(labelText(h.Labels)) }},
}

// hostColumnNames returns the names of the columns, from left to right.
func hostColumnNames() (names []string) {
	for _, c := range hostColumns {
		names = append(names, c.name)
	}
	return names
}

// hostColumn returns what shows a column, a fact or a label of hosts.
func hostColumn(name string, l api.HostList, said map[string]fleet.Facts) (hostCell, error) {
	for _, c := range hostColumns {
		if c.name == name {
			return c.cell, nil
		}
	}
	if fact, is := strings.CutPrefix(name, fleet.FactPrefix); is {
		if !slices.Contains(fleet.FactNames(), fact) {
			return nil, fmt.Errorf("--columns: there is no fact %q: want some of %s%s", fact,
				fleet.FactPrefix, strings.Join(fleet.FactNames(), ", "+fleet.FactPrefix))
		}
		return func(h fleet.Host, _ api.HostList) string {
			return cli.OrDash(cli.SaidCell(said[h.Name][fact]))
		}, nil
	}
	has := func(h fleet.Host) bool { _, ok := h.Labels[name]; return ok }
	if !slices.ContainsFunc(l.Hosts, has) {
		return nil, fmt.Errorf("--columns: %q is no column, and no label of these hosts: want "+
			"some of %s", name, strings.Join(hostColumnNames(), ", "))
	}
	return func(h fleet.Host, _ api.HostList) string {
		return cli.OrDash(cli.Cell(h.Labels[name]))
	}, nil
}

// hostGrid returns a table of hosts. Without a list of columns it has all of hostColumns, but
// drained only if a host of the list is drained.
func hostGrid(l api.HostList, columns []string, said map[string]fleet.Facts) (cli.Grid, error) {
	if len(columns) == 0 {
		columns = slices.DeleteFunc(hostColumnNames(), func(name string) bool {
			return name == "drained" && len(l.Drained) == 0
		})
	}
	head, cells := make([]string, len(columns)), make([]hostCell, len(columns))
	errs := make([]error, len(columns))
	for i, name := range columns {
		head[i] = strings.ToUpper(cli.Cell(name))
		cells[i], errs[i] = hostColumn(name, l, said)
	}
	g := cli.NewGrid(head...)
	if err := errors.Join(errs...); err != nil {
		return g, err
	}
	for _, h := range l.Hosts {
		row := make([]string, len(cells))
		for i, cell := range cells {
			row[i] = cell(h, l)
		}
		g.Add(row...)
	}
	return g, nil
}

// factColumns returns the facts of the hosts that a selector picks, by host, if a table will show
// some.
func factColumns(ctx context.Context, s *cli.Session, on string, columns []string) (
	map[string]fleet.Facts, error) {
	isFact := func(name string) bool { return strings.HasPrefix(name, fleet.FactPrefix) }
	if s.JSON || !slices.ContainsFunc(columns, isFact) {
		return nil, nil
	}
	if on = cmp.Or(on, "all"); len(on) > cli.URLMax {
		on = "all" // of more hosts than the table shows, but it fits a URL
	}
	l, err := facts(ctx, s.Client, on)
	said := make(map[string]fleet.Facts, len(l.Hosts))
	for _, h := range l.Hosts {
		said[h.Host] = h.Facts
	}
	return said, err
}
