package rights

import (
	"context"
	"errors"
	"slices"
	"sync"

	"muster/access"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/web"
)

// Reader reads tasks, and their jobs in the order of the frozen host list.
type Reader interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	EachJob(ctx context.Context, id jobs.TaskID, from, most int,
		f func([]jobs.JobInfo) error) error
	// IsHeld reports whether a task waits for signatures: then all its hosts were put.
	IsHeld(ctx context.Context, id jobs.TaskID) (bool, error)
}

// Tasks knows the runbook and the hosts of tasks, which never change once a task is whole.
type Tasks struct {
	read Reader
	zone func(host string) string // as the inventory in force has it; empty: it has no such host

	mu    sync.Mutex
	known map[jobs.TaskID]known
	hosts int // of all that are known
}

// known has the facts of a task on which rights depend.
type known struct {
	runbook string
	hosts   []string
	whole   bool // these are all: no zone's part of it has expired, or is still to come
}

// NewTasks returns the tasks behind a Reader. zone returns the zone of a host in the inventory in
// force.
func NewTasks(r Reader, zone func(host string) string) *Tasks {
	return &Tasks{read: r, zone: zone, known: map[jobs.TaskID]known{}}
}

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
	zones := map[string]bool{}
	err = t.read.EachJob(ctx, id, 0, chunk, func(list []jobs.JobInfo) error {
		for _, j := range list {
			k.hosts = append(k.hosts, j.Host)
			zones[t.zone(j.Host)] = true
		}
		return nil
	})
	if err != nil {
		return known{}, err
	}
	put := info.State != jobs.TaskSubmitting
	if !put {
		if put, err = t.read.IsHeld(ctx, id); err != nil {
			return known{}, err
		}
	}
	// Each zone's part expires by itself, and then the total is of the others alone.
	k.whole = len(k.hosts) == info.Total && put &&
		!slices.ContainsFunc(info.Zones, func(zone string) bool { return !zones[zone] })
	if k.whole && !info.Forgotten { // the hosts of past tasks may change hands
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

// seen reports whether a caller sees the task. One that is not whole is seen by those alone who see
// the whole house.
func (k known) seen(v *web.View) bool { return k.whole && k.seenOn(v, k.hosts...) }

// seenOn reports whether a caller sees the task on these hosts, which it has.
func (k known) seenOn(v *web.View, hosts ...string) bool {
	return len(hosts) > 0 && v.May(access.Act{Verb: access.See, Runbook: k.runbook}, hosts...)
}

// SeenJobs returns those of a list of jobs that the view of a context shows.
func (t *Tasks) SeenJobs(ctx context.Context, list []jobs.JobInfo) ([]jobs.JobInfo, error) {
	v := web.ViewOf(ctx)
	if v.All() {
		return list, nil
	}
	seen := []jobs.JobInfo{}
	for _, j := range list {
		k, err := t.find(ctx, j.ID.Task())
		if err != nil {
			return nil, err
		}
		if k.seenOn(v, j.Host) {
			seen = append(seen, j)
		}
	}
	return seen, nil
}

// Seen returns those of a list of tasks that the view of a context shows: of these the caller may
// see all hosts.
func (t *Tasks) Seen(ctx context.Context, list []jobs.TaskInfo) ([]jobs.TaskInfo, error) {
	v := web.ViewOf(ctx)
	if v.All() {
		return list, nil
	}
	seen := []jobs.TaskInfo{}
	for _, info := range list {
		k, err := t.find(ctx, info.Task)
		if queue.Away(err) {
			continue // whose it is cannot be read
		}
		if err != nil && !errors.Is(err, queue.ErrNotFound) { // it may just go
			return nil, err
		}
		if k.seen(v) {
			seen = append(seen, info)
		}
	}
	return seen, nil
}

// Sees reports whether the view of a context shows a task or, with a host, its job there. It does
// not show a task that is not there.
func (t *Tasks) Sees(ctx context.Context, id jobs.TaskID, host string) (bool, error) {
	return t.Glance()(ctx, id, host)
}

// Glance returns Sees for one short look at many tasks and jobs: it reads each task once, also one
// that is still to become whole.
func (t *Tasks) Glance() func(ctx context.Context, id jobs.TaskID, host string) (bool, error) {
	found := map[jobs.TaskID]known{}
	return func(ctx context.Context, id jobs.TaskID, host string) (bool, error) {
		v := web.ViewOf(ctx)
		if v.All() {
			return true, nil
		}
		k, read := found[id]
		if !read {
			var err error
			if k, err = t.find(ctx, id); err != nil && !errors.Is(err, queue.ErrNotFound) {
				return false, err
			}
			found[id] = k
		}
		if host == "" {
			return k.seen(v), nil
		}
		return slices.Contains(k.hosts, host) && k.seenOn(v, host), nil
	}
}
