package main

import (
	"context"
	"time"
)

// A heat goes through n jobs and calls measure around it.
type heat func(ctx context.Context, measure func(drain func() error) error) error

// rate makes a contender of a heat: jobs a second.
func rate(name string, n int, r heat) contender {
	return contender{name, func(ctx context.Context) (x float64, err error) {
		err = r(ctx, func(drain func() error) error {
			began := time.Now()
			err := drain()
			x = perSecond(n, began)
			return err
		})
		return x, err
	}}
}

// The heats are the ways to go through n jobs: a crew, asynq, the floor.
func (b *bench) crewHeat(n, takers, slots int) heat {
	return func(ctx context.Context, measure func(func() error) error) error {
		return b.drained(ctx, n, takers, slots, measure)
	}
}

func (b *bench) peerHeat(n, workers int) heat {
	return func(ctx context.Context, measure func(func() error) error) error {
		return b.peerDrained(ctx, n, workers, measure)
	}
}

func (b *bench) floorHeat(n, workers int) heat {
	return func(ctx context.Context, measure func(func() error) error) error {
		return b.floorDrained(ctx, n, workers, measure)
	}
}

// drain compares how fast jobs that do nothing get through a queue.
func drain(ctx context.Context, b *bench) ([]row, error) {
	n := b.size(20000)
	got, err := b.race(ctx, b.rounds, []contender{
		rate("muster, 16 takers × 1 slot", n, b.crewHeat(n, 16, 1)),
		rate("muster, 2 takers × 8 slots", n, b.crewHeat(n, 2, 8)),
		rate("asynq, concurrency 16", n, b.peerHeat(n, 16)),
		rate("BullMQ, concurrency 16", n, b.bullHeat(n, 16)),
		rate("floor, 16 connections", n, b.floorHeat(n, 16)),
	})
	if err != nil {
		return nil, err
	}
	const unit = "jobs/s"
	peer := newRow("asynq, concurrency 16", unit, got[2])
	return []row{
		newRow("muster, 16 takers × 1 slot", unit, got[0]).to("asynq", peer).ratioAtLeast(1.5),
		newRow("muster, 2 takers × 8 slots", unit, got[1]).to("asynq", peer).ratioAtLeast(4),
		peer,
		newRow("BullMQ, concurrency 16", unit, got[3]).to("asynq", peer),
		newRow("floor: one small script a job, 16 connections", unit, got[4]).to("asynq", peer),
	}, nil
}

// scriptTime makes a contender of a heat: µs of a script a job.
func (b *bench) scriptTime(name string, n int, r heat) contender {
	return contender{name, func(ctx context.Context) (x float64, err error) {
		err = r(ctx, func(drain func() error) error {
			if err := drain(); err != nil {
				return err
			}
			d, err := b.redis.inScripts(ctx)
			x = micros(d, n)
			return err
		})
		return x, err
	}}
}

// cpu tells how long Redis is busy with a job: the ceiling of one Redis. There is
// one caller at a time, because others would take its processor away from Redis
// while its clock runs.
func cpu(ctx context.Context, b *bench) ([]row, error) {
	n := b.size(10000)
	ways := []struct {
		name string
		heat heat
		most float64 // µs in scripts; 0: no target
	}{
		{"muster, one job a call", b.crewHeat(n, 1, 1), 40},
		{"muster, 16 jobs a call", b.crewHeat(n, 1, 16), 20},
		{"asynq, concurrency 1", b.peerHeat(n, 1), 0},
		{"BullMQ, concurrency 1", b.bullHeat(n, 1), 0},
		{"floor: one small script a job", b.floorHeat(n, 1), 0},
	}
	var all []contender
	for _, w := range ways {
		all = append(all, b.scriptTime(w.name, n, w.heat))
	}
	got, err := b.race(ctx, b.rounds, all)
	if err != nil {
		return nil, err
	}
	const unit, peer = "µs a job", 2
	var scripts []row
	for i, w := range ways {
		scripts = append(scripts, newRow(w.name, unit, got[i]))
	}
	for i, w := range ways {
		if i != peer {
			scripts[i] = scripts[i].to("asynq", scripts[peer])
		}
		if w.most > 0 {
			scripts[i] = scripts[i].atMost(w.most)
		}
	}
	return scripts, nil
}
