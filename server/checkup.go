package server

import (
	"context"
	"fmt"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/server/intake"
)

// checks submits the health checks of rollouts.
type checks struct{ to requests }

// SubmitCheck submits a health check as task id, or continues what another server left half way.
func (c checks) SubmitCheck(ctx context.Context, id jobs.TaskID, t jobs.TaskInfo, check jobs.Spec,
	hosts []string) (total int, why string, err error) {
	check.On = fleet.Fold(hosts)
	check.Reason = fmt.Sprintf("health check of task %s after wave %d", t.Task, t.Rollout.Wave)
	p, gone, err := c.to.submits.Fix(ctx, intake.Fixed{Task: jobs.Task{ID: id, Spec: check},
		Hosts: hosts, Operator: t.Operator, Proven: t.Proven})
	switch {
	case err != nil:
		return 0, "", err
	case len(p.Names) == 0:
		return 0, fmt.Sprintf("its hosts are in the inventory no more, so they cannot be checked: %s",
			wording.ClipList(fleet.Fold(gone))), nil
	}
	return p.Task.Total, "", c.to.entry.PutOnce(ctx, &p)
}
