package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"muster/testkit/queuetest"
)

// idle counts what a node without work asks of Redis, and asynq beside it.
func idle(ctx context.Context, b *bench) (rows []row, err error) {
	n, err := b.newNode(ctx, nodeSize{children: 16, slots: 1}, func(q *queuetest.Queue) error {
		return publish(ctx, q, hostNames(1))
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	srv := b.newPeer(16)
	if err := srv.Start(asynq.NewServeMux()); err != nil {
		return nil, err
	}
	defer srv.Shutdown()

	fmt.Fprintf(b.say, "an idle node is watched for %s\n", b.quiet)
	const begin = 7 * time.Second // what is done once, at the start, is over by then
	if err := pause(ctx, begin); err != nil {
		return nil, err
	}
	m, err := b.redis.watch(ctx)
	if err != nil {
		return nil, err
	}
	slept := pause(ctx, b.quiet)
	made, err := m.stop(ctx)
	if err = errors.Join(slept, err, n.gone()); err != nil {
		return nil, err
	}
	const unit = "calls/s"
	perSecond := func(db int) []float64 { return []float64{float64(made(db)) / b.quiet.Seconds()} }
	peer := newRow("asynq, one queue", unit, perSecond(dbPeer))
	return []row{
		newRow("muster, one zone, signs of life included", unit, perSecond(dbMuster)).
			to("asynq", peer).atMost(0.35),
		peer,
	}, nil
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
