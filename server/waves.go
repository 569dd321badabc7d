package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/scripts"
	"muster/server/draft"
	"muster/server/stock"
)

// dutyWaves is the duty of who opens the waves of tasks.
const dutyWaves = "waves"

// wavesEvery is how often the leader looks whether a wave is to be opened.
const wavesEvery = time.Second

// A move is what is next in a task whose open waves have ended.
type move string

const (
	moveWait  move = "wait" // for the soak time, or for a person
	moveStop  move = "stop"
	moveCheck move = "check"
	moveOpen  move = "open"
)

// nextMove decides what is next in a rollout whose open waves have ended, by Redis'
// clock, and says why it stops. health is nil as long as it is not known how that is.
func nextMove(r jobs.RolloutInfo, now time.Time, health *checkup) (move, string) {
	failed := r.Failed - r.Accepted
	switch {
	case r.Pass:
		return moveOpen, ""
	case r.MaxFailed == nil && failed > 0:
		return moveStop, fmt.Sprintf("wave %d: %d failed, and without --max-failed none may before the "+
			"next wave", r.Wave, failed)
	case now.Before(r.Over.Add(r.Soak)):
		return moveWait, ""
	case r.Health != "" && health == nil:
		return moveCheck, ""
	case r.Health != "" && health.why != "":
		return moveStop, fmt.Sprintf("wave %d: health check %s: %s", r.Wave, r.Health, health.why)
	case r.Health != "" && !health.over, r.Gate:
		return moveWait, ""
	}
	return moveOpen, ""
}

// checkup is how a health check stands.
type checkup struct {
	over bool
	why  string // what is wrong; empty: nothing, as far as it is over
}

// advance is one round: it opens the waves whose turn it is. It goes on with the other
// tasks when one fails, and with the other zones when one cannot be read.
func (s *Server) advance(ctx context.Context) error {
	ids, unread := s.queue.Orders.Rollouts.Rollouts(ctx)
	var first error
	for _, id := range ids {
		if err := s.advanceTask(ctx, id); err != nil && first == nil {
			first = fmt.Errorf("task %s: %w", id, err)
		}
	}
	return errors.Join(unread, first)
}

func (s *Server) advanceTask(ctx context.Context, id jobs.TaskID) error {
	t, err := s.queue.Read.Tasks.Task(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return s.forgetRollout(ctx, id)
	}
	switch {
	case err != nil:
		return err
	case t.State == jobs.TaskEnded, t.Rollout == nil:
		return s.forgetRollout(ctx, id)
	case t.Cancelled != "" && t.Outcomes.Sum()+t.Running < t.Total:
		// Who cancelled it may have died half way, and jobs that wait for their wave are
		// met by nobody.
		_, err := s.queue.Submit.Cancels.Cancel(ctx, id, t.Cancelled)
		return err
	case t.State == jobs.TaskStopped, t.Paused != "", t.Cancelled != "":
		return nil
	}
	over, err := s.queue.Orders.Waves.LookAtWaves(ctx, id)
	if err != nil || over.IsZero() || t.Rollout.Last() {
		return err
	}
	t.Rollout.Over = over
	return s.afterWave(ctx, t)
}

// forgetRollout takes a task off the list that has ended, or is forgotten.
func (s *Server) forgetRollout(ctx context.Context, id jobs.TaskID) error {
	_, err := s.queue.Orders.Waves.LookAtWaves(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return nil
	}
	return err
}

// afterWave does what is next in a task whose open waves have ended.
func (s *Server) afterWave(ctx context.Context, t jobs.TaskInfo) error {
	r := *t.Rollout
	health, err := s.checkup(ctx, r.Checks)
	if err != nil {
		return err
	}
	now := t.Submitted.Add(time.Duration(t.Seconds * float64(time.Second))) // by Redis' clock
	next, why := nextMove(r, now, health)
	switch next {
	case moveStop:
		return s.stopWaves(ctx, t, why)
	case moveCheck:
		return s.check(ctx, t)
	case moveOpen:
		note := fmt.Sprintf("wave %d of %d", r.Wave+1, len(r.Waves))
		opened, err := s.queue.Orders.Waves.OpenWave(ctx, t.Task, r.Wave+1, note)
		if opened {
			s.log.Info("wave opened", "task", t.Task, "wave", r.Wave+1, "of", len(r.Waves))
		}
		return err
	}
	return nil
}

