package historian

import (
	"context"
	"errors"

	"muster/history"
	"muster/jobs"
	"muster/jobs/queue"
)

// memory keeps tasks that were read, because many events belong to few tasks.
type memory struct {
	tasks Tasks
	past  PastTasks
	known map[jobs.TaskID]jobs.TaskInfo
}

// memoryMax bounds the tasks that a historian remembers.
const memoryMax = 1000

// fresh returns a task as Redis knows it now; empty if Redis has forgotten it.
func (m memory) fresh(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	t, err := m.tasks.Task(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return jobs.TaskInfo{}, nil
	}
	if err != nil {
		return t, err
	}
	if len(m.known) >= memoryMax {
		clear(m.known)
	}
	m.known[id] = t
	return t, nil
}

// look returns a task as Redis knows it now, and reports whether history shall store it so: a
// day after the end of a task Redis still knows its name, but no longer the number of its hosts.
func (m memory) look(ctx context.Context, id jobs.TaskID) (t jobs.TaskInfo, whole bool, err error) {
	t, err = m.fresh(ctx, id)
	if err != nil || t.Task == "" || t.Total > 0 || t.State == jobs.TaskSubmitting {
		return t, t.Task != "", err
	}
	switch _, err := m.past.Task(ctx, id); {
	case errors.Is(err, history.ErrNotFound):
		return t, true, nil // nobody knows more
	default:
		return t, false, err
	}
}

// task returns what was asked for; only the id if both Redis and history have forgotten it.
func (m memory) task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	if t, ok := m.known[id]; ok {
		return t, nil
	}
	t, err := m.fresh(ctx, id)
	if err != nil || t.Task != "" {
		return t, err
	}
	t, err = m.past.Task(ctx, id)
	if errors.Is(err, history.ErrNotFound) {
		t, err = jobs.TaskInfo{Task: id}, nil
	}
	if err == nil {
		m.known[id] = t
	}
	return t, err
}

// zonesOf is task for a caller that needs the zones: a task that was unknown earlier may be
// known by now.
func (m memory) zonesOf(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	t, err := m.task(ctx, id)
	if err == nil && len(t.Zones) == 0 {
		delete(m.known, id)
		return m.task(ctx, id)
	}
	return t, err
}
