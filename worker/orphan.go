package worker

import (
	"fmt"
	"slices"
	"time"

	"muster/jobs"
)

// lockedTil notes when a lock ends, on the boot clock. Its job can be handed to
// somebody else a little later.
func (c *caller) lockedTil(end, timeout time.Duration) {
	c.locked = max(c.locked, end+jobs.LockDelay(timeout))
}

// forsaken tells why results are not waited with any longer: no master is there who
// could stop this process, and the queue has been away for long after their locks.
func (c *clerk) forsaken() error {
	over := c.calls.locked + c.cfg.Orphan
	if c.orders != nil || len(c.inHand) > 0 || c.Clock() < over {
		return nil
	}
	results := slices.Concat(c.calls.call.step.Results, c.results)
	for _, r := range results {
		c.Log.Error("the result is not reported: no master, and no answer from the queue", "job", r.Job,
			"kind", r.Kind, "outcome", r.Outcome, "error", r.Error)
	}
	return fmt.Errorf("no master, and no answer from the queue in zone %s for %s after the locks of "+
		"%d jobs had ended: they are not reported", c.calls.zone, c.cfg.Orphan, len(results))
}
