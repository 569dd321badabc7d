package server

import (
	"context"
	"errors"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/draft"
	"muster/server/duties"
	"muster/server/election"
	"muster/server/intake"
	"muster/server/lanes"
)

// laneDuty lets tasks of lanes begin whose turn it is.
func laneDuty(s *Server) election.Duty {
	return election.Duty{Name: lanes.Duty, Work: func(ctx context.Context, _ *election.Term) error {
		duties.Repeat(ctx, s.log, "lanes", lanes.Every, newLanes(s).RunOnce)
		return nil
	}}
}

// newLanes gives the duty that lets tasks of lanes begin what it works with.
func newLanes(s *Server) *lanes.Lanes {
	q := s.queue
	return &lanes.Lanes{Kept: q.Submit.Lined, Tasks: q.Read.Tasks, Commits: q.Submit.Puts,
		Cancels: q.Submit.Cancels, Checks: laneChecks{s}, Log: s.log, Now: s.clock}
}

// laneChecks submits the checks of tasks that wait in lanes.
type laneChecks struct{ *Server }

// NewID makes the id of a task.
func (s laneChecks) NewID() jobs.TaskID { return jobs.NewTaskID(s.now(), s.chance()) }

// CheckTask submits the check of a task on all its hosts, in the name of its operator. The task
// must be one that a server has signed.
func (s laneChecks) CheckTask(ctx context.Context, id, of jobs.TaskID, note string) (why string,
	err error) {
	spec, err := s.intake.specs.Spec(ctx, of)
	if err != nil {
		return "", err
	}
	check, err := draft.CheckOf(spec)
	if err != nil {
		return err.Error(), nil
	}
	var hosts []string
	err = s.queue.Read.Jobs.EachJob(ctx, of, 0, hostsAtOnce, func(list []jobs.JobInfo) error {
		for _, j := range list {
			hosts = append(hosts, j.Host)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	check.On, check.Reason = fleet.Fold(hosts), note
	p, gone, err := s.intake.submits.Fix(ctx, intake.Fixed{Task: jobs.Task{ID: id, Spec: check},
		Hosts: hosts, Operator: spec.Operator, Proven: spec.Proven})
	switch {
	case errors.Is(err, intake.ErrFrozen):
		return err.Error(), nil
	case err != nil:
		return "", err
	case len(gone) > 0:
		return "of its hosts some are in the inventory no more: " +
			wording.ClipList(fleet.Fold(gone)), nil
	}
	err = s.intake.entry.PutOnce(ctx, &p)
	if errors.Is(err, queue.ErrConflict) || errors.Is(err, queue.ErrCancelled) ||
		errors.Is(err, jobs.ErrNoBlob) {
		return err.Error(), nil
	}
	return "", err
}

// hostsAtOnce is the number of jobs that are read at once.
const hostsAtOnce = 500
