package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

// NewSession makes the command session.
func NewSession() *cobra.Command {
	c := &cobra.Command{
		Use:   "session",
		Short: "List and end the sessions of browsers and of logins",
		Long: `A session begins with muster login and ends by itself: after 12 hours, when nobody uses
it for 8, or with the token that it was begun with. Everybody sees and ends their own
sessions; admins do so for others.`,
		Example: `  muster session ls
  muster session rm 4x7hqk3a754z
  muster session rm --of user:alice                 # who has left`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newList(), newRemove())
	return c
}

func newList() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the sessions",
		Long: `ls lists your sessions; for admins, those of all. KIND is browser, program for the
command line, or link for a link that nobody has used. BY is what proved the owner.
USED is when a session was used last, within a minute.`,
		Example:           "  muster session ls\n  muster session ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		l, err := list(ctx, s)
		if err != nil {
			return err
		}
		g := cli.NewGrid("ID", "KIND", "OWNER", "BY", "CREATED", "EXPIRES", "USED")
		for _, one := range l.Sessions {
			g.Add(cli.Cell(one.ID), cli.Cell(one.Kind), cli.Cell(one.Owner), cli.Cell(one.Proof),
				cli.Moment(one.Created), cli.Moment(one.Expires), cli.Moment(one.Used))
		}
		for _, one := range l.Sessions {
			if one.Wrong != "" {
				s.Say("%s: %s, so it proves nobody", cli.Cell(one.ID), cli.Cell(one.Wrong))
			}
		}
		return s.List(cli.Filled(l.Sessions), g,
			"there are no sessions: `muster login --browser` begins one")
	})
}

func list(ctx context.Context, s *cli.Session) (l api.SessionList, err error) {
	return l, s.Get(ctx, "/v1/sessions", nil, &l)
}

func newRemove() *cobra.Command {
	var of string
	c := cli.Command(&cobra.Command{
		Use:     "rm {ID | --of PRINCIPAL}",
		Aliases: []string{"remove"},
		Short:   "End a session: servers refuse it from then on",
		Long: `rm ends the session of an id, or with --of all sessions of an owner. Servers refuse them
from then on; what was ordered with them continues.`,
		Example:           "  muster session rm 4x7hqk3a754z\n  muster session rm --of user:alice",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		if (of == "") == (len(args) == 0) {
			return cli.Exit(cli.ExitUsage, errors.New("want the id of a session, or --of PRINCIPAL"))
		}
		ids := args
		if of != "" {
			l, err := list(ctx, s)
			if err != nil {
				return err
			}
			for _, one := range l.Sessions {
				if one.Owner == of && one.ID != "" {
					ids = append(ids, one.ID)
				}
			}
		}
		return end(ctx, s, ids)
	})
	c.Flags().StringVar(&of, "of", "", "`principal` whose sessions all end, such as user:bob")
	cli.CompleteFlagWith(c, "of", cobra.NoFileCompletions)
	return c
}

// end ends sessions. If one stays, the error says which ones have ended.
func end(ctx context.Context, s *cli.Session, ids []string) error {
	gone := []string{}
	for _, id := range ids {
		err := s.Do(ctx, cli.Call{Method: http.MethodDelete, Path: "/v1/sessions/" + url.PathEscape(id),
			Bound: cli.CallTimeout}, nil)
		if err != nil {
			return fmt.Errorf("session %s (%d others have ended): %w", cli.Cell(id), len(gone), err)
		}
		gone = append(gone, id)
	}
	if s.JSON {
		return s.WriteJSON(map[string][]string{"ended": gone})
	}
	if len(gone) == 0 {
		return s.Write("there is no such session that you may see\n")
	}
	for _, id := range gone {
		if err := s.Write("session " + cli.Cell(id) + " has ended\n"); err != nil {
			return err
		}
	}
	return nil
}
