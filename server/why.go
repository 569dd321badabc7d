package server

import (
	"context"
	"errors"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/read"
)

// explained is a job with why it does not run.
func (s *Server) explained(ctx context.Context, j jobs.JobInfo) (jobs.JobInfo, error) {
	list := []jobs.JobInfo{j}
	err := s.explain(ctx, list, 1, nil)
	return list[0], err
}

// explainAll puts into jobs of one task why they do not run. Of those that wait for what others
// have it asks about the first ones.
func (s *Server) explainAll(ctx context.Context, list []jobs.JobInfo) error {
	return s.explain(ctx, list, lacksMax, nil)
}

// explain tells the reasons to f, one by one. Jobs that Redis has forgotten have none.
func (s *Server) explain(ctx context.Context, list []jobs.JobInfo, most int,
	f func(jobs.JobInfo, read.Reasons)) error {
	if len(list) == 0 {
		return nil
	}
	reasons, err := s.queue.Read.Jobs.Explain(ctx, list, most)
	if errors.Is(err, queue.ErrNotFound) {
		return nil // it is gone, or history told of it
	}
	if err != nil {
		return err
	}
	for i, r := range reasons {
		if f != nil {
			f(list[i], r)
		}
	}
	return nil
}
