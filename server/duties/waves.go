package duties

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/fault"
)

// Waves opens the waves of rollouts, one after the other, and continues chains.
type Waves struct {
	Tasks    Tasks
	Specs    Specs
	Jobs     Jobs
	Rollouts Rollouts
	Openings Openings
	Cancels  Cancels
	Checks   Checks
	Chains   *Chains
	Proofs   Proving
	NewID    func() jobs.TaskID
	Log      hclog.Logger
}

// Specs reads specs of which other tasks may be made. A *fault.Error says that a spec is not
// believed.
type Specs interface {
	Spec(ctx context.Context, id jobs.TaskID) (jobs.Spec, error)
}

// Rollouts lists and stops tasks with a rule.
type Rollouts interface {
	Rollouts(ctx context.Context) ([]jobs.TaskID, error)
	StopTask(ctx context.Context, id jobs.TaskID, note string) (jobs.Rolled, error)
}

// Openings are the waves of one rollout.
type Openings interface {
	LookAtWaves(ctx context.Context, id jobs.TaskID) (over jobs.Time, err error)
	OpenWave(ctx context.Context, id jobs.TaskID, wave int, note string) (bool, error)
	CheckWaves(ctx context.Context, id jobs.TaskID, wave int, by jobs.TaskID) (jobs.TaskID, error)
}

// Checks submits health checks.
type Checks interface {
	// SubmitCheck submits the health check of t on some of its hosts as task id, once, and returns
	// the number of hosts that are checked. why is the reason if there can be no check.
	SubmitCheck(ctx context.Context, id jobs.TaskID, t jobs.TaskInfo, check jobs.Spec,
		hosts []string) (total int, why string, err error)
}

// WavesDuty is the name of the duty to open waves.
const WavesDuty = "waves"

// wavesEvery is the time between two looks at rollouts and chains.
const wavesEvery = time.Second

// Run opens waves and continues chains until ctx is done.
func (d *Waves) Run(ctx context.Context) error {
	Repeat(ctx, d.Log, WavesDuty, wavesEvery, func(ctx context.Context) error {
		return errors.Join(d.RunOnce(ctx), d.Chains.RunOnce(ctx))
	})
	return nil
}

// A move is the next action in a task whose open waves have ended.
type move string

const (
	moveWait  move = "wait" // for the soak time, or for a person
	moveStop  move = "stop"
	moveCheck move = "check"
	moveOpen  move = "open"
)

// nextMove decides the next action in a rollout whose open waves have ended, by Redis'
// clock, and says why it stops. health is nil until its check was submitted.
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

// checkup is the state of a health check.
type checkup struct {
	over bool
	why  string // what is wrong; empty: nothing, as far as it is over
}

// RunOnce opens the waves whose turn it is. When one task fails it continues with the others, and
// when one zone cannot be read with the other zones.
func (d *Waves) RunOnce(ctx context.Context) error {
	ids, unread := d.Rollouts.Rollouts(ctx)
	var first error
	for _, id := range ids {
		if err := d.task(ctx, id); err != nil && first == nil {
			first = fmt.Errorf("task %s: %w", id, err)
		}
	}
	return errors.Join(unread, first)
}

func (d *Waves) task(ctx context.Context, id jobs.TaskID) error {
	t, err := d.Tasks.Task(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return d.forgetRollout(ctx, id)
	}
	switch {
	case err != nil:
		return err
	case t.State == jobs.TaskEnded, t.Rollout == nil:
		return d.forgetRollout(ctx, id)
	case t.Cancelled != "" && t.Outcomes.Sum()+t.Running < t.Total:
		// The server that cancelled it may have died half way, and nobody else meets jobs that
		// wait for their wave.
		_, err := d.Cancels.Cancel(ctx, id, t.Cancelled)
		return err
	case t.State == jobs.TaskStopped, t.Paused != "", t.Cancelled != "":
		return nil
	}
	over, err := d.Openings.LookAtWaves(ctx, id)
	if err != nil || over.IsZero() || t.Rollout.Last() {
		return err
	}
	t.Rollout.Over = over
	return d.afterWave(ctx, t)
}

// forgetRollout takes a task off the list that has ended, or is forgotten.
func (d *Waves) forgetRollout(ctx context.Context, id jobs.TaskID) error {
	_, err := d.Openings.LookAtWaves(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return nil
	}
	return err
}

