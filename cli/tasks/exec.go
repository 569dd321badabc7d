package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/complete"
	"muster/cli/submit"
	"muster/scripts"
)

// NewExec is the short form of run exec.
func NewExec() *cobra.Command {
	var f submit.RunFlags
	c := &cobra.Command{
		Use:   "exec SELECTOR -- COMMAND...",
		Short: "Run a command on hosts, and follow it; short for run exec",
		Long: `exec runs a command on hosts, and ends with a summary of what they said. It is
muster run exec SELECTOR --arg cmd='COMMAND', and takes the flags of muster run, in
front of the two dashes. The help of muster run explains selectors and exit codes.

One word behind the dashes is a text for the shell of the hosts, where pipes and
variables count. Several words are one command, which gets each of them unchanged.`,
		Example: `  muster exec 'role=fw' -- uname -a
  muster exec all -- 'df -h / | tail -1'
  muster exec 'fw[001-020]' --dry-run -- uptime
  muster exec 'customer=acme' --waves 1,10%,100% --max-failed 2 -- service ntp restart`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) (
			[]cobra.Completion, cobra.ShellCompDirective) {
			return complete.Hosts(c, args, typed)
		},
	}
	f.Add(c)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		text, err := commandText(args, c.ArgsLenAtDash())
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		f.On, f.Args = args[0], []string{"cmd=" + text}
		return submit.Run(ctx, s, f, "exec")
	})
}

// commandText returns the command behind the two dashes, which dash arguments precede; -1 if there
// are no dashes.
func commandText(args []string, dash int) (string, error) {
	const form = "want muster exec SELECTOR -- COMMAND..., such as muster exec 'role=fw' -- uname -a"
	switch {
	case len(args) == 0:
		return "", errors.New(form + ": nothing is named")
	case dash < 0 && len(args) > 1:
		return "", fmt.Errorf("%s: write -- before the command", form)
	case dash == 0:
		return "", fmt.Errorf("%s: write the selector of the hosts before --", form)
	case dash > 1:
		return "", fmt.Errorf("%s: %s is too much before --: quote a selector that has blanks", form,
			cli.Quoted(args[1]))
	case len(args) == 1:
		return "", fmt.Errorf("%s: there is no command", form)
	case len(args) == 2:
		return args[1], nil
	}
	return scripts.ShellCommand(args[1:])
}
