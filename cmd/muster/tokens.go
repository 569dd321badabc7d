package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/fleet"
)

func newToken() *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and remove the tokens that prove who an operator is",
		Long: `A server that listens beyond its own machine wants a token with every request. The
first one is made on the server's machine, where none is needed. Only its hash is
kept, so it is shown once. The command line reads it from MUSTER_TOKEN.`,
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
	return clientCommand(&cobra.Command{
		Use:               "create NAME",
		Short:             "Make a token and print it, this once",
		Example:           "  muster token create alice",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return exit(exitUsage, err)
		}
		var t api.TokenAnswer
		err := s.do(ctx, call{method: http.MethodPost, path: "/v1/tokens",
			body: api.TokenRequest{Name: args[0]}, bound: callTimeout}, &t)
		if err != nil {
			return err
		}
		s.say("token of %s; it is not shown again: put it into MUSTER_TOKEN", cell(t.Name))
		if s.json {
			return s.writeJSON(t)
		}
		return s.write(cell(t.Token) + "\n")
	})
}

func newTokenList() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:               "ls",
		Aliases:           []string{"list"},
		Short:             "List the tokens",
		Example:           "  muster token ls\n  muster token ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *session, _ []string) error {
		var l api.TokenList
		if err := s.get(ctx, "/v1/tokens", nil, &l); err != nil {
			return err
		}
		g := newGrid("TOKEN", "CREATED")
		for _, t := range l.Tokens {
			g.add(cell(t.Name), moment(t.Created))
		}
		for _, t := range l.Tokens {
			if t.Wrong != "" {
				s.say("%s: %s, so it proves nobody; `muster token rm %s` removes it", cell(t.Name),
					cell(t.Wrong), cell(t.Name))
			}
		}
		return s.list(filled(l.Tokens), g, "there are no tokens: `muster token create NAME` makes one")
	})
}

func newTokenRemove() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:               "rm NAME",
		Aliases:           []string{"remove"},
		Short:             "Remove a token: it is refused from then on",
		Example:           "  muster token rm alice",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return exit(exitUsage, err)
		}
		err := s.do(ctx, call{method: http.MethodDelete,
			path: "/v1/tokens/" + url.PathEscape(args[0]), bound: callTimeout}, nil)
		if err != nil {
			return err
		}
		if s.json {
			return s.writeJSON(map[string]string{"removed": args[0]})
		}
		return s.write(fmt.Sprintf("token of %s removed\n", args[0]))
	})
}
