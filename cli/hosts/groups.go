package hosts

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/fleet"
	"muster/jobs"
)

// NewGroup makes the command group.
func NewGroup() *cobra.Command {
	c := &cobra.Command{
		Use:   "group",
		Short: "Show redundancy groups that are in use or frozen, and clear them",
		Long: `muster disturbs one host of a redundancy group at a time. A disruptive job that ended
unknown freezes its group: nobody knows the state of that host, so muster disturbs no
other one until a person has looked and clears the group.`,
		Example: `  muster group ls
  muster group clear acme-edge --reason 'fw001 is up and synchronised'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newGroupList(), newGroupClear())
	return c
}

func newGroupList() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "ls",
		Aliases:           []string{"list"},
		Short:             "List the groups that are in use or frozen",
		Example:           "  muster group ls\n  muster group ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		list, err := s.Groups(ctx)
		if err != nil {
			return err
		}
		return s.List(list, groupGrid(list, s.Colours), "no group is in use or frozen")
	})
}

func groupGrid(list []jobs.Group, colours cli.Palette) cli.Grid {
	g := cli.NewGrid("GROUP", "ZONE", "STATE", "JOB", "SINCE", ">WAIT", "HOSTS", "WHY")
	for _, one := range list {
		state, job := "in use", one.Holder
		if one.Frozen != "" {
			state = colours.Paint(cli.Yellow, "frozen")
			if one.Job != "" {
				job = one.Job
			}
		}
		g.Add(cli.Cell(one.Name), cli.Cell(one.Zone), state, cli.OrDash(cli.Cell(string(job))),
			cli.Moment(one.Since),
			strconv.Itoa(one.Waits), cli.OrDash(cli.Fit(cli.Cell(fleet.Fold(one.Hosts)), 60)),
			cli.OrDash(cli.Fit(cli.Cell(one.Frozen), watch.LineColumns)))
	}
	return g
}

func newGroupClear() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "clear GROUP",
		Short: "End the freeze of a group: its hosts may be disturbed again",
		Example: `  muster group clear acme-edge --reason 'fw001 is up and synchronised'
  muster group ls`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Groups,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		if err := cli.NeedReason(reason, "both hosts are up"); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		var did jobs.Cleared
		// A second clear would also end a later freeze, which nobody has looked at.
		err := s.GiveOr(ctx, "/v1/groups/"+url.PathEscape(args[0])+"/clear",
			api.OrderRequest{Reason: reason, As: s.As}, &did,
			"look at `muster group ls` before you give it again")
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(did)
		}
		return s.Write(clearedText(did))
	})
}

func clearedText(d jobs.Cleared) string {
	text := fmt.Sprintf("group %s was not frozen; markers of jobs that nobody knows any more do not "+
		"count from now on\n", cli.Cell(d.Group))
	if !d.Already {
		text = fmt.Sprintf("group %s in zone %s is cleared", cli.Cell(d.Group), cli.Cell(d.Zone))
		if d.Was != "" {
			text += "; it was frozen: " + cli.Cell(d.Was)
		}
		text += "\n"
	}
	if d.Holder != "" {
		text += fmt.Sprintf("job %s holds it: the next one starts when that has ended\n",
			cli.Cell(string(d.Holder)))
	}
	return text
}
