package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"muster/scripts"
)

// offline marks commands that ask no server.
const offline = "offline"

// runbookMax bounds what is read of a file; a runbook has less.
const runbookMax = 2 << 20

func newRunbooksCheck() *cobra.Command {
	c := &cobra.Command{
		Use:   "check FILE…",
		Short: "Tell what is wrong with runbooks",
		Long: `check reads runbooks as the server does and lists every mistake with file, line and
column: unknown keys, values that are not what they should be, shell texts that are none,
placeholders of nothing, saved values that are used before they are there, and names that
are taken. Files with cases (*.test.yaml) are read as such. It talks to nobody.

Exit codes: 0 there are no mistakes, 1 there are, 2 a file cannot be read.`,
		Example: `  muster runbooks check my.yaml
  muster runbooks check /etc/muster/runbooks/*.yaml`,
		Args: cobra.MinimumNArgs(1),
	}
	c.Annotations = map[string]string{offline: "yes"}
	c.RunE = func(c *cobra.Command, args []string) error {
		var suites []error
		for _, file := range args {
			if isSuite(file) {
				_, _, err := readSuite(file)
				suites = append(suites, err)
			}
		}
		sources, err := readRunbooks(slices.DeleteFunc(slices.Clone(args), isSuite))
		if err != nil {
			return exit(exitUsage, err)
		}
		if _, err := scripts.NewCatalog(sources); err != nil {
			suites = append(suites, err)
		}
		if err := errors.Join(suites...); err != nil {
			return exit(exitNotAll, err)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s, no mistakes\n", count(len(sources), "runbook"))
		return nil
	}
	return c
}

// readRunbooks reads files, or reports all that cannot be read.
func readRunbooks(names []string) ([]scripts.Source, error) {
	var list []scripts.Source
	var errs []error
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		data, err := io.ReadAll(io.LimitReader(f, runbookMax))
		f.Close()
		errs = append(errs, err)
		list = append(list, scripts.Source{File: name, Data: data})
	}
	return list, errors.Join(errs...)
}

func newRunbooksNew() *cobra.Command {
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Print a runbook to begin with",
		Long:  `new prints a small runbook that works, with comments on what is what.`,
		Example: `  muster runbooks new restart-web > restart-web.yaml
  muster runbooks check restart-web.yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Annotations = map[string]string{offline: "yes"}
	c.RunE = func(c *cobra.Command, args []string) error {
		text := scripts.Skeleton(args[0])
		own := scripts.Source{File: args[0], Data: []byte(text)}
		if _, err := scripts.NewCatalog([]scripts.Source{own}); err != nil {
			return exit(exitUsage, err)
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
	c.Annotations = map[string]string{offline: "yes"}
	c.RunE = func(c *cobra.Command, _ []string) error {
		_, err := c.OutOrStdout().Write(scripts.Schema())
		return err
	}
	return c
}
