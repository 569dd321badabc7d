package notices

import (
	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/checks"
	"muster/fleet"
	"muster/notify"
)

func newCheck() *cobra.Command {
	return checks.New(&cobra.Command{
		Short: "Report the mistakes in a file of rules",
		Long: `check lists every mistake in a file of notifications with its line. It asks no server,
and reads none of the files with secrets.

Exit codes: 0 there are no mistakes, 1 there are, 2 wrong use, or a file cannot be read.`,
		Example: "  muster notify check notify.yaml\n  muster notify check notify.yaml -o json",
	}, func(src fleet.Source) (map[string]int, string, error) {
		rules, err := notify.Parse(src)
		if err != nil {
			return map[string]int{"rules": 0, "receivers": 0}, "", err
		}
		n, to := len(rules.Rules()), len(rules.Receivers())
		return map[string]int{"rules": n, "receivers": to},
			cli.Count(n, "rule") + " and " + cli.Count(to, "receiver"), nil
	})
}
