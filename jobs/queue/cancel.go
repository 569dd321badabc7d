package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/jobs"
)

// Cancel ends what of a task is not running; a running job is stopped by its
// worker. note says who and why.
func (q *Queue) Cancel(ctx context.Context, id jobs.TaskID, note string) (jobs.Cancel, error) {
	return q.endAll(ctx, ending{id, jobs.Cancelled, note, ""})
}

// ending is why the jobs of a task end before they ran.
type ending struct {
	task    jobs.TaskID
	outcome jobs.Outcome
	note    string
	by      string // the newer task, if it supersedes this one
}

func (q *Queue) endAll(ctx context.Context, e ending) (jobs.Cancel, error) {
	c := jobs.Cancel{Task: e.task}
	zones, err := q.taskZones(ctx, e.task)
	if err != nil {
		return c, err
	}
	var errs []error // a zone that cannot be asked is not in the way of the others
	for _, zone := range zones {
		if err := q.endIn(ctx, zone, e, &c); err != nil {
			errs = append(errs, fmt.Errorf("zone %s: %w", zone, err))
		}
	}
	return c, errors.Join(errs...)
}

// endCancelled goes on with a cancel of a task in one zone that somebody left half way.
func (q *Queue) endCancelled(ctx context.Context, zone string, id jobs.TaskID, note string) error {
	return q.endIn(ctx, zone, ending{id, jobs.Cancelled, note, ""}, &jobs.Cancel{})
}

// endIn ends the jobs of a task in one zone.
func (q *Queue) endIn(ctx context.Context, zone string, e ending, c *jobs.Cancel) error {
	for chunk, hosts := 0, hostsMax; hosts > 0; chunk++ {
		var err error
		if hosts, err = q.endChunk(ctx, zone, chunk, e, c); err != nil {
			return err
		}
	}
	return nil
}

// endChunk ends the jobs of a chunk, and returns how many hosts it has.
func (q *Queue) endChunk(ctx context.Context, zone string, chunk int, e ending,
	c *jobs.Cancel) (hosts int, err error) {
	for {
		r, err := q.script(ctx, scripts.end, zone, string(e.task), string(e.outcome),
			oneLine(e.note), chunk, "", e.by, hosts, endMax)
		if err != nil {
			return hosts, err
		}
		n, err := addEnded(c, r)
		hosts += n
		if err != nil || n < endMax || hosts >= hostsMax {
			return hosts, err
		}
	}
}

// addEnded adds the answer of one call, and returns how many hosts it looked at.
func addEnded(c *jobs.Cancel, r reader) (int, error) {
	r.text() // what is not there any more has no hosts
	ended, running, already, hosts := r.int(), r.int(), r.int(), r.int()
	if r.err != nil {
		return 0, r.err
	}
	c.Ended, c.Running, c.Already = c.Ended+ended, c.Running+running, c.Already+already
	return hosts, nil
}

// CancelJobs is Cancel for some jobs of one task. One that is not there is an
// error before anything is done.
func (q *Queue) CancelJobs(ctx context.Context, ids []jobs.ID, note string) (jobs.Cancel, error) {
	c := jobs.Cancel{}
	if len(ids) == 0 {
		return c, errors.New("no jobs to cancel")
	}
	c.Task = ids[0].Task()
	hosts, err := q.zonesOf(ctx, ids)
	if err != nil {
		return c, err
	}
	for _, zone := range slices.Sorted(maps.Keys(hosts)) {
		for chunk := range slices.Chunk(hosts[zone], endMax) {
			r, err := q.script(ctx, scripts.end, zone, string(c.Task), string(jobs.Cancelled),
				oneLine(note), "", strings.Join(chunk, "\n"), "", 0, endMax)
			if err != nil {
				return c, err
			}
			if _, err := addEnded(&c, r); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// zonesOf finds the zones of some jobs of one task: zone to hosts.
func (q *Queue) zonesOf(ctx context.Context, ids []jobs.ID) (map[string][]string, error) {
	task := ids[0].Task()
	zones, err := q.taskZones(ctx, task)
	if err != nil {
		return nil, err
	}
	left := map[string]bool{}
	for _, id := range ids {
		if id.Task() != task {
			return nil, fmt.Errorf("job %s is of another task than %s", id, ids[0])
		}
		left[id.Host()] = true
	}
	out := map[string][]string{}
	for _, zone := range zones {
		err := q.eachChunk(ctx, zone, task, 0, func(hosts []string) error {
			for _, host := range hosts {
				if left[host] {
					out[zone] = append(out[zone], host)
					delete(left, host)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("task %s has no job on %s: %w", task,
			strings.Join(slices.Sorted(maps.Keys(left)), ", "), ErrNotFound)
	}
	return out, nil
}
