package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/access"
	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/fleet"
)

// NewToken makes the command token.
func NewToken() *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and remove the tokens that prove who an operator is",
		Long: `Who calls a server over the network needs a token with every request; on the server's
own machine its unix socket needs none. A token acts in the name of its owner, and ends
by itself: after 90 days, unless --expires says otherwise. The command line reads it
from MUSTER_TOKEN.

Everybody makes, sees and removes their own tokens; admins do so for others: --owner
user:bob is somebody who has no other proof than tokens, a person elsewhere or a program.
A token may do what the access file grants its owner. The server keeps only a hash, so it
shows a token once. It needs the key that muster init makes.`,
		Example: `  muster token create laptop --owner user:alice     # as root, on the server's machine
  MUSTER_TOKEN=$(muster token create ci --owner user:ci --expires 365d)
  muster token ls
  muster token rm laptop
  muster token rm --of user:alice                   # who has left`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTokenCreate(), newTokenList(), newTokenRemove())
	return c
}

func newTokenCreate() *cobra.Command {
	var owner, life string
	var scope api.TokenScope
	c := cli.Command(&cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print it, this once",
		Long: `create makes a token and prints it, this once. NAME tells it from other tokens of its
owner, such as the place where it is used.

A token may do what the access file grants its owner. --verbs, --runbooks and --on make
it less: only these verbs, with these runbooks (globs), on these hosts. It never has more
than its owner, and one with such a scope makes and removes no other tokens. A token that
was made with a token holds no longer than that one.`,
		Example: `  muster token create laptop
  muster token create laptop --owner user:alice --expires 30d
  muster token create grafana --verbs see
  muster token create ci --verbs see,run --runbooks firewall --on customer=acme`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		ask := api.TokenRequest{Name: args[0], Owner: owner, Life: life}
		if len(scope.Verbs)+len(scope.Runbooks) > 0 || scope.Hosts != "" {
			ask.Scope = &scope
		}
		var t api.TokenAnswer
		err := s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/tokens",
			Body: ask, Bound: cli.CallTimeout}, &t)
		if err != nil {
			return err
		}
		s.Say("token %s of %s, until %s; it is not shown again: put it into MUSTER_TOKEN",
			cli.Cell(t.Name), cli.Cell(t.Owner), cli.Moment(t.Expires))
		if s.JSON {
			return s.WriteJSON(t)
		}
		return s.Write(cli.Cell(t.Token) + "\n")
	})
	c.Flags().StringVar(&owner, "owner", "",
		"`principal` in whose name it acts, such as user:bob (default: you)")
	c.Flags().StringVar(&life, "expires", "", "`time` for which it holds, at most 365d (default 90d)")
	c.Flags().StringSliceVar(&scope.Verbs, "verbs", nil, "only these `verbs`, such as see,plan")
	c.Flags().StringSliceVar(&scope.Runbooks, "runbooks", nil, "only these `runbooks`, or globs")
	c.Flags().StringVar(&scope.Hosts, "on", "", "only the hosts of this `selector`")
	cli.CompleteFlagWith(c, "owner", cobra.NoFileCompletions)
	cli.CompleteFlag(c, "verbs", cli.Texts(access.Verbs())...)
	cli.CompleteFlagWith(c, "runbooks", complete.Runbooks)
	cli.CompleteFlagWith(c, "on", complete.Selector)
	cli.CompleteFlag(c, "expires", "1h", "1d", "30d", "90d", "365d")
	return c
}

