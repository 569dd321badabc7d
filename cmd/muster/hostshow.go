package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

func newHostShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show HOST",
		Short: "Show a host: what the inventory has, who has it now, its last jobs",
		Example: `  muster hosts show fw001
  muster hosts show fw001 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeHosts,
	}
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		h, err := s.host(ctx, args[0])
		if err != nil {
			return err
		}
		if s.json {
			return s.writeJSON(h)
		}
		text := hostText(h, s.now())
		if len(h.Jobs) > 0 {
			text += "\n" + jobGrid(h.Jobs, s.now(), s.colours).render(s.tableWidth(), !s.headless)
		}
		return s.write(text)
	})
}

// host asks for one host by its name.
func (c *client) host(ctx context.Context, name string) (h api.HostInfo, err error) {
	if err := fleet.CheckName(name); err != nil {
		return h, exit(exitUsage, fmt.Errorf("%w: want one host; `muster hosts ls` lists them", err))
	}
	return h, c.get(ctx, "/v1/hosts/"+url.PathEscape(name), nil, &h)
}

func hostText(h api.HostInfo, now time.Time) string {
	drained := ""
	if h.IsDrained {
		drained = drainText(h.Drained)
		if h.Drained != nil {
			drained += ", " + ago(h.Drained.At, now)
		}
	}
	lock := "-"
	if h.Lock != "" {
		lock = fmt.Sprintf("job %s, until %s at the latest", cell(string(h.Lock)), moment(h.Until))
	}
	pairs := [][2]string{
		{"host", cell(h.Name)},
		{"address", cell(hostAddress(h.Host))},
		{"user", cell(h.User)},
		{"commands run as", becomeText(h.Host)},
		{"key", orDash(cell(h.Key))},
		{"certificate", cell(h.Certificate)},
		{"reached over", jumpText(h.Jump)},
		{"profile", cell(h.Profile)},
		{"zone", cell(h.Zone)},
		{"customer", cell(h.Customer)},
		{"group", cell(h.Group)},
		{"fence", fenceText(h.Fence, h.Unfenced)},
		{"labels", labelText(h.Labels)},
		{"limits", cell(strings.Join(h.Limits, ", "))},
		{"drained", drained},
		{"in use by", lock},
		{"inventory", cell(h.Inventory)},
	}
	for _, l := range []struct {
		name   string
		values []string
	}{{"host key", h.HostKeys}, {"host CA", h.HostCAs}, {"principal", h.Principals},
		{"revoked", h.Revoked}} {
		for _, value := range l.values {
			pairs = append(pairs, [2]string{l.name, cell(value)})
		}
	}
	return details(pairs...)
}

// jumpText is the way to a host.
func jumpText(way []fleet.Hop) string {
	var names []string
	for _, hop := range way {
		names = append(names, cell(hop.Name))
	}
	return strings.Join(names, " → ")
}

// fenceCell is a fence in a table.
func fenceCell(f fleet.Fence, unfenced string) string {
	if f == fleet.FenceNone || unfenced == "" {
		return cell(string(f))
	}
	return cell(string(f)) + ", unfenced: " + cell(unfenced)
}

// fenceText says what a fence means, and whether the host said that it cannot keep a record.
func fenceText(f fleet.Fence, unfenced string) string {
	if f != fleet.FenceNone && unfenced != "" {
		return fenceCell(f, unfenced)
	}
	switch f {
	case fleet.FenceNone:
		return "none: unfenced, keeps no record of attempts"
	case fleet.FenceRequired:
		return "required: refused if it keeps no record of attempts"
	}
	return cell(string(f)) + ": keeps a record of attempts if it can"
}

// openJobs lists jobs in a message, some of them by name.
func openJobs(list []jobs.ID) string {
	const most = 5
	var names []string
	for _, id := range list[:min(len(list), most)] {
		names = append(names, cell(string(id)))
	}
	text := strings.Join(names, ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// becomeText says as whom commands run on a host; empty: as who logs in.
func becomeText(h fleet.Host) string {
	user := h.BecomesUser()
	if user == "" {
		return ""
	}
	return cell(user) + ", by sudo"
}
