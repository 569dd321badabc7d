package standing

import (
	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/checks"
	"muster/fleet"
	"muster/triggers"
)

func newCheck() *cobra.Command {
	return checks.New(&cobra.Command{
		Short: "Report the mistakes in a file of triggers",
		Long: `check lists every mistake in a file of triggers with its line. It asks no server, so it
does not know the runbooks; a server checks their names and arguments, too.

Exit codes: 0 there are no mistakes, 1 there are, 2 wrong use, or a file cannot be read.`,
		Example: "  muster trigger check triggers.yaml\n  muster trigger check triggers.yaml -o json",
	}, func(src fleet.Source) (map[string]int, string, error) {
		set, err := triggers.Parse(src)
		n := len(set.All())
		return map[string]int{"triggers": n}, cli.Count(n, "trigger"), err
	})
}
