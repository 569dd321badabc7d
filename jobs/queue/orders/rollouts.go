package orders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Rollouts stops and resumes tasks with a rule, and opens their waves.
type Rollouts struct {
	c        *queue.Conn
	switches *Switches
}

// NewRollouts returns the rollouts behind a connection.
func NewRollouts(c *queue.Conn, s *Switches) *Rollouts { return &Rollouts{c, s} }

// rolled is the answer of roll.lua.
type rolled struct {
	status, text string
	number       int64
}

func (q *Rollouts) roll(ctx context.Context, id jobs.TaskID, args ...any) (out rolled, zone string,
	err error) {
	zones, err := q.c.Places.TaskZones(ctx, id)
	if err != nil {
		return out, "", err
	}
	zone = zones[0]
	r, err := q.c.Script(ctx, queue.ScriptRoll, zone, append([]any{string(id)}, args...)...)
	if err != nil {
		return out, zone, err
	}
	out = rolled{r.Text(), r.Text(), int64(r.Micros())}
	if r.Err != nil {
		return out, zone, fmt.Errorf("%v of task %s: %w", args[0], id, r.Err)
	}
	if out.status == codec.Absent {
		return out, zone, fmt.Errorf("a rollout of task %s: %w", id, queue.ErrNotFound)
	}
	return out, zone, nil
}

// StopTask lets no further job of a task with a rule begin, until GoOn. Jobs that have begun run to
// their end. note says who ordered it, and why.
func (q *Rollouts) StopTask(ctx context.Context, id jobs.TaskID, note string) (jobs.Rolled, error) {
	r, _, err := q.roll(ctx, id, "stop", codec.OneLine(note), "", "")
	out := jobs.Rolled{Task: id, Stopped: r.status != "ended", Already: r.status != "ok",
		Note: cmp.Or(r.text, note), Ended: r.status == "ended"}
	return out, err
}

// GoOn lets a stopped task start jobs again, or opens its next wave without waiting. allowed, if
// not nil, is the new total of failures allowed. ErrSpent: more jobs have failed already.
func (q *Rollouts) GoOn(ctx context.Context, id jobs.TaskID, allowed *int, note string) (
	jobs.Rolled, error) {
	out := jobs.Rolled{Task: id, Note: note}
	number := ""
	if allowed != nil {
		number = strconv.Itoa(*allowed)
	}
	r, zone, err := q.roll(ctx, id, "go", codec.OneLine(note), number, "")
	if err != nil {
		return out, err
	}
	out.Failed, out.Was, out.Already = int(r.number), r.text, r.status != "ok"
	if out.Ended = r.status == "ended"; !out.Ended {
		out.MaxFailed = allowed
	}
	switch r.status {
	case "spent":
		return out, fmt.Errorf("%d jobs have failed: %w", r.number, queue.ErrSpent)
	case "ok":
		back, err := q.switches.bringBack(ctx, zone, id, "release", order{note: note})
		out.Moved = int(back.Number)
		return out, err
	}
	return out, nil
}

// Rollouts returns the open tasks with a rule. If some zones cannot be read, it returns an error
// that names each of them, together with the tasks of the others.
func (q *Rollouts) Rollouts(ctx context.Context) ([]jobs.TaskID, error) {
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return nil, err
	}
	out := []jobs.TaskID{}
	var errs []error
	for _, zone := range zones {
		ids, err := q.c.Redis().SMembers(ctx, keys.Zone(zone, "rolling", "")).Result()
		if err != nil {
			errs = append(errs, fmt.Errorf("zone %s: %w", zone, q.c.Say("rollouts", err)))
		}
		for _, id := range ids {
			out = append(out, jobs.TaskID(id))
		}
	}
	slices.Sort(out)
	return out, errors.Join(errs...)
}

// LookAtWaves notes when all jobs of the open waves of a task have ended, and completes an opening
// that a server left half done. over is the time since which they have; zero: some have not.
func (q *Rollouts) LookAtWaves(ctx context.Context, id jobs.TaskID) (over jobs.Time, err error) {
	r, zone, err := q.roll(ctx, id, "look", "", "", "")
	if err != nil || r.status == "ended" {
		return over, err
	}
	if r.text != "0" {
		if _, err := q.switches.bringBack(ctx, zone, id, "release", order{}); err != nil {
			return over, err
		}
	}
	return jobs.TimeOf(jobs.Micros(r.number)), nil
}

// OpenWave opens the next wave if all jobs of the open ones have ended and nothing keeps the task.
// It returns false if it did not open one; calling it twice does no harm.
func (q *Rollouts) OpenWave(ctx context.Context, id jobs.TaskID, wave int, note string) (bool,
	error) {
	r, zone, err := q.roll(ctx, id, "open", codec.OneLine(note), wave, "")
	if err != nil || r.status != "ok" {
		return false, err
	}
	_, err = q.switches.bringBack(ctx, zone, id, "release", order{note: note})
	return true, err
}

// CheckWaves names the task that checks the hosts of the open waves, once: it returns the task that
// was named first, or an empty id if it is not time for a check.
func (q *Rollouts) CheckWaves(ctx context.Context, id jobs.TaskID, wave int, by jobs.TaskID) (
	jobs.TaskID, error) {
	r, _, err := q.roll(ctx, id, "check", "", wave, string(by))
	return jobs.TaskID(r.text), err
}
