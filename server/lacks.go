package server

import (
	"context"

	"muster/api"
	"muster/jobs"
)

type (
	lacksInput struct {
		Task string `path:"task"`
	}
	lacksOutput struct{ Body api.LackList }
)

// waits answers GET /v1/tasks/{task}/waits.
func (s *Server) waits(ctx context.Context, in *lacksInput) (*lacksOutput, error) {
	t, past, err := s.taskAt(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	later := s.times.why.Awaits(ctx)
	l := s.times.why.Lacks(later)
	if !past && t.State != jobs.TaskEnded {
		err := s.queue.Read.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(list []jobs.JobInfo) error {
			if err := later.Add(ctx, t, list); err != nil {
				return err
			}
			return l.Add(ctx, list)
		})
		if err != nil {
			return nil, problem(err)
		}
	}
	return &lacksOutput{api.LackList{Waits: l.List(), Awaits: later.List()}}, nil
}
