package books

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

// NewRunbooks also runs alone: runbooks is runbooks ls.
func NewRunbooks() *cobra.Command {
	c := newRunbooksList("runbooks")
	c.AddCommand(newRunbooksList("ls"), newRunbooksShow(), newRunbooksCheck(), newRunbooksTest(),
		newRunbooksNew(), newRunbooksSchema())
	return c
}

func newRunbooksList(use string) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: "List the runbooks and their arguments",
		Long: `ls lists the runbooks that the server knows. Arguments in brackets can be left out;
[+9] stands for nine of them, which muster runbooks show NAME lists.`,
		Example: `  muster runbooks ls
  muster runbooks show exec
  muster runbooks ls -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		list, err := s.Runbooks(ctx)
		if err != nil {
			return err
		}
		return s.List(list, runbookGrid(list), "there are no runbooks")
	})
}

const (
	// runbookColumns bounds the width of the list, on a terminal and in a file.
	runbookColumns  = 100
	argumentColumns = 36
	aboutColumns    = 20 // least width of a description, whatever the names
)

func runbookGrid(list []api.Runbook) cli.Grid {
	g := cli.NewGrid("RUNBOOK", "ARGUMENTS", "KIND", "DESCRIPTION")
	names, given := len("RUNBOOK"), len("ARGUMENTS")
	for _, r := range list {
		names = max(names, len(cli.Cell(r.Name)))
		given = max(given, len(shortArguments(r.Arguments)))
	}
	about := max(aboutColumns,
		runbookColumns-names-given-len("disruptive,repeatable")-3*len("  "))
	for _, r := range list {
		var kind []string
		if r.Disruptive {
			kind = append(kind, "disruptive")
		}
		if r.Repeatable {
			kind = append(kind, "repeatable")
		}
		g.Add(cli.Cell(r.Name), cli.OrDash(shortArguments(r.Arguments)), cli.OrDash(strings.Join(kind,
			",")),
			cli.Fit(cli.Cell(cli.FirstLine(r.Description)), about))
	}
	return g
}

// shortArguments lists as many arguments as fit into their column: if not all do, the required
// ones, and the number of the others. `runbooks show` lists all.
func shortArguments(list []api.RunbookArg) string {
	text := argumentText(list)
	if len(text) <= argumentColumns {
		return text
	}
	var required []api.RunbookArg
	for _, a := range list {
		if a.Required {
			required = append(required, a)
		}
	}
	more := ""
	if n := len(list) - len(required); n > 0 {
		more = fmt.Sprintf(" [+%d]", n)
	}
	return strings.TrimSpace(cli.Fit(argumentText(required), argumentColumns-len(more)) + more)
}

// argumentText lists arguments as a person gives them; those in brackets may be left out.
func argumentText(list []api.RunbookArg) string {
	var words []string
	for _, a := range list {
		word := cli.Cell(a.Name) + "=" + strings.ToUpper(cli.Cell(a.Type))
		if !a.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
