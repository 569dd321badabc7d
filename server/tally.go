package server

import (
	"context"
	"errors"

	"muster/jobs"
	"muster/jobs/queue"
)

// tallyMax is how many of the newest tasks a tally looks at. Of more open tasks than
// this the oldest are counted only if a tally saw them before.
const tallyMax = 100

// tally counts the open tasks by state, so that a scrape does not have to look at tasks.
func (s *Server) tally(ctx context.Context) error {
	s.meters.mu.Lock()
	defer s.meters.mu.Unlock()
	newest, err := s.queue.Tasks(ctx, tallyMax)
	if err != nil {
		return err
	}
	seen := make(map[jobs.TaskID]jobs.TaskInfo, len(newest))
	for _, t := range newest {
		seen[t.Task] = t
	}
	// Older tasks are followed as long as they are open.
	for id, before := range s.meters.followed {
		if _, ok := seen[id]; ok || before.State == jobs.TaskEnded {
			continue
		}
		t, err := s.queue.Task(ctx, id)
		if errors.Is(err, queue.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		seen[id] = t
	}
	s.meters.count(seen)
	return nil
}

// forget is when another server counts from now on: what this one says of open
// tasks would soon be wrong.
func (m *meters) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.followed = nil
	m.tasksOpen.Reset()
}

// count notes how many tasks are open.
func (m *meters) count(seen map[jobs.TaskID]jobs.TaskInfo) {
	open := map[jobs.TaskState]int{jobs.TaskSubmitting: 0, jobs.TaskQueued: 0, jobs.TaskRunning: 0,
		jobs.TaskPaused: 0, jobs.TaskStopped: 0}
	for _, t := range seen {
		if t.State != jobs.TaskEnded {
			open[t.State]++
		}
	}
	for state, n := range open {
		m.tasksOpen.WithLabelValues(string(state)).Set(float64(n))
	}
	m.followed = seen
}
