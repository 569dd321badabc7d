package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/jobs"
	"muster/testkit/queuetest"
)

const (
	smallJobs  = 4
	late       = 10 * time.Second // overload.after, and a tenth of it in a short run
	never      = time.Hour        // overload.after of who reorders nothing
	jainTasks  = 10
	jainStarts = 1000
)

// fair shows what becomes of a small task behind a big one, with real children on
// pretended hosts, and how evenly tasks of all sizes are served.
func fair(ctx context.Context, b *bench) ([]row, error) {
	rows, err := b.smallBehindBig(ctx)
	if err != nil {
		return nil, err
	}
	index := map[bool][]float64{}
	for _, reordered := range []bool{true, false} {
		x, err := b.jain(ctx, reordered)
		if err != nil {
			return nil, err
		}
		index[reordered] = []float64{x}
	}
	var share [2][]float64
	for i, reordered := range []bool{true, false} {
		x, err := b.stream(ctx, reordered)
		if err != nil {
			return nil, err
		}
		share[i] = []float64{x}
	}
	return append(rows,
		newRow("a big task in an endless stream of 4-host tasks: its share of the starts",
			"of 1", share[0]).atLeast(1.0/streamStarts),
		newRow("the same, first come, first served: the stream waits", "of 1", share[1]),
		newRow("Jain's index over ten tasks of 1 to 10,000 jobs, reordered", "of 1", index[true]).
			atLeast(0.99),
		newRow("the same, first come, first served", "of 1", index[false])), nil
}

func (b *bench) smallBehindBig(ctx context.Context) (rows []row, err error) {
	big := b.size(3000)
	h, err := b.newHosts(big + smallJobs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	after := time.Duration(b.size(int(late)))
	var first, all [2][]float64
	try := func(i int, after time.Duration) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			t, err := b.behind(ctx, h, after)
			if err != nil {
				return 0, err
			}
			x := t.Started.Sub(t.Submitted.Time).Seconds()
			first[i] = append(first[i], x)
			all[i] = append(all[i], t.Finished.Sub(t.Submitted.Time).Seconds())
			return x, nil
		}
	}
	_, err = b.race(ctx, min(b.rounds, 2), []contender{
		{"small behind big, reordered", try(0, after)},
		{"small behind big, first come, first served", try(1, never)},
	})
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%d jobs behind %s of 200 ms, 32 slots: ", smallJobs, thousands(int64(big)))
	const unit, peer = "s", "first come, first served"
	started := newRow(name+"to the first start, first come, first served", unit, first[1])
	done := newRow(name+"to all done, first come, first served", unit, all[1])
	return []row{
		newRow(name+"to the first start, reordered", unit, first[0]).to(peer, started).
			atMost((after + jobs.DefaultOverload().Cooldown + time.Second).Seconds()),
		newRow(name+"to all done, reordered", unit, all[0]).to(peer, done),
		started, done,
	}, nil
}

// behind submits both tasks to a node and returns the small one when it has ended.
func (b *bench) behind(ctx context.Context, h *hosts, after time.Duration) (t jobs.TaskInfo,
	err error) {
	size := nodeSize{children: sshChildren, slots: 4, after: after}
	n, err := b.newNode(ctx, size, func(q *queuetest.Queue) error {
		return q.Publish(ctx, inventory, h.list, nil)
	})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	names := namesOf(h.list)
	cut := len(names) - smallJobs
	big, err := put(ctx, n.q, slowly, names[:cut])
	if err != nil {
		return t, err
	}
	small, err := put(ctx, n.q, slowly, names[cut:])
	if err != nil {
		return t, err
	}
	err = n.until(ctx, look, func() (bool, error) {
		t, err = n.q.Task(ctx, small)
		return t.State == jobs.TaskEnded, err
	})
	if err == nil && t.Outcomes[jobs.Succeeded] != smallJobs {
		err = n.explain(fmt.Errorf("the small task: %s", outcomes(t.Outcomes)))
	}
	_, cancelled := n.q.Cancel(ctx, big, "the bench has seen enough")
	return t, errors.Join(err, cancelled, n.idle(ctx))
}