func newTokenList() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the tokens",
		Long: `ls lists your tokens; for admins, those of all.
USED is when a token was used last, within a minute.`,
		Example:           "  muster token ls\n  muster token ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		l, err := tokenList(ctx, s)
		if err != nil {
			return err
		}
		g := cli.NewGrid("ID", "TOKEN", "OWNER", "CREATED", "EXPIRES", "USED", "SCOPE")
		for _, t := range l.Tokens {
			g.Add(cli.Cell(t.ID), dash(t.Name), dash(t.Owner), cli.Moment(t.Created),
				cli.Moment(t.Expires), cli.Moment(t.Used), scopeWords(t.Scope))
		}
		for _, t := range l.Tokens {
			if t.Wrong != "" {
				s.Say("%s: %s, so it proves nobody; `muster token rm %s` removes it", cli.Cell(t.ID),
					cli.Cell(t.Wrong), cli.Cell(t.ID))
			}
		}
		return s.List(cli.Filled(l.Tokens), g,
			"there are no tokens: `muster token create NAME` makes one")
	})
}

func tokenList(ctx context.Context, s *cli.Session) (api.TokenList, error) {
	var l api.TokenList
	return l, s.Get(ctx, "/v1/tokens", nil, &l)
}

// scopeWords returns the scope of a token for a cell.
func scopeWords(s *api.TokenScope) string {
	if s == nil {
		return "-"
	}
	words := strings.Join(s.Verbs, ",")
	if len(s.Verbs) == len(access.Verbs()) {
		words = "all verbs"
	}
	if len(s.Runbooks) > 0 {
		words += "; runbooks " + strings.Join(s.Runbooks, ",")
	}
	if s.Hosts != "" {
		words += "; hosts " + s.Hosts
	}
	return cli.Cell(words)
}

// dash returns a text for a cell.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return cli.Cell(text)
}

func newTokenRemove() *cobra.Command {
	var of string
	c := cli.Command(&cobra.Command{
		Use:     "rm {NAME | ID | --of PRINCIPAL}",
		Aliases: []string{"remove"},
		Short:   "Remove a token: servers refuse it from then on",
		Long: `rm removes the token of a name or an id, or with --of all tokens of an owner who has
left. Servers refuse a removed token from then on; what was ordered with it continues.`,
		Example: `  muster token rm laptop
  muster token rm 4x7hqk3a754z
  muster token rm --of user:alice`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		if (of == "") == (len(args) == 0) {
			return cli.Exit(cli.ExitUsage, errors.New("want the name or id of a token, or --of PRINCIPAL"))
		}
		if of != "" {
			return removeTokensOf(ctx, s, of)
		}
		if err := fleet.CheckName(args[0]); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		if err := removeToken(ctx, s, args[0]); err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(map[string]string{"removed": args[0]})
		}
		return s.Write(fmt.Sprintf("token %s removed\n", args[0]))
	})
	c.Flags().StringVar(&of, "of", "", "`principal` whose tokens are all removed, such as user:bob")
	cli.CompleteFlagWith(c, "of", cobra.NoFileCompletions)
	return c
}

func removeToken(ctx context.Context, s *cli.Session, name string) error {
	return s.Do(ctx, cli.Call{Method: http.MethodDelete, Path: "/v1/tokens/" + url.PathEscape(name),
		Bound: cli.CallTimeout}, nil)
}

// removeTokensOf removes all tokens of an owner. If one stays, the error says which ones are gone.
func removeTokensOf(ctx context.Context, s *cli.Session, owner string) error {
	l, err := tokenList(ctx, s)
	if err != nil {
		return err
	}
	gone := []string{}
	for _, t := range l.Tokens {
		if t.Owner != owner {
			continue
		}
		if err := removeToken(ctx, s, t.ID); err != nil {
			return fmt.Errorf("token %s of %s (%d others are removed): %w", t.ID, owner, len(gone), err)
		}
		gone = append(gone, t.ID)
	}
	if s.JSON {
		return s.WriteJSON(map[string][]string{"removed": gone})
	}
	if len(gone) == 0 {
		return s.Write(fmt.Sprintf("there is no token of %s that you may see\n", cli.Cell(owner)))
	}
	for _, id := range gone {
		if err := s.Write(fmt.Sprintf("token %s of %s removed\n", id, cli.Cell(owner))); err != nil {
			return err
		}
	}
	return nil
}
