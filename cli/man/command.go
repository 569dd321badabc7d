package man

import (
	"os"

	"github.com/spf13/cobra"
)

// New returns the command that writes the pages of the whole program.
func New() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands into a folder",
		Long: `man writes a page of the manual for each command, made from the words that --help
shows, into a folder, which it makes if it is missing. Packages of muster have them.`,
		Example: `  muster man /tmp/pages && man /tmp/pages/muster-run.1`,
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return WriteAll(c.Root(), args[0], c.Root().Version)
		},
	}
}