// jain is Jain's index of fairness over tasks of all sizes, the biggest submitted
// first: 1 if all got alike, 1/n if one got everything. What a task got is set
// against what max-min fairness would give it of so many starts.
func (b *bench) jain(ctx context.Context, reordered bool) (float64, error) {
	q, err := b.fresh(ctx)
	if err != nil {
		return 0, err
	}
	defer q.Close()
	sizes := []int{10000, 3600, 1300, 460, 170, 60, 22, 8, 3, 1}
	tasks := make([]jobs.TaskID, len(sizes))
	for i, n := range sizes {
		if tasks[i], err = put(ctx, q, "true", hostNames(n)); err != nil {
			return 0, err
		}
	}
	if reordered {
		if r, err := q.Reorder(ctx, zone, jobs.DefaultOverload()); err != nil || !r.Did {
			return 0, errors.Join(err, fmt.Errorf("reordering: %+v", r))
		}
	}
	c, err := b.newCrew(ctx, 1, 1)
	if err != nil {
		return 0, err
	}
	defer c.close()
	got, err := c.takers[0].starts(ctx, jainStarts)
	if err != nil {
		return 0, err
	}
	fair := maxMin(sizes, jainStarts)
	var sum, squares float64
	for i, id := range tasks {
		x := float64(got[id]) / fair[i]
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (jainTasks * squares), nil
}

// starts takes n jobs, one after the other, and counts them by task.
func (t *taker) starts(ctx context.Context, n int) (map[jobs.TaskID]int, error) {
	got := map[jobs.TaskID]int{}
	s := jobs.Step{Node: t.node, Slot: t.slot, Want: 1}
	for i := range n {
		t.asked++
		s.Request = fmt.Sprint("s", t.asked)
		reply, err := t.q.Step(ctx, zone, s)
		if err != nil {
			return nil, err
		}
		if len(reply.Jobs) != 1 {
			return nil, fmt.Errorf("%d jobs at take %d: %s", len(reply.Jobs), i, reply.Status)
		}
		g := reply.Jobs[0]
		got[g.Job.Task()]++
		s.Results = []jobs.Result{{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd,
			Outcome: jobs.Succeeded}}
	}
	t.asked++
	s.Want, s.Request = 0, fmt.Sprint("s", t.asked)
	_, err := t.q.Step(ctx, zone, s)
	return got, err
}

// maxMin shares n among demands: the smallest first get all they want, the others
// the same.
func maxMin(demands []int, n int) []float64 {
	out := make([]float64, len(demands))
	left := float64(n)
	for i := len(demands) - 1; i >= 0; i-- { // they are given the largest first
		out[i] = min(float64(demands[i]), left/float64(i+1))
		left -= out[i]
	}
	return out
}

const (
	streamBig    = 1000 // jobs of the big task
	streamRounds = 50
	streamStarts = 16 // jobs that are started between two reorderings, and come in tasks of four
)

// stream is the share of all starts that a big task gets while tasks of four come as fast as
// jobs are started: of equals the one goes first whose oldest job is due longest, so at the
// least it has one start after each reordering.
func (b *bench) stream(ctx context.Context, reordered bool) (float64, error) {
	q, err := b.fresh(ctx)
	if err != nil {
		return 0, err
	}
	defer q.Close()
	names := hostNames(streamBig + streamRounds*streamStarts)
	big, err := put(ctx, q, "true", names[:streamBig])
	if err != nil {
		return 0, err
	}
	c, err := b.newCrew(ctx, 1, 1)
	if err != nil {
		return 0, err
	}
	defer c.close()
	started := 0
	for small := names[streamBig:]; len(small) > 0; {
		for range streamStarts / smallJobs {
			if _, err := put(ctx, q, "true", small[:smallJobs]); err != nil {
				return 0, err
			}
			small = small[smallJobs:]
		}
		if reordered {
			if err := reorderedOnce(ctx, q); err != nil {
				return 0, err
			}
		}
		got, err := c.takers[0].starts(ctx, streamStarts)
		if err != nil {
			return 0, err
		}
		started += got[big]
	}
	return float64(started) / (streamRounds * streamStarts), nil
}

// reorderedOnce has the queue reordered when the cool-down of the time before is over.
func reorderedOnce(ctx context.Context, q *queuetest.Queue) error {
	o := jobs.DefaultOverload()
	o.Cooldown = 10 * time.Millisecond
	for {
		r, err := q.Reorder(ctx, zone, o)
		if err != nil || r.Did {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
