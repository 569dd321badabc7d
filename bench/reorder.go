package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"muster/jobs"
	"muster/testkit/queuetest"
)

const (
	reorderTasks  = 10              // beside the big one, of ten jobs each
	othersZone    = "others"        // theirs, so that their work does not run out
	othersJobs    = 50000           // and as many as are reordered
	othersTakers  = 4               // who drain meanwhile
	othersAlone   = 2 * time.Second // how long their rate is measured before
	slowFrom      = time.Millisecond
	slowKept      = 100000
	callMax       = 5.0 // ms; the bound of every call
	othersAtLeast = 0.5 // of their rate
)

// reordered is one walk over a queue.
type reordered struct {
	total, longest, kept float64 // s, ms, share of their rate that others kept
	theirs               float64 // ms, the longest call of the others
}

// reorder measures walks over queues of three sizes, while others take jobs of
// another zone of the same Redis, finish them and take the next.
func reorder(ctx context.Context, b *bench) ([]row, error) {
	var rows []row
	for _, n := range []int{3000, 100000, 1000000} {
		n = b.size(n)
		var got [4][]float64
		_, err := b.race(ctx, min(b.rounds, 2), []contender{{fmt.Sprint("reorder ", n),
			func(ctx context.Context) (float64, error) {
				r, err := b.reorderOnce(ctx, n)
				for i, x := range []float64{r.total, r.longest, r.theirs, r.kept} {
					got[i] = append(got[i], x)
				}
				return r.total, err
			}}})
		if err != nil {
			return nil, err
		}
		name := thousands(int64(n)) + " overdue"
		rows = append(rows, newRow(name+": longest call", "ms", got[1]).atMost(callMax),
			newRow(name+": longest call of the others, which take one job each", "ms", got[2]),
			newRow(name+": rate of others meanwhile, of what it was before", "times", got[3]).
				atLeast(othersAtLeast))
	}
	return rows, nil
}

func (b *bench) reorderOnce(ctx context.Context, n int) (out reordered, err error) {
	q, err := b.fresh(ctx)
	if err != nil {
		return out, err
	}
	defer q.Close()
	_, err = putIn(ctx, q, "true", map[string][]string{othersZone: hostNames(othersJobs + n)})
	if err = errors.Join(err, fillZone(ctx, q, n)); err != nil {
		return out, err
	}
	others, err := b.newOthers(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, others.stop()) }()
	before := others.rate(othersAlone)
	if err := b.redis.watchSlow(ctx); err != nil {
		return out, err
	}
	began, done := time.Now(), others.done.Load()
	r, err := q.Reorder(ctx, zone, jobs.DefaultOverload())
	if err != nil {
		return out, err
	}
	took := time.Since(began)
	during := float64(others.done.Load()-done) / took.Seconds()
	if !r.Did || r.Moved == 0 {
		return out, fmt.Errorf("nothing was reordered: %+v", r)
	}
	out.total, out.kept = took.Seconds(), during/before
	out.longest, out.theirs, err = b.redis.slowest(ctx)
	return out, err
}

// fillZone submits a big task and small ones behind it.
func fillZone(ctx context.Context, q *queuetest.Queue, n int) error {
	names := hostNames(n)
	if _, err := put(ctx, q, "true", names); err != nil {
		return err
	}
	for range reorderTasks {
		if _, err := put(ctx, q, "true", names[n-10:]); err != nil {
			return err
		}
	}
	return nil
}

// others take jobs, finish them and take the next until they are stopped.
type others struct {
	*crew
	done   atomic.Int64
	cancel context.CancelFunc
	wait   sync.WaitGroup
	errs   []error
}

func (b *bench) newOthers(ctx context.Context) (*others, error) {
	c, err := b.newCrew(ctx, othersTakers, 1)
	if err != nil {
		return nil, err
	}
	o := &others{crew: c, errs: make([]error, othersTakers)}
	ctx, o.cancel = context.WithCancel(ctx)
	for i, t := range c.takers {
		o.wait.Go(func() { o.errs[i] = o.work(ctx, t) })
	}
	return o, nil
}

func (o *others) work(ctx context.Context, t *taker) error {
	s := jobs.Step{Node: t.node, Slot: t.slot, Want: o.slots}
	for n := 1; ctx.Err() == nil; n++ {
		s.Request = "o" + strconv.Itoa(n)
		reply, err := t.q.Step(ctx, othersZone, s)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil || len(reply.Jobs) == 0 {
			return errors.Join(err, fmt.Errorf("no job for the others: %s", reply.Status))
		}
		o.done.Add(int64(len(s.Results)))
		s.Results = s.Results[:0]
		for _, g := range reply.Jobs {
			s.Results = append(s.Results, jobs.Result{Job: g.Job, Token: g.Token,
				Kind: jobs.KindEnd, Outcome: jobs.Succeeded})
			if id := g.Job.Task(); !slices.Contains(s.Known, id) {
				s.Known = append(s.Known, id)
			}
		}
	}
	return nil
}

// rate is how many jobs end a second.
func (o *others) rate(over time.Duration) float64 {
	began, done := time.Now(), o.done.Load()
	time.Sleep(over)
	return float64(o.done.Load()-done) / time.Since(began).Seconds()
}

func (o *others) stop() error {
	o.cancel()
	o.wait.Wait()
	return errors.Join(errors.Join(o.errs...), o.close())
}

// watchSlow lets the server keep every call that takes a while.
func (s *redisServer) watchSlow(ctx context.Context) error {
	return errors.Join(
		s.own.ConfigSet(ctx, "slowlog-log-slower-than", strconv.Itoa(int(slowFrom.Microseconds()))).Err(),
		s.own.ConfigSet(ctx, "slowlog-max-len", strconv.Itoa(slowKept)).Err(),
		s.own.Do(ctx, "slowlog", "reset").Err())
}

// slow are the calls of all kinds that took longer than slowFrom since watchSlow, in ms.
func (s *redisServer) slow(ctx context.Context) ([]float64, error) {
	list, err := s.own.SlowLogGet(ctx, slowKept).Result()
	var out []float64
	for _, e := range list {
		out = append(out, e.Duration.Seconds()*1000)
	}
	return out, err
}

// slowest is the longest call of a reordering since watchSlow, and the longest of
// any other script, in ms; slowFrom if all were shorter.
func (s *redisServer) slowest(ctx context.Context) (walk, rest float64, err error) {
	list, err := s.own.SlowLogGet(ctx, slowKept).Result()
	walk = slowFrom.Seconds() * 1000
	rest = walk
	for _, e := range list {
		ms := e.Duration.Seconds() * 1000
		// evalsha, hash, number of keys, key, then what it is about
		switch {
		case len(e.Args) < 5:
		case slices.Contains([]string{"lock", "page", "chunk", "done"}, e.Args[4]):
			walk = max(walk, ms)
		default:
			rest = max(rest, ms)
		}
	}
	return walk, rest, err
}
