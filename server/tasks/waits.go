package tasks

import (
	"context"

	"muster/api"
	"muster/jobs"
	"muster/server/web"
)

type (
	lacksInput struct {
		Task string `path:"task"`
	}
	lacksOutput struct{ Body api.LackList }
)

// waits answers GET /v1/tasks/{task}/waits.
func (s TaskRoutes) waits(ctx context.Context, in *lacksInput) (*lacksOutput, error) {
	t, past, err := s.Find.At(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	later := s.Why.Awaits(ctx)
	l := s.Why.Lacks(later)
	if !past && t.State != jobs.TaskEnded {
		err := s.Reads.Jobs.EachJob(ctx, t.Task, 0, web.JobsMax, func(list []jobs.JobInfo) error {
			if err := later.Add(ctx, t, list); err != nil {
				return err
			}
			return l.Add(ctx, list)
		})
		if err != nil {
			return nil, web.Problem(err)
		}
	}
	return &lacksOutput{api.LackList{Waits: l.List(), Awaits: later.List()}}, nil
}
