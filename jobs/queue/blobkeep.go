package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/jobs"
)

// PinBlobs keeps stored contents for a task, before it is submitted. If one of them is
// not there the error wraps jobs.ErrNoBlob, and none is kept.
func (q *Queue) PinBlobs(ctx context.Context, id jobs.TaskID, sums []string) error {
	if len(sums) == 0 {
		return nil
	}
	answer, err := q.blobScript(ctx, append([]any{"pin", string(id)}, anys(sums)...)...)
	if err == nil && answer != "ok" {
		err = fmt.Errorf("blob %s: %w", answer, jobs.ErrNoBlob)
	}
	return err
}

// pin says that a task needs a content.
type pin struct {
	field string
	sum   string
	task  jobs.TaskID
	at    jobs.Micros
}

func (q *Queue) blobPins(ctx context.Context) ([]pin, error) {
	all, err := q.rdb.HGetAll(ctx, hubKey("pins", "")).Result()
	if err != nil {
		return nil, q.say("blobs", err)
	}
	pins := make([]pin, 0, len(all))
	for field, at := range all {
		sum, task, _ := strings.Cut(field, " ")
		t, _ := jobs.ParseMicros(at)
		pins = append(pins, pin{field, sum, jobs.TaskID(task), t})
	}
	return pins, nil
}

// RemoveBlob removes a stored content. If tasks that have not ended need it that takes
// force: their jobs will fail.
func (q *Queue) RemoveBlob(ctx context.Context, sum string, force bool) error {
	e, err := q.blob(ctx, sum)
	if err != nil {
		return err
	}
	pins, err := q.blobPins(ctx)
	if err != nil {
		return err
	}
	now, err := q.now(ctx, HubZone)
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
			return fmt.Errorf("blob %s: %w by task %s", sum, ErrBlobUsed, p.task)
		}
	}
	answer, err := q.blobScript(ctx, "drop", sum, e.text)
	switch {
	case err != nil:
		return err
	case answer != "ok":
		return fmt.Errorf("blob %s: %w: a task has just asked for it", sum, ErrBlobUsed)
	}
	return q.removeBlob(ctx, sum, e)
}

// isOver tells whether a task needs its contents no more: it has ended, or is not known
// and its submit, which comes behind the pin, has had so much time.
func (q *Queue) isOver(ctx context.Context, p pin, now jobs.Micros, grace time.Duration) (
	bool, error) {
	t, err := q.Task(ctx, p.task)
	if errors.Is(err, ErrNotFound) {
		return now.Sub(p.at) >= grace, nil
	}
	return err == nil && t.State == jobs.TaskEnded, err
}

// TendBlobs removes stored contents that no unfinished task needs and that were not
// used for so long, and what is left of those that never arrived. It returns how many
// contents it has removed. Twice at a time does no harm.
func (q *Queue) TendBlobs(ctx context.Context, grace time.Duration) (removed int, err error) {
	all, err := q.blobEntries(ctx)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	read, err := q.now(ctx, HubZone)
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
			answer, err := q.blobScript(ctx, "drop", name, e.text)
			if err != nil {
				return removed, err
			}
			if answer != "ok" {
				continue // somebody has just asked for it
			}
			removed++
		}
		if err := q.removeBlob(ctx, name, e); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// tendPins drops the pins of tasks that are over, and returns the contents that others
// need. From then on the time of a content that was needed counts.
func (q *Queue) tendPins(ctx context.Context, now jobs.Micros) (needed []string, err error) {
	pins, err := q.blobPins(ctx)
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
		err = q.PinBlobs(ctx, "", []string{p.sum})
		if err == nil || errors.Is(err, jobs.ErrNoBlob) {
			err = q.say("blobs", q.rdb.HDel(ctx, hubKey("pins", ""), p.field).Err())
		}
		if err != nil {
			return nil, err
		}
	}
	return needed, nil
}
