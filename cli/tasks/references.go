package tasks

import (
	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/checks"
	"muster/fleet"
	"muster/worker/secrets"
)

func newSecretsCheck() *cobra.Command {
	return checks.New(&cobra.Command{
		Short: "Report the mistakes in a node's rules for references to secrets",
		Long: `check lists every mistake, with its line, in a file that says which references to secrets
a node resolves: secrets.references of the node's configuration. It reads no secret and
calls nobody.

Exit codes: 0 there are no mistakes, 1 there are, 2 wrong use, or no file to be read.`,
		Example: `  muster secrets check /etc/muster/references.yaml
  muster secrets check references.yaml -o json`,
	}, func(src fleet.Source) (map[string]int, string, error) {
		rules, err := secrets.Parse(src)
		if err != nil {
			return map[string]int{"rules": 0}, "", err
		}
		n := rules.Rules()
		return map[string]int{"rules": n}, cli.Count(n, "rule"), nil
	})
}
