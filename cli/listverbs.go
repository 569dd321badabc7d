package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// listCommands list without a word of their own. So that nobody has to know which commands do, each
// of them also has the word ls, and each command with ls lists without it.
func listCommands() []string {
	return []string{"tasks", "nodes", "limits", "history", "jobs", "queue"}
}

// WithLists makes every listing command below c list both with and without ls.
func WithLists(c *cobra.Command) {
	for _, sub := range c.Commands() {
		WithLists(sub)
	}
	at := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == "ls" })
	switch {
	case at < 0 && slices.Contains(listCommands(), c.Name()):
		c.AddCommand(lsOf(c))
	case at >= 0 && c.Flags().Lookup("output") == nil: // with that flag it lists already
		ls := c.Commands()[at]
		c.Flags().AddFlagSet(ls.Flags())
		c.RunE = ls.RunE
	}
}

// lsOf returns the same command under the word ls, with the same flags.
func lsOf(c *cobra.Command) *cobra.Command {
	_, arguments, _ := strings.Cut(c.Use, " ")
	ls := &cobra.Command{
		Use:               strings.TrimSpace("ls " + arguments),
		Short:             c.Short,
		Long:              c.Long,
		Example:           strings.ReplaceAll(c.Example, "muster "+c.Name(), "muster "+c.Name()+" ls"),
		Args:              c.Args,
		ValidArgsFunction: c.ValidArgsFunction,
		RunE:              c.RunE,
	}
	ls.Flags().AddFlagSet(c.Flags())
	return ls
}