func (s *Server) stopWaves(ctx context.Context, t jobs.TaskInfo, why string) error {
	_, err := s.queue.Orders.Rollouts.StopTask(ctx, t.Task, why)
	if err == nil {
		s.log.Warn("rollout stopped", "task", t.Task, "why", why)
	}
	return err
}

// checkup is how the task of a health check stands; nil if it has not begun.
func (s *Server) checkup(ctx context.Context, id jobs.TaskID) (*checkup, error) {
	if id == "" {
		return nil, nil
	}
	t, err := s.queue.Read.Tasks.Task(ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return nil, nil // who named it died before it was submitted
	case err != nil:
		return nil, err
	case t.State == jobs.TaskSubmitting:
		return nil, nil
	case t.State != jobs.TaskEnded:
		return &checkup{}, nil
	case t.Outcomes[jobs.Succeeded] < t.Total:
		return &checkup{true, fmt.Sprintf("%d of %d hosts did not pass, see task %s",
			t.Total-t.Outcomes[jobs.Succeeded], t.Total, id)}, nil
	}
	return &checkup{over: true}, nil
}

// check submits the health check of the open waves. Its id is written down first, so
// that another server goes on with the same task.
func (s *Server) check(ctx context.Context, t jobs.TaskInfo) error {
	hosts, err := s.succeeded(ctx, t)
	if err != nil {
		return err
	}
	if len(hosts) == 0 {
		return s.stopWaves(ctx, t, fmt.Sprintf("wave %d: no host has succeeded that could be checked",
			t.Rollout.Wave))
	}
	spec, err := s.queue.Read.Tasks.Spec(ctx, t.Task)
	if err != nil {
		return err
	}
	if spec.Rollout == nil || spec.Rollout.Check == nil {
		return s.stopWaves(ctx, t, "its health check is not kept any more")
	}
	id, err := s.queue.Orders.Waves.CheckWaves(ctx, t.Task, t.Rollout.Wave,
		jobs.NewTaskID(s.now(), s.chance()))
	if err != nil || id == "" {
		return err
	}
	p, why, err := s.planCheck(ctx, t, *spec.Rollout.Check, hosts)
	if err != nil {
		return err
	}
	if why != "" {
		return s.stopWaves(ctx, t, why)
	}
	p.Task.ID = id
	err = s.putOnce(ctx, &p, false)
	if errors.Is(err, queue.ErrConflict) || errors.Is(err, jobs.ErrNoBlob) {
		return s.stopWaves(ctx, t, fmt.Sprintf("wave %d: health check %s: %s", t.Rollout.Wave,
			t.Rollout.Health, err))
	}
	if err == nil {
		s.log.Info("health check begun", "task", t.Task, "wave", t.Rollout.Wave, "check", id,
			"hosts", p.Task.Total)
	}
	return err
}

// planCheck is the health check on some hosts, or why there is none.
func (s *Server) planCheck(ctx context.Context, t jobs.TaskInfo, spec jobs.Spec, names []string) (
	draft.Draft, string, error) {
	v, err := s.look.Scene(ctx, "")
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
	p := draft.Setting{Scene: v, Operator: t.Operator, Proven: t.Proven, Now: s.now()}.Draft(
		jobs.Task{Spec: spec}, hosts)
	p.Blobs = frozen.Blobs()
	return p, "", nil
}

// succeeded are the hosts of the open waves on which the task has succeeded.
func (s *Server) succeeded(ctx context.Context, t jobs.TaskInfo) (names []string, err error) {
	left := 0
	for _, n := range t.Rollout.Waves[:t.Rollout.Wave] {
		left += n
	}
	err = s.queue.Read.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			if left == 0 {
				return errPageFull
			}
			left--
			if j.Outcome == jobs.Succeeded {
				names = append(names, j.Host)
			}
		}
		return nil
	})
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return names, err
}
