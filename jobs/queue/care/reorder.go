package care

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Fair reorders overdue jobs.
type Fair struct{ c *queue.Conn }

// NewFair returns the reordering behind a connection.
func NewFair(c *queue.Conn) *Fair { return &Fair{c} }

// The bounds of a reordering. None of its calls may keep Redis busy for long, however many jobs
// wait.
const (
	countMax = 500              // jobs that one call counts
	moveMax  = 100              // jobs that one call moves
	walkLock = 10 * time.Second // renewed with each call
)

// Reorder puts the overdue jobs of a zone into a fair order, unless somebody else does so, or has
// just done so and no task came or went since. It takes a while and can be cancelled at any moment:
// the jobs that it has moved keep their new places, the others their old ones. Its calls are short,
// and it pauses after each as long as the call took, so that others keep most of Redis.
//
// After an error it is not known how many jobs were moved, which does no harm either.
func (q *Fair) Reorder(ctx context.Context, name string, o jobs.Overload) (jobs.Reordering,
	error) {
	w := walk{q: q, zone: name, overload: o, token: rand.Text(), who: "-",
		counts: map[jobs.TaskID]int{}}
	if q.c.Config().Node != "" {
		w.who = q.c.Config().Node + "/" + q.c.Config().Slot
	}
	r, err := w.call(ctx, "lock", w.who)
	if err != nil {
		return jobs.Reordering{}, err
	}
	switch status := r.Text(); status {
	case "busy":
		r.Text()
		return jobs.Reordering{Again: r.Duration()}, r.Err
	case "calm":
		return jobs.Reordering{Again: o.Cooldown}, nil
	case "go":
		w.start, w.oldest, w.changes = r.Micros(), r.Micros(), r.Text()
		if r.Err != nil {
			return jobs.Reordering{}, fmt.Errorf("reorder zone %s: %w", name, r.Err)
		}
		return w.walk(ctx)
	default:
		return jobs.Reordering{}, fmt.Errorf("reorder zone %s: answer %q", name, status)
	}
}

// walk is one reordering.
type walk struct {
	q        *Fair
	zone     string
	overload jobs.Overload
	token    string // of the lock
	who      string
	pause    time.Duration // before the next call

	start   jobs.Micros // the jobs that were due then are reordered
	oldest  jobs.Micros // score at the start
	changes string      // of tasks, so far

	counts map[jobs.TaskID]int
	order  []jobs.TaskID // of counts, in the order of discovery
	moved  int
}

// errLost ends a walk whose lock another server took.
var errLost = errors.New("the overload lock ended, another may reorder")

// walk counts, arranges, moves, and reports the result.
func (w *walk) walk(ctx context.Context) (jobs.Reordering, error) {
	out := jobs.Reordering{Did: true, Again: w.overload.Cooldown, Why: jobs.ReorderDone}
	err := w.count(ctx)
	if err == nil && len(w.counts) > 1 {
		var places *jobs.Places
		if places, err = w.arrange(ctx); err == nil {
			out.Why, err = w.move(ctx, places)
		}
	}
	out.Moved = w.moved
	if errors.Is(err, errLost) {
		out.Why = jobs.ReorderLost
		return out, nil
	}
	if err != nil {
		out.Why = jobs.ReorderStopped
	}
	if ctx.Err() != nil {
		err = nil // the caller cancelled the walk, and the result says so
	}
	ending := w.done(ctx, &out)
	if errors.Is(ending, errLost) {
		out.Why, ending = jobs.ReorderLost, nil
	}
	return out, errors.Join(err, ending)
}

