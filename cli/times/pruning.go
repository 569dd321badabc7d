package times

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/complete"
	"muster/windows"
)

// pruningHelp explains the rule for everything that is applied from files.
const pruningHelp = `apply adds what the files name, or replaces what has the same name. Everything else
stays. --prune removes what belongs to the same customers and is not in the files; it
removes what belongs to no customer only if the files have something without a customer.
If two people apply files for the same customer at once, the second one is refused.`

// addPruning adds the flags for the removal of entries to a command.
func addPruning(c *cobra.Command, p *windows.Pruning) {
	c.Flags().BoolVar(&p.Prune, "prune", false,
		"remove what belongs to the customers in the files, and is not in them")
	c.Flags().StringArrayVar(&p.Customers, "prune-customer", nil,
		"remove what belongs to this `customer`, and is not in the files; can be repeated")
	c.Flags().BoolVar(&p.All, "prune-all", false,
		"remove all that is not in the files, whatever its customer")
	cli.CompleteFlagWith(c, "prune-customer", complete.Customers)
}

// leftText lists the entries of the same customers that stay although the files do not have them.
func leftText(left []string) string {
	var b strings.Builder
	for _, name := range left {
		fmt.Fprintf(&b, "? %s is not in the files, and stays in force: --prune removes it\n",
			cli.Cell(name))
	}
	return b.String()
}

// applySchedulesHelp explains how to write schedules.
const applySchedulesHelp = `apply adds the schedules of files and changes those that differ. What is not in the
files stays; --prune and muster schedules rm remove it. Applying the same again changes
nothing. It reports all mistakes at once, with file and line, and then does nothing.

  schedules:
    - name: zsk-weekly
      cron: "H 3 * * SUN"       # or six fields, @daily, @every 90s, first Sunday 03:00
      except: [2026-12-24]      # days without a tick, also 2026-12-24 to 2027-01-03
      zone: Europe/Zurich
      jitter: 30m               # a fixed part of it delays the task
      gap: first                # or skip: a tick in an hour that is left out
      fold: first               # or second: a tick in an hour that comes twice
      runbook: exec
      args: {cmd: uptime}
      on: customer=acme         # looked up at each tick
      owner: acme               # the customer to whom it belongs; absent: to none
      missed: once              # or skip, all
      overlap: forbid           # or queue
      window: none              # or required: jobs wait for windows in any case
      priority: normal          # or high, low
      expire: 8h
      expect: 5m                # the duration, as long as no earlier success shows it
      disruptive: false
      supersedes: KEY
      only: check               # or diff: a dry run on the hosts
      enabled: true
      waves: [1, 10%, 100%]     # or canary: 3; as the flags of muster run
      soak: 5m
      health: exec              # with health_args: {cmd: uptime}
      gate: false
      max_failed: 5%            # also without waves
      breaker: 3/10m
      unreachable_ok: false

`
