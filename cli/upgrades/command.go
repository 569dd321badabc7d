package upgrades

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

// New makes the command upgrade.
func New() *cobra.Command {
	c := &cobra.Command{
		Use:     "upgrade",
		Short:   "Say how far an upgrade is, and what still runs the old version",
		Long:    "upgrade says whether the old version of muster is gone. It changes nothing.",
		Example: "  muster upgrade status",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newStatus())
	return c
}

func newStatus() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "List versions by servers and nodes, and what holds an upgrade",
		Long: `status counts which version servers, nodes and their children run, names the form of the
data in Redis and in SQL, and says of all that does not run the new version what it is,
which jobs it has in hand, and what to do. The new version is that of the server which
answers, unless --to names one.

What does not report counts as held: nobody knows whether it still runs. A server reports
to Redis every five seconds; one of a version that does not is missing in the list.

Exit codes: 0 only the new version is left, 1 something holds, 2 wrong use, 3 the server
does not answer.`,
		Example: `  muster upgrade status
  muster upgrade status --to 1.4.0
  until muster upgrade status >/dev/null; do sleep 5; done
  muster upgrade status -o json | jq '.holds[].jobs'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	to := ""
	c.Flags().StringVar(&to, "to", "", "the new `version` (default that of the server)")
	cli.CompleteFlagWith(c, "to", cobra.NoFileCompletions)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		var u api.UpgradeState
		var l api.NodeList
		if err := s.Get(ctx, "/v1/upgrade", nil, &u); err != nil {
			return err
		}
		if err := s.Get(ctx, "/v1/nodes", nil, &l); err != nil {
			return err
		}
		if to == "" {
			to = u.Version
		}
		st := judgeAll(to, u, l.Nodes)
		var err error
		if s.JSON {
			err = s.WriteJSON(st)
		} else {
			err = s.Write(st.text(s.TableWidth(), !s.Headless))
		}
		if err == nil && !st.Complete {
			return cli.Exit(cli.ExitNotAll, nil)
		}
		return err
	})
}

// text shows a status to people.
func (st Status) text(width int, headings bool) string {
	g := cli.NewGrid("VERSION", ">SERVERS", ">NODES", ">DRAINING", ">GONE", ">OLD CHILDREN", ">JOBS")
	for _, v := range st.Versions {
		g.Add(cli.Cell(v.Version), strconv.Itoa(v.Servers), strconv.Itoa(v.Running),
			strconv.Itoa(v.Draining), strconv.Itoa(v.Gone), strconv.Itoa(v.Children), strconv.Itoa(v.Jobs))
	}
	f := cli.NewGrid("DATA", "FORM", "SINCE VERSION", "SERVER KNOWS")
	for _, d := range st.Forms {
		f.Add(cli.Cell(d.Where), cli.OrDash(cli.Cell(d.Has)), cli.OrDash(cli.Cell(d.By)),
			cli.OrDash(cli.Cell(d.Knows)))
	}
	out := g.Render(width, headings) + "\n" + f.Render(width, headings) + "\n"
	if st.Complete {
		return out + fmt.Sprintf("only %s runs: the old version is gone\n", cli.Cell(st.To))
	}
	for _, h := range st.Holds {
		out += fmt.Sprintf("%s %s, version %s", h.What, cli.Cell(h.Where), cli.Cell(h.Version))
		if len(h.Jobs) > 0 {
			out += ", has in hand " + cli.Cell(cli.Join(h.Jobs))
		}
		out += ": " + cli.SaidCell(h.Do) + "\n"
	}
	return out + fmt.Sprintf("%s before only %s runs\n", cli.Count(len(st.Holds), "thing"),
		cli.Cell(st.To))
}
