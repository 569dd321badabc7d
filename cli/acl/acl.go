package acl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/books"
	"muster/fleet"
	"muster/jobs/queue/keys"
)

// flags are the flags of muster acl.
type flags struct {
	zones        []string
	user, output string
	orders       bool
}

// New returns muster acl.
func New() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "acl",
		Short: "Print the users that Redis should have, for the zones of this house",
		Long: `acl prints a file of users for Redis (aclfile): one for servers, one for the nodes of
each zone, one for people. A node's user has the keys of its own zones and nothing of
the others; it cannot make tokens, change the inventory or replace code in Redis.

The users have no password, so nobody can log in as one before you give it one:
  redis-cli ACL SETUSER muster-node-dmz on '>PASSWORD'   and   redis-cli ACL SAVE

Nodes that serve several zones share a user: --user names it. With --orders acl prints
ACL SETUSER for a Redis that runs: passwords stay, and a user that is on stays on.
acl connects to nothing.

Exit codes: 0 it is printed, 2 wrong use.`,
		Example: `  muster acl > /etc/redis/users.acl
  muster acl --zone default --zone dmz
  muster acl --zone berlin --zone hamburg --user muster-node-north
  muster acl --zone dmz --orders | redis-cli`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{cli.Offline: "yes"},
		RunE:              func(c *cobra.Command, _ []string) error { return f.print(c) },
	}
	c.Flags().StringArrayVar(&f.zones, "zone", []string{"default"},
		"`zone` whose nodes get a user; can be given several times")
	c.Flags().StringVar(&f.user, "user", "",
		"`name` of one user for nodes that serve all the zones, in place of one a zone")
	c.Flags().BoolVar(&f.orders, "orders", false, "print ACL SETUSER commands in place of a file")
	books.OutputFlag(c, &f.output)
	cli.CompleteFlagWith(c, "zone", cobra.NoFileCompletions)
	cli.CompleteFlagWith(c, "user", cobra.NoFileCompletions)
	return c
}

func (f flags) print(c *cobra.Command) error {
	users, err := keys.Users(f.zones, f.user)
	if err = errors.Join(cli.CheckOutput(f.output), f.checkUser(), err); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	switch {
	case f.output == cli.OutputJSON:
		return cli.PrintJSON(c.OutOrStdout(), users)
	case f.orders:
		for _, u := range users {
			fmt.Fprintln(c.OutOrStdout(), u.Order())
		}
		return nil
	}
	fmt.Fprintln(c.OutOrStdout(), keys.DefaultUser)
	for _, u := range users {
		fmt.Fprintln(c.OutOrStdout(), u.Line())
	}
	return nil
}

// checkUser refuses names that would overwrite the permissions of another user.
func (f flags) checkUser() error {
	switch {
	case f.user == "":
		return nil
	case f.user == "default", f.user == "muster-server", f.user == "muster-admin":
		return fmt.Errorf("--user %s is not a user of nodes: want a name such as muster-node-%s", f.user,
			strings.Join(f.zones, "-"))
	}
	if err := fleet.CheckName(f.user); err != nil {
		return fmt.Errorf("--user: %w", err)
	}
	return nil
}
