package main

import (
	"context"
	"errors"
	"time"

	"muster/fleet"
	"muster/testkit/queuetest"
	"muster/trust"
)

// manyJobs is how many jobs are put at once.
const manyJobs = 100000

// bytesOfJobs tells what a job costs in Redis' memory, while it waits and after
// it ended. Memory is the same in every round but for what the allocator does.
func bytesOfJobs(ctx context.Context, b *bench) ([]row, error) {
	names := hostNames(b.size(manyJobs))
	var ended []float64
	got, err := b.race(ctx, min(b.rounds, 3), []contender{
		{"muster, queued", func(ctx context.Context) (float64, error) {
			queued, after, err := b.bytesOfMuster(ctx, names)
			ended = append(ended, after)
			return queued, err
		}},
		{"asynq, queued", func(ctx context.Context) (float64, error) {
			return b.growth(ctx, names, func() error { return b.fillPeer(ctx, names) })
		}},
		{"floor, queued", func(ctx context.Context) (float64, error) {
			return b.growth(ctx, names, func() error { return b.fillFloor(ctx, names) })
		}},
	})
	if err != nil {
		return nil, err
	}
	const unit = "bytes a job"
	peer := newRow("asynq, queued", unit, got[1])
	return []row{
		newRow("muster, queued", unit, got[0]).to("asynq", peer).atMost(170),
		newRow("muster, ended, with its events", unit, ended).atMost(450),
		peer,
		newRow("floor: a member of a sorted set, queued", unit, got[2]).to("asynq", peer),
	}, nil
}

// growth is how many bytes a job takes that fill puts into an empty Redis.
func (b *bench) growth(ctx context.Context, names []string, fill func() error) (float64, error) {
	if err := b.redis.empty(ctx); err != nil {
		return 0, err
	}
	before, err := b.redis.settled(ctx)
	if err == nil {
		err = fill()
	}
	if err != nil {
		return 0, err
	}
	after, err := b.redis.settled(ctx)
	return (after - before) / float64(len(names)), err
}

// settled is the memory in use once clients that have gone are gone, too.
func (s *redisServer) settled(ctx context.Context) (float64, error) {
	for {
		info, err := s.info(ctx, "clients")
		if err != nil || ctx.Err() != nil {
			return 0, err
		}
		if info["connected_clients"] == "1" {
			return s.memory(ctx)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// bytesOfMuster is the growth by jobs that wait, and by the same ones that ended,
// with their part of the events. The inventory is there before: it is a matter
// of hosts.
func (b *bench) bytesOfMuster(ctx context.Context, names []string) (
	queued, ended float64, err error,
) {
	err = b.redis.empty(ctx)
	if err == nil {
		err = b.using(ctx, func(q *queuetest.Queue) error { return publish(ctx, q, names) })
	}
	if err != nil {
		return 0, 0, err
	}
	before, err := b.redis.settled(ctx)
	if err == nil {
		err = b.using(ctx, func(q *queuetest.Queue) error {
			_, err := put(ctx, q, "true", names)
			return err
		})
	}
	if err != nil {
		return 0, 0, err
	}
	full, err := b.redis.settled(ctx)
	if err == nil {
		err = b.work(ctx, len(names))
	}
	if err != nil {
		return 0, 0, err
	}
	after, err := b.redis.settled(ctx)
	n := float64(len(names))
	return (full - before) / n, (after - before) / n, err
}

// using opens the queue for f and closes it, so that its connections do not
// count.
func (b *bench) using(ctx context.Context, f func(*queuetest.Queue) error) error {
	q, err := b.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(q), q.Close())
}

// work drains so many jobs that wait.
func (b *bench) work(ctx context.Context, n int) error {
	c, err := b.newCrew(ctx, 2, 16)
	if err != nil {
		return err
	}
	return errors.Join(c.drain(ctx, n), c.close())
}

// signedSubmit returns a contender that puts the task of these hosts with its signed order.
func (b *bench) signedSubmit(hosts []fleet.Host,
	recordOf trust.RecordFunc) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		q, err := b.fresh(ctx)
		if err != nil {
			return 0, err
		}
		defer q.Close()
		began := time.Now()
		err = putSigned(ctx, q, hosts, recordOf)
		return time.Since(began).Seconds(), err
	}
}

// submit tells how long it takes to put many jobs.
func submit(ctx context.Context, b *bench) ([]row, error) {
	names := hostNames(b.size(manyJobs))
	hosts := signedHosts(names)
	var known trust.Records // of a server that has signed an order of this inventory before
	for _, h := range hosts {
		if _, err := known.Of("v1")(h); err != nil {
			return nil, err
		}
	}
	got, err := b.race(ctx, b.rounds, []contender{
		{"muster", func(ctx context.Context) (float64, error) {
			q, err := b.fresh(ctx)
			if err != nil {
				return 0, err
			}
			defer q.Close()
			began := time.Now()
			_, err = put(ctx, q, "true", names)
			return time.Since(began).Seconds(), err
		}},
		{"signed", b.signedSubmit(hosts, known.Of("v1"))},
		{"signed first", b.signedSubmit(hosts, trust.RecordOf)},
		{"floor", func(ctx context.Context) (float64, error) {
			if err := b.redis.empty(ctx); err != nil {
				return 0, err
			}
			began := time.Now()
			err := b.fillFloor(ctx, names)
			return time.Since(began).Seconds(), err
		}},
	})
	if err != nil {
		return nil, err
	}
	floor := newRow("floor: a ZADD a job, pipelined", "s", got[3])
	plain := newRow("muster, submit and commit", "s", got[0]).to("the floor", floor).atMost(0.8)
	return []row{
		plain,
		newRow("muster, signed, submit and commit", "s", got[1]).to("unsigned", plain).ratioAtMost(1.3),
		newRow("the same, first of an inventory", "s", got[2]).to("unsigned", plain).ratioAtMost(1.3),
		floor,
	}, nil
}
