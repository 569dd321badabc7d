package submit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
)

// Cancels ends the jobs of a task that do not run.
type Cancels struct{ c *queue.Conn }

// NewCancels returns the cancels behind a connection.
func NewCancels(c *queue.Conn) *Cancels { return &Cancels{c} }

// Cancel ends the jobs of a task that do not run; a running job is stopped by its worker. note says
// who ordered it, and why.
func (q *Cancels) Cancel(ctx context.Context, id jobs.TaskID, note string) (jobs.Cancel, error) {
	return q.endAll(ctx, ending{id, jobs.Cancelled, note, ""})
}

// Supersede ends the jobs of a task that never started, because a newer task takes its place: those
// on hosts of both end superseded, the others cancelled.
func (q *Cancels) Supersede(ctx context.Context, id, by jobs.TaskID, note string) error {
	_, err := q.endAll(ctx, ending{id, jobs.Superseded, note, string(by)})
	if err == nil {
		_, err = q.Cancel(ctx, id, note)
	}
	return err
}

// ending says why the jobs of a task end before they run.
type ending struct {
	task    jobs.TaskID
	outcome jobs.Outcome
	note    string
	by      string // the newer task that supersedes this one, if any
}

func (q *Cancels) endAll(ctx context.Context, e ending) (jobs.Cancel, error) {
	c := jobs.Cancel{Task: e.task}
	zones, err := q.c.Places.TaskZones(ctx, e.task)
	if err != nil {
		return c, err
	}
	var errs []error // a zone that does not answer must not keep the others
	for _, zone := range zones {
		if err := q.endIn(ctx, zone, e, &c); err != nil {
			errs = append(errs, fmt.Errorf("zone %s: %w", zone, err))
		}
	}
	return c, errors.Join(errs...)
}

// EndCancelled completes, in one zone, the cancel of a task that was left half done.
func (q *Cancels) EndCancelled(ctx context.Context, zone string, id jobs.TaskID,
	note string) error {
	return q.endIn(ctx, zone, ending{id, jobs.Cancelled, note, ""}, &jobs.Cancel{})
}

// endIn ends the jobs of a task in one zone.
func (q *Cancels) endIn(ctx context.Context, zone string, e ending, c *jobs.Cancel) error {
	for chunk, hosts := 0, codec.HostsMax; hosts > 0; chunk++ {
		var err error
		if hosts, err = q.endChunk(ctx, zone, chunk, e, c); err != nil {
			return err
		}
	}
	return nil
}

// endChunk ends the jobs of a chunk, and returns how many hosts it has.
func (q *Cancels) endChunk(ctx context.Context, zone string, chunk int, e ending,
	c *jobs.Cancel) (hosts int, err error) {
	for {
		r, err := q.c.Script(ctx, queue.Scripts.End, zone, string(e.task), string(e.outcome),
			codec.OneLine(e.note), chunk, "", e.by, hosts, endMax)
		if err != nil {
			return hosts, err
		}
		n, err := addEnded(c, r)
		hosts += n
		if err != nil || n < endMax || hosts >= codec.HostsMax {
			return hosts, err
		}
	}
}

// addEnded adds the answer of one call, and returns how many hosts the call looked at.
func addEnded(c *jobs.Cancel, r codec.Reader) (int, error) {
	r.Text() // a chunk that is gone has no hosts
	ended, running, already, hosts := r.Int(), r.Int(), r.Int(), r.Int()
	if r.Err != nil {
		return 0, r.Err
	}
	c.Ended, c.Running, c.Already = c.Ended+ended, c.Running+running, c.Already+already
	return hosts, nil
}

// CancelJobs is Cancel for some jobs of one task. A job that does not exist is an error before
// anything is done.
func (q *Cancels) CancelJobs(ctx context.Context, ids []jobs.ID, note string) (jobs.Cancel, error) {
	c := jobs.Cancel{}
	if len(ids) == 0 {
		return c, errors.New("no jobs to cancel")
	}
	c.Task = ids[0].Task()
	hosts, err := q.c.Places.ZonesOf(ctx, ids)
	if err != nil {
		return c, err
	}
	for _, zone := range slices.Sorted(maps.Keys(hosts)) {
		for chunk := range slices.Chunk(hosts[zone], endMax) {
			r, err := q.c.Script(ctx, queue.Scripts.End, zone, string(c.Task), string(jobs.Cancelled),
				codec.OneLine(note), "", strings.Join(chunk, "\n"), "", 0, endMax)
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

// endMax bounds the jobs of one call of a cancel, which takes 10 µs for each.
const endMax = 50
