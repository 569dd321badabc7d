package blobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Tasks reads tasks: a content is kept as long as one of them may need it.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// Keeper removes contents that no task needs.
type Keeper struct {
	c     *queue.Conn
	store *Store
	tasks Tasks
}

// NewKeeper returns the keeper of a store.
func NewKeeper(c *queue.Conn, s *Store, tasks Tasks) *Keeper { return &Keeper{c, s, tasks} }

// RemoveBlob removes a stored content. If open tasks need it, that takes force: their jobs will
// fail.
func (q *Keeper) RemoveBlob(ctx context.Context, sum string, force bool) error {
	e, err := q.store.blob(ctx, sum)
	if err != nil {
		return err
	}
	pins, err := q.store.blobPins(ctx)
	if err != nil {
		return err
	}
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	for _, p := range pins {
		if p.sum != sum || force {
			continue
		}
		if over, err := q.isOver(ctx, p, jobs.MicrosOf(now), putTime); err != nil {
			return err
		} else if !over {
			return fmt.Errorf("blob %s: %w by task %s", sum, queue.ErrBlobUsed, p.task)
		}
	}
	answer, err := q.store.blobScript(ctx, "drop", sum, e.text)
	switch {
	case err != nil:
		return err
	case answer != "ok":
		return fmt.Errorf("blob %s: %w: a task has just asked for it", sum, queue.ErrBlobUsed)
	}
	return q.store.removeBlob(ctx, sum, e)
}

// isOver reports whether a task needs its contents no more: it has ended, or it is unknown and its
// submit, which comes after the pin, has had so much time.
func (q *Keeper) isOver(ctx context.Context, p pin, now jobs.Micros, grace time.Duration) (
	bool, error) {
	t, err := q.tasks.Task(ctx, p.task)
	if errors.Is(err, queue.ErrNotFound) {
		return now.Sub(p.at) >= grace, nil
	}
	return err == nil && t.State == jobs.TaskEnded, err
}

// TendBlobs removes stored contents that no open task needs and that were not used for so long, and
// the remains of contents that never arrived. It returns how many contents it has removed. Running
// it twice at the same time does no harm.
func (q *Keeper) TendBlobs(ctx context.Context, grace time.Duration) (removed int, err error) {
	all, err := q.store.blobEntries(ctx)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	read, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return 0, err
	}
	now := jobs.MicrosOf(read)
	needed, err := q.tendPins(ctx, now)
	if err != nil {
		return 0, err
	}
	for name, e := range all {
		switch coming := strings.HasPrefix(name, reserved); {
		case e.gone, coming && now.Sub(e.used) > putTime+time.Hour:
		case coming, slices.Contains(needed, name), now.Sub(e.used) < grace:
			continue
		default:
			answer, err := q.store.blobScript(ctx, "drop", name, e.text)
			if err != nil {
				return removed, err
			}
			if answer != "ok" {
				continue // a task has just pinned or read it
			}
			removed++
		}
		if err := q.store.removeBlob(ctx, name, e); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// tendPins drops the pins of tasks that are over, and returns the contents that other tasks need.
// The grace time of a content begins when it is no longer needed.
func (q *Keeper) tendPins(ctx context.Context, now jobs.Micros) (needed []string, err error) {
	pins, err := q.store.blobPins(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range pins {
		over, err := q.isOver(ctx, p, now, putTime)
		if err != nil {
			return nil, err
		}
		if !over {
			needed = append(needed, p.sum)
			continue
		}
		err = q.store.PinBlobs(ctx, "", []string{p.sum})
		if err == nil || errors.Is(err, jobs.ErrNoBlob) {
			err = q.c.Say("blobs", q.c.Redis().HDel(ctx, keys.Hub("pins", ""), p.field).Err())
		}
		if err != nil {
			return nil, err
		}
	}
	return needed, nil
}
