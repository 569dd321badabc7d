package books

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/scripts"
)

func newRunbooksCheck() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "check DIR|FILE…",
		Short: "Report the mistakes in runbooks",
		Long: `check reads runbooks as the server does and lists every mistake with file, line and
column: unknown keys, wrong values, shell texts with wrong syntax, placeholders without
a value, saved values that are used before a step saves them, and names that are taken.
It reads files with cases (*.test.yaml) as such, and all *.yaml of a folder. It connects
to nothing.

Exit codes: 0 there are no mistakes, 1 there are, 2 a file cannot be read.`,
		Example: `  muster runbooks check my.yaml
  muster runbooks check /etc/muster/runbooks
  muster runbooks check /etc/muster/runbooks -o json`,
		Args: cobra.MinimumNArgs(1),
	}
	OutputFlag(c, &output)
	c.Annotations = map[string]string{cli.Offline: "yes"}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := cli.CheckOutput(output); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		found, n, away := checkRunbooks(args)
		code := cli.ExitNotAll
		if away {
			code = cli.ExitUsage
		}
		switch {
		case output == cli.OutputJSON:
			if err := cli.PrintJSON(c.OutOrStdout(), found); err != nil || len(found) > 0 {
				return cli.Exit(code, err)
			}
		case len(found) > 0:
			return cli.Exit(code, errors.New(mistakeLines(found)))
		default:
			fmt.Fprintf(c.OutOrStdout(), "%s, no mistakes\n", cli.Count(n, "runbook"))
		}
		return nil
	}
	return c
}

// A mistakeAt is a mistake for programs. It has no line if the file cannot be read.
type mistakeAt struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

func mistakeLines(list []mistakeAt) string {
	var lines []string
	for _, m := range list {
		if m.Line == 0 {
			lines = append(lines, m.Text)
			continue
		}
		one := scripts.Mistake{File: m.File, Line: m.Line, Col: m.Column, Text: m.Text}
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// checkRunbooks finds all mistakes in files and folders, and counts the runbooks. away reports that
// some could not be read.
func checkRunbooks(args []string) (found []mistakeAt, runbooks int, away bool) {
	files, err := runbookFiles(args, "files of runbooks (*.yaml), or folders with them")
	errs := []error{err}
	for _, file := range files {
		if IsSuite(file) {
			_, _, err := readSuite(file)
			errs = append(errs, err)
		}
	}
	sources, err := ReadRunbooks(slices.DeleteFunc(files, IsSuite))
	errs = append(errs, err)
	if _, err := scripts.NewCatalog(sources); err != nil {
		errs = append(errs, err)
	}
	found = mistakesIn(errors.Join(errs...))
	away = slices.ContainsFunc(found, func(m mistakeAt) bool { return m.Line == 0 })
	return found, len(sources), away
}

// mistakesIn splits an error. A mistake that two of its parts contain counts once: a runbook is
// read both alone and for its cases.
func mistakesIn(err error) []mistakeAt {
	list := []mistakeAt{}
	var mistakes scripts.Mistakes
	many, joined := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
	case joined:
		for _, one := range many.Unwrap() {
			for _, m := range mistakesIn(one) {
				if !slices.Contains(list, m) {
					list = append(list, m)
				}
			}
		}
	case errors.As(err, &mistakes):
		for _, m := range mistakes {
			list = append(list, mistakeAt{m.File, m.Line, m.Col, m.Text})
		}
	default:
		list = append(list, mistakeAt{Text: err.Error()})
	}
	return list
}

func newRunbooksNew() *cobra.Command {
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Print a runbook to begin with",
		Long:  `new prints a small runbook that works, with comments that explain it.`,
		Example: `  muster runbooks new restart-web > restart-web.yaml
  muster runbooks check restart-web.yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Annotations = map[string]string{cli.Offline: "yes"}
	c.RunE = func(c *cobra.Command, args []string) error {
		text := scripts.Skeleton(args[0])
		own := scripts.Source{File: args[0], Data: []byte(text)}
		if _, err := scripts.NewCatalog([]scripts.Source{own}); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		fmt.Fprint(c.OutOrStdout(), text)
		return nil
	}
	return c
}

func newRunbooksSchema() *cobra.Command {
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of runbooks, for editors",
		Long: `schema prints what etc/runbook.schema.json has. An editor with a YAML language server
completes keys by it and marks unknown ones, if a runbook begins with
  # yaml-language-server: $schema=runbook.schema.json`,
		Example:           `  muster runbooks schema > runbook.schema.json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Annotations = map[string]string{cli.Offline: "yes"}
	c.RunE = func(c *cobra.Command, _ []string) error {
		_, err := c.OutOrStdout().Write(scripts.Schema())
		return err
	}
	return c
}
