package duties

import (
	"context"
	"errors"
	"sync"

	"muster/jobs"
	"muster/jobs/queue"
)

// tallyMax bounds the newest tasks that a tally looks at. Of more open tasks than
// this the oldest are counted only if a tally saw them before.
const tallyMax = 100

// Tally counts the open tasks by state, so that a scrape does not have to look at tasks.
type Tally struct {
	Tasks  Tasks
	Meters Meters

	mu       sync.Mutex                    // one round at a time
	followed map[jobs.TaskID]jobs.TaskInfo // as the last round saw them
}

// Meters shows the number of open tasks by state; nil: this server does not count them.
type Meters interface {
	OpenTasks(open map[string]int)
}

// RunOnce counts once.
func (y *Tally) RunOnce(ctx context.Context) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	newest, err := y.Tasks.Tasks(ctx, tallyMax)
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
		t, err := y.Tasks.Task(ctx, id)
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
func (y *Tally) forget() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.followed = nil
	y.Meters.OpenTasks(nil)
}

// count notes how many tasks are open.
func (y *Tally) count(seen map[jobs.TaskID]jobs.TaskInfo) {
	open := map[string]int{}
	for _, state := range []jobs.TaskState{jobs.TaskSubmitting, jobs.TaskQueued, jobs.TaskRunning,
		jobs.TaskPaused, jobs.TaskStopped, jobs.TaskAway} {
		open[string(state)] = 0
	}
	for _, t := range seen {
		if t.State != jobs.TaskEnded {
			open[string(t.State)]++
		}
	}
	y.Meters.OpenTasks(open)
	y.followed = seen
}
