package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

func newGroup() *cobra.Command {
	c := &cobra.Command{
		Use:   "group",
		Short: "Show redundancy groups that are in use or frozen, and clear them",
		Long: `Of a redundancy group one host at a time is disturbed. A disruptive job that ended
unknown freezes its group: nobody knows in which state that host is, so no other
one is disturbed until a person has looked and clears the group.`,
		Example: `  muster group ls
  muster group clear acme-edge --reason 'fw001 is up and synchronised'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newGroupList(), newGroupClear())
	return c
}

func newGroupList() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:               "ls",
		Aliases:           []string{"list"},
		Short:             "List the groups that are in use or frozen",
		Example:           "  muster group ls\n  muster group ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *session, _ []string) error {
		list, err := s.groups(ctx)
		if err != nil {
			return err
		}
		return s.list(list, groupGrid(list, s.colours), "no group is in use or frozen")
	})
}

func (c *client) groups(ctx context.Context) ([]jobs.Group, error) {
	var l api.GroupList
	err := c.get(ctx, "/v1/groups", nil, &l)
	return filled(l.Groups), err
}

func groupGrid(list []jobs.Group, colours palette) grid {
	g := newGrid("GROUP", "ZONE", "STATE", "JOB", "SINCE", ">WAIT", "HOSTS", "WHY")
	for _, one := range list {
		state, job := "in use", one.Holder
		if one.Frozen != "" {
			state = colours.paint(yellow, "frozen")
			if one.Job != "" {
				job = one.Job
			}
		}
		g.add(cell(one.Name), cell(one.Zone), state, orDash(cell(string(job))), moment(one.Since),
			strconv.Itoa(one.Waits), orDash(fit(cell(fleet.Fold(one.Hosts)), 60)),
			orDash(fit(cell(one.Frozen), lineColumns)))
	}
	return g
}

func newGroupClear() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "clear GROUP",
		Short: "Say that a frozen group is well: its hosts may be disturbed again",
		Example: `  muster group clear acme-edge --reason 'fw001 is up and synchronised'
  muster group ls`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeGroups,
	}
	addReason(c, &reason)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return exit(exitUsage, err)
		}
		if err := needReason(reason, "both hosts are up"); err != nil {
			return exit(exitUsage, err)
		}
		var did jobs.Cleared
		// Given again it would clear what froze the group since, and nobody has looked at that.
		err := s.giveOr(ctx, "/v1/groups/"+url.PathEscape(args[0])+"/clear",
			api.OrderRequest{Reason: reason, As: s.as}, &did,
			"look at `muster group ls` before you give it again")
		if err != nil {
			return err
		}
		if s.json {
			return s.writeJSON(did)
		}
		return s.write(clearedText(did))
	})
}

func clearedText(d jobs.Cleared) string {
	text := fmt.Sprintf("group %s was not frozen; markers of jobs that nobody knows any more do not "+
		"count from now on\n", cell(d.Group))
	if !d.Already {
		text = fmt.Sprintf("group %s in zone %s is cleared", cell(d.Group), cell(d.Zone))
		if d.Was != "" {
			text += "; it was frozen: " + cell(d.Was)
		}
		text += "\n"
	}
	if d.Holder != "" {
		text += fmt.Sprintf("job %s holds it: the next one starts when that has ended\n",
			cell(string(d.Holder)))
	}
	return text
}
