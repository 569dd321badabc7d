package backup

import (
	"github.com/spf13/cobra"
)

// New makes the command backup. audit writes the entries of the audit log, for which no server is
// needed.
func New(audit Audit) *cobra.Command {
	c := &cobra.Command{
		Use:   "backup",
		Short: "Copy Redis and SQL into one encrypted file, and restore them",
		Long: `backup copies all that an installation keeps in Redis and in SQL into one encrypted file,
checks such a file, and restores a house from it, in which nothing runs twice.`,
		Example: `  muster backup create /backup/muster-monday --recipient age1…
  muster backup check /backup/muster-2026-11-28 --identity backup.key
  muster backup restore /backup/muster-2026-11-28 --identity backup.key --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCreate(audit), newCheck(audit), newRestore(audit))
	return c
}

// completeFile offers files for the argument.
func completeFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
