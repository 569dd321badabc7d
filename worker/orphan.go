package worker

import (
	"fmt"
	"slices"
	"time"

	"muster/jobs"
)

// lockedUntil notes the end of a lock, on the boot clock. A little later the queue can hand its job
// to another worker.
func (c *caller) lockedUntil(end, timeout time.Duration) {
	c.locked = max(c.locked, end+jobs.LockDelay(timeout))
}

// orphaned returns an error if the worker should keep its results no longer: no master is there to
// stop this process, and the queue has been away until long after the locks of the results.
func (c *clerk) orphaned() error {
	over := c.calls.locked + c.cfg.Orphan
	if c.orders != nil || len(c.inHand) > 0 || c.Clock() < over {
		return nil
	}
	results := slices.Concat(c.calls.call.step.Results, c.results)
	for _, r := range results {
		c.Log.Error("the result is not reported: no master, and no answer from the queue", "task",
			r.Job.Task(), "job", r.Job, "kind", r.Kind, "outcome", r.Outcome, "error", r.Error)
	}
	return fmt.Errorf("no master, and no answer from the queue in zone %s for %s after the locks of "+
		"%d jobs had ended: they are not reported", c.calls.zone, c.cfg.Orphan, len(results))
}
