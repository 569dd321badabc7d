package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"muster/server"
)

// newRunbooks is a command by itself, too: runbooks is runbooks ls.
func newRunbooks() *cobra.Command {
	c := newRunbooksList("runbooks")
	c.AddCommand(newRunbooksList("ls"), newRunbooksShow(), newRunbooksCheck(), newRunbooksTest(),
		newRunbooksNew(), newRunbooksSchema())
	return c
}

func newRunbooksList(use string) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: "List the runbooks and their arguments",
		Example: `  muster runbooks ls
  muster runbooks show exec
  muster runbooks ls -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		list, err := s.runbooks(ctx)
		if err != nil {
			return err
		}
		return s.list(list, runbookGrid(list), "there are no runbooks")
	})
}

func (c *client) runbooks(ctx context.Context) ([]server.Runbook, error) {
	var l server.RunbookList
	err := c.get(ctx, "/v1/runbooks", nil, &l)
	for i := range l.Runbooks {
		l.Runbooks[i].Arguments = filled(l.Runbooks[i].Arguments)
	}
	return filled(l.Runbooks), err
}

func runbookGrid(list []server.Runbook) grid {
	g := newGrid("RUNBOOK", "ARGUMENTS", "KIND", "DESCRIPTION")
	for _, r := range list {
		var kind []string
		if r.Disruptive {
			kind = append(kind, "disruptive")
		}
		if r.Repeatable {
			kind = append(kind, "repeatable")
		}
		g.add(cell(r.Name), orDash(argumentText(r.Arguments)), orDash(strings.Join(kind, ",")),
			fit(cell(firstLine(r.Description)), 100))
	}
	return g
}

// argumentText lists arguments as a person gives them; those in brackets can be
// left out.
func argumentText(list []server.RunbookArg) string {
	var words []string
	for _, a := range list {
		word := cell(a.Name) + "=" + strings.ToUpper(cell(a.Type))
		if !a.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
