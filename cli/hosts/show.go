package hosts

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/reach"
	"muster/cli/watch"
	"muster/fleet"
	"muster/jobs"
)

func newHostShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show HOST",
		Short: "Show a host: its inventory, the job that has it now, its last jobs",
		Example: `  muster hosts show fw001
  muster hosts show fw001 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		h, err := host(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(h)
		}
		text := hostText(h, s.Now())
		if len(h.Jobs) > 0 {
			text += "\n" + watch.JobGrid(h.Jobs, s.Now(), s.Colours).Render(s.TableWidth(), !s.Headless)
		}
		return s.Write(text)
	})
}

// host returns one host by its name.
func host(ctx context.Context, c *cli.Client, name string) (h api.HostInfo, err error) {
	if err := fleet.CheckName(name); err != nil {
		return h, cli.Exit(cli.ExitUsage, fmt.Errorf("%w: want one host; `muster hosts ls` lists them",
			err))
	}
	return h, c.Get(ctx, "/v1/hosts/"+url.PathEscape(name), nil, &h)
}

func hostText(h api.HostInfo, now time.Time) string {
	drained := ""
	if h.IsDrained {
		drained = drainText(h.Drained)
		if h.Drained != nil {
			drained += ", " + cli.Ago(h.Drained.At, now)
		}
	}
	lock := "-"
	if h.Lock != "" {
		lock = fmt.Sprintf("job %s, until %s at the latest", cli.Cell(string(h.Lock)),
			cli.Moment(h.Until))
	}
	pairs := [][2]string{
		{"host", cli.Cell(h.Name)},
		{"address", cli.Cell(reach.Address(h.Host))},
		{"user", cli.Cell(h.User)},
		{"commands run as", becomeText(h.Host)},
		{"key", cli.OrDash(cli.Cell(h.Key))},
		{"certificate", cli.Cell(h.Certificate)},
		{"reached over", jumpText(h.Jump)},
		{"profile", cli.Cell(h.Profile)},
		{"zone", cli.Cell(h.Zone)},
		{"customer", cli.Cell(h.Customer)},
		{"group", cli.Cell(h.Group)},
		{"fence", fenceText(h.Fence, h.Unfenced)},
		{"labels", labelText(h.Labels)},
		{"limits", cli.Cell(strings.Join(h.Limits, ", "))},
		{"drained", drained},
		{"in use by", lock},
		{"inventory", cli.Cell(h.Inventory)},
	}
	for _, l := range []struct {
		name   string
		values []string
	}{{"host key", h.HostKeys}, {"host CA", h.HostCAs}, {"principal", h.Principals},
		{"revoked", h.Revoked}} {
		for _, value := range l.values {
			pairs = append(pairs, [2]string{l.name, cli.Cell(value)})
		}
	}
	return cli.Details(pairs...)
}

// jumpText names the jump hosts on the way to a host.
func jumpText(way []fleet.Hop) string {
	var names []string
	for _, hop := range way {
		names = append(names, cli.Cell(hop.Name))
	}
	return strings.Join(names, " → ")
}

// fenceCell shows a fence in a table.
func fenceCell(f fleet.Fence, unfenced string) string {
	if f == fleet.FenceNone || unfenced == "" {
		return cli.Cell(string(f))
	}
	return cli.Cell(string(f)) + ", unfenced: " + cli.Cell(unfenced)
}

// fenceText explains a fence, and whether the host reported that it cannot keep a record.
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
	return cli.Cell(string(f)) + ": keeps a record of attempts if it can"
}

// openJobs lists jobs in a message, some of them by name.
func openJobs(list []jobs.ID) string {
	const most = 5
	var names []string
	for _, id := range list[:min(len(list), most)] {
		names = append(names, cli.Cell(string(id)))
	}
	text := strings.Join(names, ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// becomeText names the user whom commands on a host run as; empty: the login user.
func becomeText(h fleet.Host) string {
	user := h.BecomesUser()
	if user == "" {
		return ""
	}
	return cli.Cell(user) + ", by sudo"
}
