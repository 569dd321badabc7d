package submit

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

// addTimed adds the flags of run and plan for windows and freezes.
func (f *RunFlags) addTimed(c *cobra.Command) {
	c.Flags().BoolVar(&f.timed.Window, "window", false,
		"begin only in approved windows of the hosts, whatever the runbook says")
	AddExpect(c, &f.timed.Expect)
	c.Flags().StringVar(&f.timed.OverrideFreeze, "override-freeze", "",
		"begin although there is a freeze; the `reason` is kept as an event")
}

// AddExpect adds the flag for the time of work without an estimate.
func AddExpect(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "expect", "", "duration on a host, such as `5m`; it replaces that of "+
		"the runbook, and counts until the runbook has succeeded with the same arguments")
}

// windowWords says, line by line, which hosts have a turn in which opening.
func windowWords(p *api.WindowPlan, here *time.Location) []string {
	if p == nil {
		return nil
	}
	takes := time.Duration(p.Seconds * float64(time.Second)).Round(time.Second).String()
	if p.Reserve > 0 {
		takes += " and " + time.Duration(p.Reserve*float64(time.Second)).String() + " to go back"
	}
	first := fmt.Sprintf("windows: a job takes %s; if nothing else runs in %s there is a turn for",
		takes, cli.Count(p.Slots, "slot"))
	if p.Slots == 0 {
		first = fmt.Sprintf("windows: a job takes %s; no node is up, so it is not known how many have "+
			"a turn in", takes)
	}
	lines := []string{first}
	for _, o := range p.Openings {
		start, end := o.Start.In(here), o.End.In(here)
		form := "2006-01-02 15:04 MST"
		if start.Format(time.DateOnly) == end.Format(time.DateOnly) {
			form = "15:04 MST"
		}
		lines = append(lines, fmt.Sprintf("  %s in %s, %s to %s: %s", cli.Count(o.Count, "host"),
			cli.Cell(strings.Join(o.Windows, " and ")), start.Format("Mon 2006-01-02 15:04"),
			end.Format(form),
			cli.Cell(o.Hosts)))
	}
	if p.Later != "" {
		lines = append(lines, "  no turn in these: "+cli.Cell(p.Later))
	}
	return lines
}
