package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// counted makes a contender of a heat: calls of clients a job, in a database.
func (b *bench) counted(name string, n, db int, r heat) contender {
	return contender{name, func(ctx context.Context) (x float64, err error) {
		err = r(ctx, func(drain func() error) error {
			m, err := b.redis.watch(ctx)
			if err != nil {
				return err
			}
			drained := drain()
			made, err := m.stop(ctx)
			if drained != nil || err != nil {
				return cmp.Or(drained, err)
			}
			x = float64(made(db)) / float64(n)
			return nil
		})
		return x, err
	}}
}

// calls counts what is asked of Redis for a job of one step. Its numbers do not
// depend on the machine, so one round is enough; there are so many jobs that the
// last call of each taker, which finds nothing, does not count.
func calls(ctx context.Context, b *bench) ([]row, error) {
	const n = 10000
	got, err := b.race(ctx, 1, []contender{
		b.counted("muster, 16 takers × 1 slot", n, dbMuster, b.crewHeat(n, 16, 1)),
		b.counted("muster, 2 takers × 8 slots", n, dbMuster, b.crewHeat(n, 2, 8)),
		b.counted("asynq, concurrency 16", n, dbPeer, b.peerHeat(n, 16)),
	})
	if err != nil {
		return nil, err
	}
	const unit = "calls a job"
	peer := newRow("asynq, concurrency 16", unit, got[2])
	return []row{
		newRow("muster, 16 takers × 1 slot", unit, got[0]).to("asynq", peer).atMost(1),
		newRow("muster, 2 takers × 8 slots", unit, got[1]).to("asynq", peer).atMost(1),
		peer,
	}, nil
}

// inside shows what a step calls inside Redis and how long that takes, to find
// out what to make better. What is left is Lua itself.
func inside(ctx context.Context, b *bench) ([]row, error) {
	var rows []row
	n := b.size(10000)
	for _, slots := range []int{1, 16} {
		var all map[string]usage
		err := b.drained(ctx, n, 1, slots, func(drain func() error) error {
			err := drain()
			if err == nil {
				all, err = b.redis.usages(ctx)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows, shares(slots, n, all)...)
	}
	return rows, nil
}

// shares lists the commands that a script called, the dearest first.
func shares(slots, n int, all map[string]usage) []row {
	const unit = "µs a job"
	script := all["evalsha"].usec + all["eval"].usec + all["fcall"].usec
	rest := script
	names := slices.SortedFunc(maps.Keys(all), func(x, y string) int {
		return cmp.Compare(all[y].usec, all[x].usec)
	})
	var rows []row
	for _, name := range names {
		u := all[name]
		if slices.Contains([]string{"fcall", "evalsha", "eval", "info", "config|resetstat"}, name) {
			continue
		}
		rest -= u.usec
		rows = append(rows, newRow(fmt.Sprintf("%d a call: %s, %s calls a job", slots, name,
			number(float64(u.calls)/float64(n))), unit, []float64{u.usec / float64(n)}))
	}
	return append([]row{
		newRow(fmt.Sprintf("%d a call: all", slots), unit, []float64{script / float64(n)}),
		newRow(fmt.Sprintf("%d a call: Lua", slots), unit, []float64{rest / float64(n)}),
	}, rows...)
}
