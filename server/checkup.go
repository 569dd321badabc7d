package server

import (
	"context"
	"encoding/json"
	"fmt"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/scripts"
	"muster/server/draft"
	"muster/server/stock"
)

// checks submits the health checks of rollouts.
type checks struct{ server *Server }

// SubmitCheck submits a health check as task id, or continues what another server left half way.
func (c checks) SubmitCheck(ctx context.Context, id jobs.TaskID, t jobs.TaskInfo, check jobs.Spec,
	hosts []string) (total int, why string, err error) {
	p, why, err := c.planCheck(ctx, t, check, hosts)
	if err != nil || why != "" {
		return 0, why, err
	}
	p.Task.ID = id
	return p.Task.Total, "", c.server.putOnce(ctx, &p, false)
}

// planCheck plans the health check on some hosts, or says why there is none.
func (c checks) planCheck(ctx context.Context, t jobs.TaskInfo, spec jobs.Spec, names []string) (
	draft.Draft, string, error) {
	v, err := c.server.look.Scene(ctx, "")
	if err != nil {
		return draft.Draft{}, "", err
	}
	if v.Stock == nil {
		return draft.Draft{}, "", stock.ErrNone
	}
	hosts, gone := v.Stock.Find(names)
	if len(hosts) == 0 {
		return draft.Draft{}, fmt.Sprintf("its hosts are in the inventory no more, so they cannot be "+
			"checked: %s", wording.ClipList(fleet.Fold(gone))), nil
	}
	var frozen scripts.Frozen
	if err := json.Unmarshal(spec.Action, &frozen); err != nil {
		return draft.Draft{}, "", err
	}
	spec.On = fleet.Fold(names)
	spec.Reason = fmt.Sprintf("health check of task %s after wave %d", t.Task, t.Rollout.Wave)
	p := draft.Setting{Scene: v, Operator: t.Operator, Proven: t.Proven, Now: c.server.now()}.Draft(
		jobs.Task{Spec: spec}, hosts)
	p.Blobs = frozen.Blobs()
	return p, "", nil
}
