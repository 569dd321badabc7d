package orders

import (
	"context"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/web"
)

type (
	nextInput struct {
		web.Asked
		Task string `path:"task"`
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body *api.NextRequest
	}
	rolledOutput   struct{ Body jobs.Rolled }
	rolloutsOutput struct{ Body api.TaskList }
)

// RolloutRoutes answers questions and orders about tasks that go out by a rule or in waves.
type RolloutRoutes struct {
	Rollouts Rollouts
	Tasks    Tasks
	Log      hclog.Logger

	// Seen returns those tasks of a list that the caller may see.
	Seen func(ctx context.Context, list []jobs.TaskInfo) ([]jobs.TaskInfo, error)
}

// Routes registers the routes of the resource.
func (s RolloutRoutes) Routes(api huma.API) {
	const rollout = "/v1/tasks/{task}/rollout"
	huma.Register(api, web.Get("/v1/rollouts",
		"List tasks with a rule or waves on their way"), s.rollouts)
	huma.Register(api, web.Post(rollout+"/stop", "Let no further job of a task begin"), s.stopRollout)
	huma.Register(api, web.Post(rollout+"/next",
		"Let a task continue, or open its next wave"), s.nextRollout)
}

// rollouts answers GET /v1/rollouts.
func (s RolloutRoutes) rollouts(ctx context.Context, _ *web.Nothing) (*rolloutsOutput, error) {
	ids, err := s.Rollouts.Rollouts(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	list := []jobs.TaskInfo{}
	for _, id := range ids {
		t, err := s.Tasks.Task(ctx, id)
		if errors.Is(err, queue.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, web.Problem(err)
		}
		if t.State != jobs.TaskEnded {
			list = append(list, t)
		}
	}
	list, err = s.Seen(ctx, list)
	return &rolloutsOutput{api.TaskList{Tasks: list}}, web.Problem(err)
}

// stopRollout lets no further job of a task begin.
func (s RolloutRoutes) stopRollout(ctx context.Context, in *taskOrder) (*rolledOutput, error) {
	g, wrong := in.Reasoned("stopped")
	id, err := jobs.ParseTaskID(in.Task)
	if wrong = append(wrong, web.Mistakes("path.task", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	did, err := s.Rollouts.StopTask(ctx, id, g.Note())
	if err != nil {
		return nil, s.noRollout(ctx, id, err)
	}
	web.LogOrder(s.Log, "rollout stopped", g, "task", id, "already", did.Already)
	return &rolledOutput{did}, nil
}

// nextRollout continues a stopped task, or opens the next wave of one that waits.
func (s RolloutRoutes) nextRollout(ctx context.Context, in *nextInput) (*rolledOutput, error) {
	var b api.NextRequest
	if in.Body != nil {
		b = *in.Body
	}
	g, wrong := web.Order{Asked: in.Asked, User: in.User, Body: &b.OrderRequest}.Reasoned("let go on")
	id, err := jobs.ParseTaskID(in.Task)
	if wrong = append(wrong, web.Mistakes("path.task", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	t, err := s.Tasks.Task(ctx, id)
	if err != nil {
		return nil, web.Problem(err)
	}
	ask, bad := jobs.RolloutAsk{MaxFailed: b.MaxFailed}.Resolve(t.Total)
	for _, m := range bad {
		wrong = append(wrong, web.Mistakes("body."+m.Field, m.Err)...)
	}
	if b.Wave > 0 {
		already, err := t.MayOpen(b.Wave)
		wrong = append(wrong, web.Mistakes("body.wave", err)...)
		if already && len(wrong) == 0 {
			return &rolledOutput{jobs.Rolled{Task: id, Already: true, Failed: t.Rollout.Failed,
				Wave: b.Wave}}, nil
		}
	}
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	did, err := s.Rollouts.GoOn(ctx, id, ask.MaxFailed, g.Note())
	if errors.Is(err, queue.ErrSpent) {
		return nil, web.Refusal([]error{web.Mistake("body.max_failed",
			"%d of %d have failed already: say how "+
				"many may fail in all, %d or more", did.Failed, t.Total, did.Failed)})
	}
	if err != nil {
		return nil, s.noRollout(ctx, id, err)
	}
	if did.Already && ask.MaxFailed == nil {
		did.Early = t.Early() // as it stood before the order; a budget is an order by itself
	}
	did.Wave = b.Wave
	web.LogOrder(s.Log, "rollout goes on", g, "task", id, "already", did.Already, "was", did.Was)
	return &rolledOutput{did}, nil
}

// noRollout returns the answer for an error of an order about a task that may have no rule.
func (s RolloutRoutes) noRollout(ctx context.Context, id jobs.TaskID, err error) error {
	t, look := s.Tasks.Task(ctx, id)
	if errors.Is(err, queue.ErrNotFound) && look == nil && t.Rollout == nil {
		return huma.Error404NotFound(fmt.Sprintf("task %s has no rule and no waves; `muster pause` and "+
			"`muster cancel` stop any task", id))
	}
	return web.Problem(err)
}
