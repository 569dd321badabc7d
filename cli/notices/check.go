package notices

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/fleet"
	"muster/internal/files"
	"muster/notify"
)

// fileMax bounds the file of rules.
const fileMax = 1 << 20 // bytes

// found holds the findings of check for programs.
type found struct {
	Rules     int     `json:"rules"`
	Receivers int     `json:"receivers"`
	Mistakes  []place `json:"mistakes"`
}

// place is a mistake with its place.
type place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func newCheck() *cobra.Command {
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Report the mistakes in a file of rules",
		Long: `check lists every mistake in a file of notifications with its line. It asks no server,
and reads none of the files with secrets.

Exit codes: 0 there are no mistakes, 1 there are, 2 wrong use, or a file cannot be read.`,
		Example: "  muster notify check notify.yaml\n  muster notify check notify.yaml -o json",
		Args:    cobra.ExactArgs(1),
	}
	output := ""
	c.Flags().StringVarP(&output, "output", "o", cli.OutputTable, "table or json")
	cli.CompleteFlag(c, "output", cli.OutputTable, cli.OutputJSON)
	c.Annotations = map[string]string{cli.Offline: "yes"}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := cli.CheckOutput(output); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return check(c, args[0], output == cli.OutputJSON)
	}
	return c
}

func check(c *cobra.Command, path string, json bool) error {
	data, err := files.ReadGiven(c.Context(), path, fileMax)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	f := found{Mistakes: []place{}}
	rules, err := notify.Parse(fleet.Source{Name: path, Data: data})
	var wrong fleet.Mistakes
	switch {
	case errors.As(err, &wrong):
		for _, m := range wrong {
			f.Mistakes = append(f.Mistakes, place(m))
		}
	case err != nil:
		return cli.Exit(cli.ExitUsage, err)
	default:
		f.Rules, f.Receivers = len(rules.Rules()), len(rules.Receivers())
	}
	switch {
	case json:
		err = cli.PrintJSON(c.OutOrStdout(), f)
	case len(wrong) > 0:
		err = wrong
	default:
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s, %s: no mistakes\n", cli.Count(f.Rules, "rule"),
			cli.Count(f.Receivers, "receiver"))
	}
	if err != nil || len(wrong) > 0 {
		return cli.Exit(cli.ExitNotAll, err)
	}
	return nil
}
