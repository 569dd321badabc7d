package ops

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/fleet"
)

// NewToken makes the command token.
func NewToken() *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and remove the tokens that prove who an operator is",
		Long: `A server that listens beyond its own machine requires a token with every request. Make
the first one on the server's machine, where none is needed. The server keeps only a
hash, so it shows a token once. The command line reads the token from MUSTER_TOKEN.`,
		Example: `  MUSTER_TOKEN=$(muster token create alice)
  muster token ls
  muster token rm alice`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTokenCreate(), newTokenList(), newTokenRemove())
	return c
}

func newTokenCreate() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "create NAME",
		Short:             "Make a token and print it, this once",
		Example:           "  muster token create alice",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		var t api.TokenAnswer
		err := s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/tokens",
			Body: api.TokenRequest{Name: args[0]}, Bound: cli.CallTimeout}, &t)
		if err != nil {
			return err
		}
		s.Say("token of %s; it is not shown again: put it into MUSTER_TOKEN", cli.Cell(t.Name))
		if s.JSON {
			return s.WriteJSON(t)
		}
		return s.Write(cli.Cell(t.Token) + "\n")
	})
}

func newTokenList() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "ls",
		Aliases:           []string{"list"},
		Short:             "List the tokens",
		Example:           "  muster token ls\n  muster token ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.TokenList
		if err := s.Get(ctx, "/v1/tokens", nil, &l); err != nil {
			return err
		}
		g := cli.NewGrid("TOKEN", "CREATED")
		for _, t := range l.Tokens {
			g.Add(cli.Cell(t.Name), cli.Moment(t.Created))
		}
		for _, t := range l.Tokens {
			if t.Wrong != "" {
				s.Say("%s: %s, so it proves nobody; `muster token rm %s` removes it", cli.Cell(t.Name),
					cli.Cell(t.Wrong), cli.Cell(t.Name))
			}
		}
		return s.List(cli.Filled(l.Tokens), g,
			"there are no tokens: `muster token create NAME` makes one")
	})
}

func newTokenRemove() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "rm NAME",
		Aliases:           []string{"remove"},
		Short:             "Remove a token: the server refuses it from then on",
		Example:           "  muster token rm alice",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		err := s.Do(ctx, cli.Call{Method: http.MethodDelete,
			Path: "/v1/tokens/" + url.PathEscape(args[0]), Bound: cli.CallTimeout}, nil)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(map[string]string{"removed": args[0]})
		}
		return s.Write(fmt.Sprintf("token of %s removed\n", args[0]))
	})
}
