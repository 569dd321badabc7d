package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster/jobs"
)

const (
	scaleTakes = 2000 // jobs that are taken and finished, deferred, …
	scaleSlots = 16   // a call, where it is not one
	pageJobs   = 500  // of a list
)

// scale measures what an operator and a worker do while more and more jobs wait.
// Nothing of it may depend on how many.
func scale(ctx context.Context, b *bench) ([]row, error) {
	var rows []row
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		n = b.size(n)
		r, err := b.scaleOnce(ctx, n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// act is one thing that is done to a full queue.
type act struct {
	name string
	do   func() error
}

func (b *bench) scaleOnce(ctx context.Context, n int) (longest row, err error) {
	q, err := b.fresh(ctx)
	if err != nil {
		return row{}, err
	}
	defer q.Close()
	id, err := put(ctx, q, "true", hostNames(n))
	if err != nil {
		return row{}, err
	}
	c, err := b.newCrew(ctx, 1, 1)
	if err != nil {
		return row{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	worst, takes := 0.0, b.size(scaleTakes)
	for _, a := range []act{
		{fmt.Sprintf("%s jobs taken and finished", thousands(int64(takes))),
			func() error { return c.takeSome(ctx, takes, 1, succeeded) }},
		{fmt.Sprintf("%s, while a customer is paused", thousands(int64(takes))), func() error {
			if _, err := q.PauseCustomer(ctx, "another", "bench"); err != nil {
				return err
			}
			err := c.takeSome(ctx, takes, scaleSlots, succeeded)
			_, back := q.ResumeCustomer(ctx, "another", "bench")
			return errors.Join(err, back)
		}},
		{fmt.Sprintf("%s jobs deferred to one opening", thousands(int64(takes))), func() error {
			opens := jobs.MicrosOf(time.Now().Add(time.Hour))
			return c.takeSome(ctx, takes, scaleSlots, func(g jobs.Grant) jobs.Result {
				return jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindDefer, Until: opens,
					Error: "outside of its window"}
			})
		}},
		{"a check of the zone (muster fsck)", func() error {
			f, err := q.Fsck(ctx, zone, false, "")
			if err == nil && len(f.Findings) > 0 {
				err = fmt.Errorf("it found %+v", f.Findings[0])
			}
			return err
		}},
		{"the last page of a list", func() error {
			return q.EachJob(ctx, id, n-pageJobs, pageJobs, func([]jobs.JobInfo) error { return nil })
		}},
		{"what waits (muster queue)", func() error { _, err := q.Depth(ctx, zone); return err }},
		{"pause of the task", func() error { _, err := q.Pause(ctx, id, "bench"); return err }},
		{"resume of the task", func() error { _, err := q.Resume(ctx, id, "bench"); return err }},
		{"cancel of the task", func() error { _, err := q.Cancel(ctx, id, "bench"); return err }},
	} {
		if err := b.redis.watchSlow(ctx); err != nil {
			return row{}, err
		}
		if err := a.do(); err != nil {
			return row{}, fmt.Errorf("%s: %w", a.name, err)
		}
		calls, err := b.redis.slow(ctx)
		if err != nil {
			return row{}, err
		}
		if len(calls) > 0 {
			worst = max(worst, slices.Max(calls))
			fmt.Fprintf(b.say, "%s, %d queued: %d calls above %s, the longest %.1f ms\n", a.name, n,
				len(calls), slowFrom, slices.Max(calls))
		}
	}
	return newRow(thousands(int64(n))+" queued: longest call", "ms", []float64{worst}).
		atMost(callMax), nil
}

// takeSome takes jobs, some a call, and says with the next call what became of them.
func (c *crew) takeSome(ctx context.Context, n, a int, became func(jobs.Grant) jobs.Result) error {
	t := c.takers[0]
	s := jobs.Step{Node: t.node, Slot: t.slot}
	for done := 0; done < n || len(s.Results) > 0; {
		t.asked++
		s.Request, s.Want = fmt.Sprint("scale", t.asked), min(a, n-done)
		r, err := t.q.Step(ctx, zone, s)
		if err != nil {
			return err
		}
		if len(r.Jobs) == 0 && s.Want > 0 {
			return fmt.Errorf("only %d of %d jobs were due: %s", done, n, r.Status)
		}
		s.Results = s.Results[:0]
		for _, g := range r.Jobs {
			s.Results = append(s.Results, became(g))
			s.Known = []jobs.TaskID{g.Job.Task()}
		}
		done += len(r.Jobs)
	}
	return nil
}

func succeeded(g jobs.Grant) jobs.Result {
	return jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd, Outcome: jobs.Succeeded}
}

// The longest that may take, in ms, where no child is warm and where one is.
const (
	wakeMost = 30
	warmMost = 12
	warmLast = 25 // 99 of 100
)

// wakeSamples is how often an idle node is woken.
const wakeSamples = 100

// wake measures how soon the host hears of a job that is submitted to an idle
// node: the wake-up, the take, the start of a child and its connection; and the
// same while the child of the job before is still there.
func wake(ctx context.Context, b *bench) ([]row, error) {
	cold, err := b.wakes(ctx, 0)
	if err != nil {
		return nil, err
	}
	warm, err := b.wakes(ctx, time.Minute)
	if err != nil {
		return nil, err
	}
	last := wakeSamples * 99 / 100
	return []row{
		newRow("from a submit to the first byte of SSH, median", "ms", cold).atMost(wakeMost),
		newRow("the same, 99 of 100 are faster", "ms", cold[last:]),
		newRow("with a child that lingers, median", "ms", warm).atMost(warmMost),
		newRow("with a child that lingers, 99 of 100 are faster", "ms", warm[last:]).atMost(warmLast),
	}, nil
}

// wakes returns the times of all samples in ms, sorted.
func (b *bench) wakes(ctx context.Context, linger time.Duration) (all []float64, err error) {
	h, err := b.newHosts(1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	n, host, err := b.listening(ctx, h, linger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close(), host.Close()) }()
	for range wakeSamples {
		began := time.Now()
		id, err := put(ctx, n.q, "true", []string{host.Name})
		if err != nil {
			return nil, err
		}
		at, err := host.hear()
		if err != nil {
			return nil, n.explain(err)
		}
		all = append(all, millis(at.Sub(began)))
		// The host has hung up; the next job shall find no child, or the one that lingers.
		if _, err = n.over(ctx, id); err == nil && linger == 0 {
			err = n.idle(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(all)
	return all, nil
}