// call makes one call of the script, after the pause that the previous call requires.
func (w *walk) call(ctx context.Context, op string, args ...any) (*codec.Reader, error) {
	if w.pause > 0 {
		timer := time.NewTimer(w.pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
	began := time.Now()
	r, err := w.q.c.Script(ctx, queue.Scripts.Reorder, w.zone,
		append([]any{op, w.token, walkLock.Milliseconds()}, args...)...)
	w.pause = time.Since(began)
	if err != nil {
		return nil, err
	}
	if len(r.Left) > 0 && r.Left[0] == "lost" {
		return nil, errLost
	}
	return &r, nil
}

// count is the first pass: it reads the due jobs from the back, and keeps only the number of jobs
// of each task.
func (w *walk) count(ctx context.Context) error {
	for offset := 0; ; {
		r, err := w.call(ctx, "page", w.start.String(), offset, countMax)
		if err != nil {
			return err
		}
		r.Text()
		r.Text()
		n, list := r.Int(), r.List()
		for len(list.Left) > 0 && list.Err == nil {
			id, jobsOfIt := jobs.TaskID(list.Text()), list.Int()
			if w.counts[id] == 0 {
				w.order = append(w.order, id)
			}
			w.counts[id] += jobsOfIt
		}
		if err := errors.Join(r.Err, list.Err); err != nil {
			return fmt.Errorf("reorder zone %s: %w", w.zone, err)
		}
		if offset += n; n < countMax {
			return nil
		}
	}
}

// arrange reads the facts about each task on which its share depends.
func (w *walk) arrange(ctx context.Context) (*jobs.Places, error) {
	list := make([]jobs.Backlog, 0, len(w.order))
	for from := 0; from < len(w.order); from += codec.ChunkMax {
		part := w.order[from:min(from+codec.ChunkMax, len(w.order))]
		cmds := make([]*redis.SliceCmd, len(part))
		_, err := w.q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range part {
				cmds[i] = p.HMGet(ctx, keys.Zone(w.zone, "task:", string(id)), "due", "operator", "priority")
			}
			return nil
		})
		if err != nil {
			return nil, w.q.c.Say("reorder", err)
		}
		for i, id := range part {
			r := codec.Reader{Left: cmds[i].Val()}
			list = append(list, jobs.Backlog{Task: id, Due: r.Micros(), Operator: r.Text(),
				Weight: jobs.Priority(r.Text()).Weight(), Jobs: w.counts[id]})
		}
	}
	w.counts, w.order = nil, nil
	return jobs.Arrange(list, w.overload.FairBy), nil
}

// move is the second pass: it walks from the back again and gives each job its score. The scores
// are whole numbers below the oldest score, so a moved job comes before each job that was not
// moved, wherever the walk ends.
func (w *walk) move(ctx context.Context, places *jobs.Places) (jobs.ReorderEnd, error) {
	first := w.oldest - jobs.Micros(places.Len())
	var ids, olds, news []any
	left := 0 // jobs that stay where they are
	for {
		r, err := w.call(ctx, "chunk", slices.Concat([]any{w.start.String(), w.oldest.String(), left,
			moveMax}, ids, olds, news)...)
		if err != nil {
			return jobs.ReorderStopped, err
		}
		status := r.Text()
		r.Text()
		w.moved += r.Int()
		left += r.Int()
		rest := r.List()
		if status == "met" {
			return jobs.ReorderMet, r.Err
		}
		ids, olds, news = ids[:0], olds[:0], news[:0]
		n := len(rest.Left)
		for len(rest.Left) > 0 && rest.Err == nil {
			id, old := rest.Text(), rest.Text()
			place, ok := places.Next(jobs.ID(id).Task())
			if !ok {
				left++ // it came after the jobs of its task were counted
				continue
			}
			ids, olds = append(ids, id), append(olds, old)
			news = append(news, (first + jobs.Micros(place)).String())
		}
		if err := errors.Join(r.Err, rest.Err); err != nil {
			return jobs.ReorderStopped, fmt.Errorf("reorder zone %s: %w", w.zone, err)
		}
		if n == 0 {
			return jobs.ReorderDone, nil
		}
	}
}

// done turns the lock into the cool-down. A walk that was stopped says so, too.
func (w *walk) done(ctx context.Context, out *jobs.Reordering) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.q.c.Config().Timeout)
	defer cancel()
	w.pause = 0
	r, err := w.call(ctx, "done", w.start.String(), w.who, w.moved,
		w.overload.Cooldown.Microseconds(), string(out.Why), w.changes)
	if err != nil {
		return err
	}
	r.Text()
	out.Took = r.Micros().Sub(w.start)
	out.Again = r.Duration()
	return r.Err
}
