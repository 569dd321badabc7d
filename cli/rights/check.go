package rights

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"muster/access"
	"muster/cli"
	"muster/fleet"
)

func newCheck() *cobra.Command {
	var g given
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Report the mistakes in a file of who may do what",
		Long: `check lists every mistake in the file with its line. It also names what is no mistake but
needs a look: roles that nobody has, verbs that a limit makes useless, a house without an
admin. With --inventory it names selectors that pick no host, and names that no host has:
a mistyped exception, as in all!fw07, excepts nothing.

Exit codes: 0 there are no mistakes, 1 there are, 2 wrong use, or a file cannot be read.`,
		Example: `  muster access check access.yaml
  muster access check access.yaml --inventory fleet.yaml
  muster access check access.yaml -o json`,
		Args: cobra.ExactArgs(1),
	}
	g.addTo(c, false)
	c.RunE = func(c *cobra.Command, args []string) error {
		g.file = args[0]
		return g.examine(c)
	}
	return c
}

// found holds the findings of check for programs.
type found struct {
	Grants   int     `json:"grants"`
	Mistakes []place `json:"mistakes"`
	Looks    []place `json:"looks"` // no mistakes, but they need a look
}

// place is a mistake, or something that needs a look.
type place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func places(list fleet.Mistakes) []place {
	all := make([]place, len(list))
	for i, m := range list {
		all[i] = place(m)
	}
	return all
}

func (g *given) examine(c *cobra.Command) error {
	if err := g.check(); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	src, err := read(c.Context(), g.file)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	policy, err := access.Parse(src)
	var mistakes fleet.Mistakes
	if err != nil && !errors.As(err, &mistakes) {
		return cli.Exit(cli.ExitUsage, err)
	}
	var looks fleet.Mistakes
	f := found{Mistakes: places(mistakes)}
	if policy != nil {
		f.Grants, looks = policy.Grants(), policy.Doubts()
	}
	if policy != nil && len(g.inventory) > 0 {
		inv, err := g.Inventory(c.Context(), g.inventory)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		looks = append(looks, policy.Over(inv).Doubts()...)
	}
	looks.Sort([]string{g.file})
	f.Looks = places(looks)
	if g.output == cli.OutputJSON {
		err = cli.PrintJSON(c.OutOrStdout(), f)
	} else if len(mistakes) == 0 {
		for _, look := range looks {
			fmt.Fprintln(c.ErrOrStderr(), "muster: look: "+cli.Cell(look.Error()))
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s, no mistakes\n", cli.Count(f.Grants, "grant"))
	} else {
		err = mistakes
	}
	if err != nil || len(mistakes) > 0 {
		return cli.Exit(cli.ExitNotAll, err)
	}
	return nil
}
