package tasks

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/fleet"
	"muster/internal/files"
	"muster/worker/secrets"
)

// rulesMax bounds a file of rules for references.
const rulesMax = 64 << 10 // bytes

// checkedRules is the finding about a file of rules, for programs.
type checkedRules struct {
	Rules    int     `json:"rules"`
	Mistakes []place `json:"mistakes"`
}

// place is a mistake.
type place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func newSecretsCheck() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Report the mistakes in a node's rules for references to secrets",
		Long: `check lists every mistake, with its line, in a file that says which references to secrets
a node resolves: secrets.references of the node's configuration. It reads no secret and
calls nobody.

Exit codes: 0 there are no mistakes, 1 there are, 2 wrong use, or no file to be read.`,
		Example: `  muster secrets check /etc/muster/references.yaml
  muster secrets check references.yaml -o json`,
		Args: cobra.ExactArgs(1),
	}
	c.Annotations = map[string]string{cli.Offline: "yes"}
	c.Flags().StringVarP(&output, "output", "o", cli.OutputTable, "table or json")
	cli.CompleteFlag(c, "output", cli.OutputTable, cli.OutputJSON)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := cli.CheckOutput(output); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		data, err := files.ReadGiven(c.Context(), args[0], rulesMax)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		rules, err := secrets.Parse(fleet.Source{Name: args[0], Data: data})
		found := checkedRules{Mistakes: []place{}}
		var mistakes fleet.Mistakes
		switch {
		case errors.As(err, &mistakes):
			for _, m := range mistakes {
				found.Mistakes = append(found.Mistakes, place(m))
			}
		case err != nil:
			return cli.Exit(cli.ExitUsage, err)
		default:
			found.Rules = rules.Rules()
		}
		return found.show(c, output, mistakes)
	}
	return c
}

// show prints the finding.
func (f checkedRules) show(c *cobra.Command, output string, mistakes fleet.Mistakes) (err error) {
	switch {
	case output == cli.OutputJSON:
		err = cli.PrintJSON(c.OutOrStdout(), f)
	case len(mistakes) == 0:
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s, no mistakes\n", cli.Count(f.Rules, "rule"))
	default:
		err = mistakes
	}
	if err != nil || len(mistakes) > 0 {
		return cli.Exit(cli.ExitNotAll, err)
	}
	return nil
}
