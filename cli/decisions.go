package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/api"
)

// DecisionLines says for people what triggers would do about an event, and why.
func DecisionLines(list []api.TriggerDecision) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "%s: %s\n", Cell(d.Trigger), Cell(d.Result))
		for _, why := range d.Why {
			fmt.Fprintf(&b, "  %s\n", Cell(why))
		}
		if d.Total > 0 {
			fmt.Fprintf(&b, "  runs %s on %s: %s\n", Cell(d.Runbook), Count(d.Total, "host"), Cell(d.Hosts))
		}
		for _, name := range slices.Sorted(maps.Keys(d.Args)) {
			fmt.Fprintf(&b, "  %s=%s\n", Cell(name), Cell(d.Args[name]))
		}
	}
	return b.String()
}
