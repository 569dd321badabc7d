package tasks

import (
	"context"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/complete"
	"muster/cli/submit"
)

// NewRun makes the command run.
func NewRun() *cobra.Command {
	var f submit.RunFlags
	c := &cobra.Command{
		Use:   "run RUNBOOK SELECTOR",
		Short: "Run a runbook on hosts, and follow it",
		Long: `run submits a task: a runbook, its arguments, and the hosts to run it on. The list
of hosts is fixed at that moment. Then run follows the task and ends with a summary of
the output of the hosts; if you interrupt it, the task continues. The selector may stand
behind --on instead. For a single command use muster exec.

` + cli.SelectorHelp + `
An empty selection is an error, and drained hosts are left out.

Jobs of a runbook with "window: required", or with --window, begin in the approved
windows of their hosts (muster windows). The plan shows how many jobs begin in which
opening. A host without an opening is an error before anything is queued. So is a task
with an unknown duration: no earlier success, the runbook and --expect give none.

Exit codes: 0 all jobs succeeded, 1 some did not, 2 wrong use, 3 the server does not
answer, 4 cancelled or stopped by a rule, 130 interrupted (the task continues).`,
		Example: `  muster run exec 'role=fw' --arg cmd='uname -a'
  muster run exec 'fw[001-020]' --arg cmd='uptime' --dry-run
  muster run firewall --on 'role=fw' --arg-file ruleset=new.nft --diff
  muster run db-password --on 'role=db' --arg password=@/run/secrets/db
  muster run db-password --on 'role=db' --arg 'password=ref:vault:kv/{{host.name}}#pw'
  muster run exec --on 'role=db' --arg cmd='id' --become-password ask
  muster run exec --on all --arg cmd='df -h' --detach
  muster run exec --on vpn1 --arg cmd='id' --wait -o json
  muster run exec --on 'customer=acme' --arg cmd='date' --at '2026-12-01 02:00'
  muster run firmware --on all --arg-file bundle=a.raucb --arg version=2.0 --dry-run
  muster run exec --on fw007 --arg cmd=reboot --override-freeze 'INC-7: the cause'
  muster run exec --on 'role=fw' --arg cmd='reload' --supersedes rules/acme
  muster run exec --on 'role=fw' --arg cmd='reload' --max-failed 2% --breaker 3/10m
  muster run reload --on 'role=fw' --max-failed 5 --waves 1,10%,50%,100% --soak 5m
  muster run firewall --on all --arg-file ruleset=a.nft --staged --roll-back
  muster run firewall --on all --arg-file ruleset=a.nft --hold`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete.RunbookAndHosts,
	}
	f.AddWhat(c)
	f.Add(c)
	cli.MissesItself(c, "on")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := f.Name(args); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return submit.Run(ctx, s, f, args[0])
	})
}
