package approvals

import (
	"context"
	"encoding/json"
	"errors"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/scripts"
)

// Lasts finds the last run of a runbook.
type Lasts struct {
	// Run returns the newest task with a runbook that began, but for one; nil: there is no history.
	Run func(ctx context.Context, runbook string, but jobs.TaskID) (jobs.TaskInfo, error)
	// Spec returns what Redis still has of a task; it wraps queue.ErrNotFound.
	Spec func(ctx context.Context, id jobs.TaskID) (jobs.Spec, error)
}

// NewLasts finds last runs in a history; nil: there is none.
func NewLasts(s *history.Store,
	spec func(ctx context.Context, id jobs.TaskID) (jobs.Spec, error)) Lasts {
	if s == nil {
		return Lasts{Spec: spec}
	}
	return Lasts{Spec: spec,
		Run: func(ctx context.Context, runbook string, but jobs.TaskID) (jobs.TaskInfo, error) {
			return history.LastRun(ctx, s, runbook, but)
		}}
}

// last returns the last run of the runbook of a held task; nil: none is known, or the caller does
// not see it.
func (s Routes) last(ctx context.Context, h *held) (*api.HeldLast, error) {
	if s.Last.Run == nil {
		return nil, nil
	}
	t, err := s.Last.Run(ctx, h.spec.Runbook, h.info.Task)
	if errors.Is(err, history.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seen, err := s.Seen(ctx, []jobs.TaskInfo{t})
	if err != nil || len(seen) == 0 {
		return nil, err
	}
	last := &api.HeldLast{Task: t.Task, At: t.Submitted}
	if t.Ran != nil {
		last.Hash = t.Ran.SHA256
	}
	spec, err := s.Last.Spec(ctx, t.Task)
	var frozen scripts.Frozen
	if errors.Is(err, queue.ErrNotFound) || err == nil && json.Unmarshal(spec.Action, &frozen) != nil {
		return last, nil
	}
	if err != nil {
		return nil, err
	}
	last.Plan, err = json.Marshal(frozen.Steps)
	return last, err
}
