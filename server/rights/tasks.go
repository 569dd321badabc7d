package rights

import (
	"context"
	"sync"

	"muster/access"
	"muster/jobs"
	"muster/server/web"
)

// Reader reads tasks, and their jobs in the order of the frozen host list.
type Reader interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	EachJob(ctx context.Context, id jobs.TaskID, from, most int,
		f func([]jobs.JobInfo) error) error
}

// Tasks knows the runbook and the hosts of tasks, which never change once a task is whole.
type Tasks struct {
	read Reader

	mu    sync.Mutex
	known map[jobs.TaskID]known
	hosts int // of all that are known
}

// known has the facts of a task on which rights depend.
type known struct {
	runbook string
	hosts   []string
}

// NewTasks returns the tasks behind a Reader.
func NewTasks(r Reader) *Tasks { return &Tasks{read: r, known: map[jobs.TaskID]known{}} }

const (
	chunk = 500 // jobs that are read at once
	// hostsMax bounds the hosts of the tasks that are kept: some 10 MB.
	hostsMax = 200_000
)

// find returns what is known of a task. The error wraps queue.ErrNotFound if there is none.
func (t *Tasks) find(ctx context.Context, id jobs.TaskID) (known, error) {
	t.mu.Lock()
	k, found := t.known[id]
	t.mu.Unlock()
	if found {
		return k, nil
	}
	info, err := t.read.Task(ctx, id)
	if err != nil {
		return known{}, err
	}
	k = known{runbook: info.Runbook}
	err = t.read.EachJob(ctx, id, 0, chunk, func(list []jobs.JobInfo) error {
		for _, j := range list {
			k.hosts = append(k.hosts, j.Host)
		}
		return nil
	})
	if err != nil {
		return known{}, err
	}
	if len(k.hosts) == info.Total && info.State != jobs.TaskSubmitting {
		t.keep(id, k)
	}
	return k, nil
}

func (t *Tasks) keep(id jobs.TaskID, k known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, found := t.known[id]; found {
		return
	}
	if t.hosts += len(k.hosts); t.hosts > hostsMax {
		clear(t.known)
		t.hosts = len(k.hosts)
	}
	t.known[id] = k
}

// seen reports whether a caller sees the task on these hosts. A task without hosts is seen by
// those alone who see the whole house.
func (k known) seen(v *web.View, hosts []string) bool {
	return len(hosts) > 0 && v.May(access.Act{Verb: access.See, Runbook: k.runbook}, hosts...)
}

// Seen returns those of a list of tasks that the view of a context shows: of these the caller may
// see all hosts.
func (t *Tasks) Seen(ctx context.Context, list []jobs.TaskInfo) ([]jobs.TaskInfo, error) {
	v := web.ViewOf(ctx)
	if v.May(access.Act{Verb: access.See}) {
		return list, nil
	}
	seen := []jobs.TaskInfo{}
	for _, info := range list {
		k, err := t.find(ctx, info.Task)
		if err != nil {
			return nil, err
		}
		if k.seen(v, k.hosts) {
			seen = append(seen, info)
		}
	}
	return seen, nil
}
