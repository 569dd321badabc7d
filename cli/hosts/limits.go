package hosts

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/fleet"
	"muster/jobs"
)

// NewLimits makes the command limits.
func NewLimits() *cobra.Command {
	c := &cobra.Command{
		Use:   "limits",
		Short: "List the limits of the inventory, and the hosts that count against them",
		Long: `A limit is the number of jobs that may be at work at a time: on all hosts with a label,
or of all runbooks that name the limit. The inventory defines it. The list shows the
hosts whose jobs count against it now.`,
		Example:           "  muster limits\n  muster limits -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.LimitList
		if err := s.Get(ctx, "/v1/limits", nil, &l); err != nil {
			return err
		}
		for i := range l.Limits {
			l.Limits[i].Holders = cli.Filled(l.Limits[i].Holders)
		}
		return s.List(cli.Filled(l.Limits), limitGrid(l.Limits, s.Colours),
			"there are no limits: define them under `limits` in the inventory")
	})
}

func limitGrid(list []jobs.Limit, colours cli.Palette) cli.Grid {
	g := cli.NewGrid("LIMIT", "ZONE", ">USED", ">MAX", ">WAIT", "HOSTS")
	for _, l := range list {
		used := strconv.Itoa(l.Used)
		if l.Used >= l.Max {
			used = colours.Paint(cli.Yellow, used)
		}
		var hosts []string
		for _, id := range l.Holders {
			hosts = append(hosts, id.Host())
		}
		folded := cli.Cell(fleet.Fold(hosts))
		if l.Used > len(l.Holders) && len(l.Holders) > 0 {
			folded += ",…"
		}
		g.Add(cli.Cell(l.Name), cli.Cell(l.Zone), used, strconv.Itoa(l.Max), strconv.Itoa(l.Waits),
			cli.OrDash(cli.Fit(folded, 100)))
	}
	return g
}
