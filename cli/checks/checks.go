// Package checks makes the commands that check a file of settings without a server.
//
// Floor 4: may import cli and what is below.
package checks

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/fleet"
	"muster/internal/files"
)

// fileMax bounds a file of settings.
const fileMax = 1 << 20 // bytes

// A Parser reads a file. It returns the numbers of things in it by the names that they have in
// JSON, and the same numbers in words. The error has the type fleet.Mistakes if the file has some.
type Parser func(fleet.Source) (counts map[string]int, words string, err error)

// Mistake is a mistake with its place, for programs.
type Mistake struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// New completes the command "check FILE", which has its texts already: it parses the file and
// reports all mistakes, or what the file has.
func New(c *cobra.Command, parse Parser) *cobra.Command {
	output := ""
	c.Use, c.Args = "check FILE", cobra.ExactArgs(1)
	c.Flags().StringVarP(&output, "output", "o", cli.OutputTable, "table or json")
	cli.CompleteFlag(c, "output", cli.OutputTable, cli.OutputJSON)
	c.Annotations = map[string]string{cli.Offline: "yes"}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := cli.CheckOutput(output); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		data, err := files.ReadGiven(c.Context(), args[0], fileMax)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		counts, words, err := parse(fleet.Source{Name: args[0], Data: data})
		var wrong fleet.Mistakes
		if err != nil && !errors.As(err, &wrong) {
			return cli.Exit(cli.ExitUsage, err)
		}
		switch {
		case output == cli.OutputJSON:
			err = cli.PrintJSON(c.OutOrStdout(), found(counts, wrong))
		case len(wrong) > 0:
			err = wrong
		default:
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s, no mistakes\n", words)
		}
		if err != nil || len(wrong) > 0 {
			return cli.Exit(cli.ExitNotAll, err)
		}
		return nil
	}
	return c
}

// found returns the findings for programs.
func found(counts map[string]int, wrong fleet.Mistakes) map[string]any {
	mistakes := make([]Mistake, len(wrong))
	for i, m := range wrong {
		mistakes[i] = Mistake(m)
	}
	all := map[string]any{"mistakes": mistakes}
	for name, n := range counts {
		all[name] = n
	}
	return all
}
