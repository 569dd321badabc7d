package server

import (
	"context"
	"errors"
	"sync"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/metrics"
)

// tallyMax is how many of the newest tasks a tally looks at. Of more open tasks than
// this the oldest are counted only if a tally saw them before.
const tallyMax = 100

// tally counts the open tasks by state, so that a scrape does not have to look at tasks.
type tally struct {
	queue  taskReader
	meters *metrics.Meters

	rounds   int                           // of the duty that counts
	mu       sync.Mutex                    // one round at a time
	followed map[jobs.TaskID]jobs.TaskInfo // as the last round saw them
}

// taskReader reads tasks.
type taskReader interface {
	Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error)
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// round counts once.
func (y *tally) round(ctx context.Context) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	newest, err := y.queue.Tasks(ctx, tallyMax)
	if err != nil {
		return err
	}
	seen := make(map[jobs.TaskID]jobs.TaskInfo, len(newest))
	for _, t := range newest {
		seen[t.Task] = t
	}
	// Older tasks are followed as long as they are open.
	for id, before := range y.followed {
		if _, ok := seen[id]; ok || before.State == jobs.TaskEnded {
			continue
		}
		t, err := y.queue.Task(ctx, id)
		if errors.Is(err, queue.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		seen[id] = t
	}
	y.count(seen)
	return nil
}

// forget takes back what this server says of open tasks. Another server counts from now on, so
// it would soon be wrong.
func (y *tally) forget() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.followed = nil
	y.meters.OpenTasks(nil)
}

// count notes how many tasks are open.
func (y *tally) count(seen map[jobs.TaskID]jobs.TaskInfo) {
	open := map[string]int{}
	for _, state := range []jobs.TaskState{jobs.TaskSubmitting, jobs.TaskQueued, jobs.TaskRunning,
		jobs.TaskPaused, jobs.TaskStopped} {
		open[string(state)] = 0
	}
	for _, t := range seen {
		if t.State != jobs.TaskEnded {
			open[string(t.State)]++
		}
	}
	y.meters.OpenTasks(open)
	y.followed = seen
}