// afterWave takes the next action in a task whose open waves have ended.
func (d *Waves) afterWave(ctx context.Context, t jobs.TaskInfo) error {
	r := *t.Rollout
	health, err := d.checkup(ctx, r.Checks)
	if err != nil {
		return err
	}
	now := t.Submitted.Add(time.Duration(t.Seconds * float64(time.Second))) // by Redis' clock
	next, why := nextMove(r, now, health)
	switch next {
	case moveStop:
		return d.stopWaves(ctx, t, why)
	case moveCheck:
		return d.check(ctx, t)
	case moveOpen:
		if !r.Pass { // else a person has looked
			why, err := d.unproven(ctx, t)
			if err != nil {
				return err
			}
			if why != "" {
				return d.stopWaves(ctx, t, why)
			}
		}
		note := fmt.Sprintf("wave %d of %d", r.Wave+1, len(r.Waves))
		opened, err := d.Openings.OpenWave(ctx, t.Task, r.Wave+1, note)
		if opened {
			d.Log.Info("wave opened", "task", t.Task, "wave", r.Wave+1, "of", len(r.Waves))
		}
		return err
	}
	return nil
}

// unproven says why the next wave must not begin by itself: a writer to Redis may have invented
// that hosts of the open waves, or of their health check, are well.
func (d *Waves) unproven(ctx context.Context, t jobs.TaskInfo) (string, error) {
	hosts, err := d.succeeded(ctx, t)
	if err != nil {
		return "", err
	}
	doubtful, err := d.Proofs.doubtful(ctx, t, hosts)
	if err == nil && len(doubtful) == 0 && t.Rollout.Checks != "" {
		var check jobs.TaskInfo
		if check, err = d.Tasks.Task(ctx, t.Rollout.Checks); err == nil {
			doubtful, err = d.Proofs.doubtful(ctx, check, hosts)
		}
	}
	if err != nil || len(doubtful) == 0 {
		return "", err
	}
	return fmt.Sprintf("wave %d: no node has proven that it succeeded on %s: look at them, for "+
		"somebody may have written it to Redis; a node without node.key or of an earlier version "+
		"proves nothing",
		t.Rollout.Wave, wording.ClipList(fleet.Fold(doubtful))), nil
}

func (d *Waves) stopWaves(ctx context.Context, t jobs.TaskInfo, why string) error {
	_, err := d.Rollouts.StopTask(ctx, t.Task, why)
	if err == nil {
		d.Log.Warn("rollout stopped", "task", t.Task, "why", why)
	}
	return err
}

// checkup returns the state of a health check; nil if it has not begun.
func (d *Waves) checkup(ctx context.Context, id jobs.TaskID) (*checkup, error) {
	if id == "" {
		return nil, nil
	}
	t, err := d.Tasks.Task(ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return nil, nil // the server that wrote its id down died before it submitted it
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
func (d *Waves) check(ctx context.Context, t jobs.TaskInfo) error {
	hosts, err := d.succeeded(ctx, t)
	if err != nil {
		return err
	}
	if len(hosts) == 0 {
		return d.stopWaves(ctx, t, fmt.Sprintf("wave %d: no host has succeeded that could be checked",
			t.Rollout.Wave))
	}
	spec, err := d.Specs.Spec(ctx, t.Task)
	if doubt := new(fault.Error); errors.As(err, &doubt) {
		return d.stopWaves(ctx, t, doubt.Words)
	}
	if err != nil {
		return err
	}
	if spec.Rollout == nil || spec.Rollout.Check == nil {
		return d.stopWaves(ctx, t, "its health check is not kept any more")
	}
	t.Operator, t.Proven = spec.Operator, spec.Proven
	id, err := d.Openings.CheckWaves(ctx, t.Task, t.Rollout.Wave,
		d.NewID())
	if err != nil || id == "" {
		return err
	}
	total, why, err := d.Checks.SubmitCheck(ctx, id, t, *spec.Rollout.Check, hosts)
	if why != "" {
		return d.stopWaves(ctx, t, why)
	}
	if errors.Is(err, queue.ErrConflict) || errors.Is(err, jobs.ErrNoBlob) {
		return d.stopWaves(ctx, t, fmt.Sprintf("wave %d: health check %s: %s", t.Rollout.Wave,
			t.Rollout.Health, err))
	}
	if err == nil {
		d.Log.Info("health check begun", "task", t.Task, "wave", t.Rollout.Wave, "check", id,
			"hosts", total)
	}
	return err
}

// errEnough ends the walk over a task.
var errEnough = errors.New("the rest is of no interest")

// succeeded returns the hosts of the open waves on which the task has succeeded.
func (d *Waves) succeeded(ctx context.Context, t jobs.TaskInfo) (names []string, err error) {
	left := 0
	for _, n := range t.Rollout.Waves[:t.Rollout.Wave] {
		left += n
	}
	err = d.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			if left == 0 {
				return errEnough
			}
			left--
			if j.Outcome == jobs.Succeeded {
				names = append(names, j.Host)
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return names, err
}
