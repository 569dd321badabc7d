package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

// newHosts is a command by itself, too: hosts SELECTOR is hosts ls SELECTOR.
func newHosts() *cobra.Command {
	c := newHostsList("hosts [SELECTOR]")
	c.AddCommand(newHostsList("ls [SELECTOR]"), newHostShow(), newHostDrain(), newHostUndrain(),
		newHostRelease(),
		newHostEnroll(), newHostsImport(), withLive(newHostsCheck()), newHostsDiff())
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

` + selectorHelp,
		Example: `  muster hosts ls
  muster hosts ls 'customer=acme,role in (fw,vpn)'
  muster hosts ls 'fw[001-020]!fw007' --fold
  muster hosts ls '{drained}' -o json
  muster hosts ls @replaced.txt --columns host,address,role`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeHosts,
	}
	c.Flags().BoolVar(&f.fold, "fold", false, "names only, in short: fw[001-300],vpn1")
	c.Flags().StringSliceVar(&f.columns, "columns", nil,
		"`list` of columns: "+strings.Join(hostColumnNames, ", ")+", a label, or a fact such as fact.os")
	c.MarkFlagsMutuallyExclusive("fold", "columns")
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		on, err := s.selectorArg(ctx, args, orLeaveOut)
		if err != nil {
			return exit(exitUsage, err)
		}
		return s.listHosts(ctx, on, f)
	})
}

// selectorHelp is what commands say about selectors.
const selectorHelp = `A selector is labels (role=fw,customer in (acme,example),!drained), names and
ranges (fw[001-020],vpn*), or both (fw*&{customer=acme}); , adds, ! takes away,
& keeps what is in both, ^ what is in one only. @FILE stands for the hosts in a
file, one name or selector a line; task:ID/failed for those on which an earlier
task failed, task:last/failed for those of your last one; group.web for the group
web of an Ansible inventory.`

// What an empty selector could have meant, which is an error and never all hosts: a
// variable of a script may not be set.
const (
	orLeaveOut = "leave it out to see all hosts"
	orSayAll   = "name the hosts, such as fw001 or role=fw, or say all"
)

// selectorArg is the selector that a command was given, empty if there is none. instead
// is what to do if it is there and empty.
func (s *session) selectorArg(ctx context.Context, args []string, instead string) (string,
	error) {
	if len(args) == 0 {
		return "", nil
	}
	if strings.TrimSpace(args[0]) == "" {
		return "", errors.New("the selector is empty: " + instead)
	}
	return withFiles(args[0], s.files.reader(ctx))
}

func (s *session) listHosts(ctx context.Context, on string, f hostsFlags) error {
	l, err := s.hosts(ctx, api.HostQuery{On: on})
	if err != nil {
		return err
	}
	s.sayLeftOut(l.LeftOut)
	switch {
	case f.fold && s.json:
		return s.writeJSON(foldedHosts{l.Folded, l.Total})
	case f.fold:
		return s.write(cell(l.Folded) + "\n")
	}
	said, err := s.factColumns(ctx, on, f.columns)
	if err != nil {
		return err
	}
	g, err := hostGrid(l, f.columns, said)
	if err != nil {
		return exit(exitUsage, err)
	}
	rows := make([]hostRow, len(l.Hosts))
	for i, h := range l.Hosts {
		rows[i] = hostRow{Host: h, Unfenced: l.Unfenced[h.Name]}
		if d, drained := l.Drained[h.Name]; drained {
			rows[i].Drained = &d
		}
	}
	return s.list(rows, g, "there are no hosts")
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

// sayLeftOut tells what a selector meant and did not get.
func (s *screen) sayLeftOut(o api.LeftOut) {
	if o.Drained != "" {
		s.say("drained, left out: %s", cell(o.Drained))
	}
	if o.Gone != "" {
		s.say("in the inventory no more, left out: %s", cell(o.Gone))
	}
	if o.Closed != "" {
		s.say("no approved window, left out: %s", cell(o.Closed))
	}
}

const (
	// hostPage is how many hosts are asked for at once.
	hostPage = 2000
	// urlMax is how long a selector may be that is sent in a URL.
	urlMax = 2000 // bytes
)

// hosts asks for the hosts that a selector picks, or for all, page by page.
func (c *client) hosts(ctx context.Context, q api.HostQuery) (api.HostList, error) {
	var all api.HostList
	q.Limit, q.Fold = hostPage, true
	for {
		var page api.HostList
		if err := c.hostsPage(ctx, q, &page); err != nil {
			return all, err
		}
		if q.Cursor == "" {
			all = page
		} else {
			all.Hosts = append(all.Hosts, page.Hosts...)
			maps.Copy(all.Drained, page.Drained)
			maps.Copy(all.Unfenced, page.Unfenced)
		}
		if page.Next == "" {
			return all, nil
		}
		if len(page.Hosts) == 0 || page.Next == q.Cursor {
			return all, c.nonsense("its list of hosts has no end")
		}
		q.Cursor = page.Next
		if all.Drained == nil {
			all.Drained = map[string]jobs.Drain{}
		}
		if all.Unfenced == nil {
			all.Unfenced = map[string]string{}
		}
	}
}

func (c *client) hostsPage(ctx context.Context, q api.HostQuery, page *api.HostList) error {
	if len(q.On) > urlMax {
		return c.do(ctx, call{method: http.MethodPost, path: "/v1/hosts/query", body: q,
			bound: callTimeout}, page)
	}
	v := url.Values{"limit": {strconv.Itoa(q.Limit)}, "fold": {"true"}}
	if q.On != "" {
		v.Set("on", q.On)
	}
	if q.Cursor != "" {
		v.Set("cursor", q.Cursor)
	}
	if q.Drained {
		v.Set("drained", "true")
	}
	return c.get(ctx, "/v1/hosts", v, page)
}

// hostColumnNames are the columns of a table of hosts that are no labels.
var hostColumnNames = []string{"host", "address", "user", "zone", "customer", "group", "fence",
	"drained", "labels"}

// hostGrid is a table of hosts. Without a list of columns it has all that tell
// something.
func hostGrid(l api.HostList, columns []string, said map[string]fleet.Facts) (grid, error) {
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
		head = append(head, strings.ToUpper(cell(name)))
	}
	g := newGrid(head...)
	for _, h := range l.Hosts {
		var cells []string
		for _, name := range columns {
			if fact, is := strings.CutPrefix(name, fleet.FactPrefix); is {
				cells = append(cells, orDash(saidCell(said[h.Name][fact])))
				continue
			}
			cells = append(cells, hostCell(h, l, name))
		}
		g.add(cells...)
	}
	return g, errors.Join(errs...)
}

func hostCell(h fleet.Host, l api.HostList, column string) string {
	switch column {
	case "host":
		return cell(h.Name)
	case "address":
		return cell(hostAddress(h))
	case "user":
		return orDash(cell(h.User))
	case "zone":
		return cell(h.Zone)
	case "customer":
		return orDash(cell(h.Customer))
	case "group":
		return orDash(cell(h.Group))
	case "fence":
		return fenceCell(h.Fence, l.Unfenced[h.Name])
	case "drained":
		if d, is := l.Drained[h.Name]; is {
			return drainText(&d)
		}
		return "-"
	case "labels":
		return orDash(labelText(h.Labels))
	}
	return orDash(cell(h.Labels[column]))
}

func hostAddress(h fleet.Host) string {
	return net.JoinHostPort(h.Address, strconv.Itoa(h.Port))
}

// drainText says why a host is drained; nil or empty: by its inventory.
func drainText(d *jobs.Drain) string {
	if d == nil || d.Note == "" {
		return "by a label of the inventory"
	}
	return cell(d.Note)
}

func labelText(labels map[string]string) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, cell(fmt.Sprintf("%s=%s", k, labels[k])))
	}
	return strings.Join(list, ",")
}
