package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const peerKind = "noop"

func (b *bench) peerRedis() asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Addr: b.redis.addr, DB: dbPeer}
}

func (b *bench) newPeer(workers int) *asynq.Server {
	return asynq.NewServer(b.peerRedis(),
		asynq.Config{Concurrency: workers, LogLevel: asynq.FatalLevel})
}

// fillPeer puts a no-op task for each host into asynq.
func (b *bench) fillPeer(ctx context.Context, names []string) error {
	client := asynq.NewClient(b.peerRedis())
	defer client.Close()
	const clients = 16
	errs := make([]error, clients)
	var next atomic.Int64
	var wait sync.WaitGroup
	for c := range clients {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(names)) && errs[c] == nil; i = next.Add(1) - 1 {
				payload := fmt.Appendf(nil, `{"task":"0wcy7y2fb2","host":"%s"}`, names[i])
				_, errs[c] = client.EnqueueContext(ctx, asynq.NewTask(peerKind, payload))
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// peerDrained is a run of asynq through n no-op tasks. measure is called around
// the draining alone.
func (b *bench) peerDrained(ctx context.Context, n, workers int,
	measure func(drain func() error) error) error {
	if err := b.redis.empty(ctx); err != nil {
		return err
	}
	if err := b.fillPeer(ctx, hostNames(n)); err != nil {
		return err
	}
	srv := b.newPeer(workers)
	defer srv.Shutdown()
	var done atomic.Int64
	all := make(chan struct{})
	handler := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if done.Add(1) == int64(n) {
			close(all)
		}
		return nil
	})
	if err := b.redis.forget(ctx); err != nil {
		return err
	}
	return measure(func() error {
		if err := srv.Start(handler); err != nil {
			return err
		}
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Minute):
			return fmt.Errorf("asynq did %d of %d tasks in 5 minutes", done.Load(), n)
		}
	})
}

// pop is the least that a queue can do for a job: one small script.
var pop = redis.NewScript(`return redis.call('ZPOPMIN', KEYS[1])`)

const floorKey = "floor"

// fillFloor puts a member for each host into a sorted set, in pipelines.
func (b *bench) fillFloor(ctx context.Context, names []string) error {
	rdb := redis.NewClient(&redis.Options{Addr: b.redis.addr, DB: dbPeer})
	defer rdb.Close()
	const chunk = 1000
	for from := 0; from < len(names); from += chunk {
		_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, name := range names[from:min(from+chunk, len(names))] {
				job := redis.Z{Score: float64(from + i), Member: "0wcy7y2fb2:" + name}
				p.ZAdd(ctx, floorKey, job)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// floorDrained is a run of the bare floor through n jobs.
func (b *bench) floorDrained(ctx context.Context, n, workers int,
	measure func(drain func() error) error) error {
	if err := b.redis.empty(ctx); err != nil {
		return err
	}
	if err := b.fillFloor(ctx, hostNames(n)); err != nil {
		return err
	}
	clients := make([]*redis.Client, workers)
	for i := range clients {
		clients[i] = redis.NewClient(&redis.Options{Addr: b.redis.addr, DB: dbPeer, PoolSize: 1})
		defer clients[i].Close()
		if err := pop.Load(ctx, clients[i]).Err(); err != nil {
			return err
		}
	}
	if err := b.redis.forget(ctx); err != nil {
		return err
	}
	return measure(func() error {
		errs := make([]error, workers)
		var wait sync.WaitGroup
		for i, c := range clients {
			wait.Go(func() { errs[i] = popAll(ctx, c) })
		}
		wait.Wait()
		return errors.Join(errs...)
	})
}

func popAll(ctx context.Context, c *redis.Client) error {
	for {
		v, err := pop.EvalSha(ctx, c, []string{floorKey}).Slice()
		if err != nil || len(v) == 0 {
			return err
		}
	}
}
