package schedules

import (
	"muster/internal/wording"
	"muster/scripts"
	"muster/server/web"
)

// openly refuses a schedule whose runbook has secret arguments: Redis keeps the arguments of a
// schedule unsealed.
func openly(c *scripts.Catalog, schedule, runbook string) []error {
	r, err := c.Lookup(runbook)
	if err != nil || len(r.SecretArguments()) == 0 {
		return nil
	}
	return []error{web.Mistake("body.files", "schedule %s: the runbook %s has secret arguments (%s), "+
		"and what a schedule asks with is kept in the open: have the step read it from a file of the "+
		"host, or run it with muster run", schedule, runbook, wording.Join(r.SecretArguments(), ", "))}
}
