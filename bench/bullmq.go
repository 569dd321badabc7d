package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// bullHeat is a way to go through n jobs: BullMQ, one worker of Node.js.
func (b *bench) bullHeat(n, concurrency int) heat {
	return func(ctx context.Context, measure func(func() error) error) error {
		return b.bullDrained(ctx, n, concurrency, measure)
	}
}

// bullDrained is a run of BullMQ through n no-op jobs. measure is called around the
// draining alone: Node.js has started, and the jobs are there.
func (b *bench) bullDrained(ctx context.Context, n, concurrency int,
	measure func(drain func() error) error) error {
	if _, err := os.Stat(filepath.Join(b.bullmq, "node_modules", "bullmq")); err != nil {
		return fmt.Errorf("BullMQ is not there: %w: `npm install --prefix %s` installs it, as make bench does",
			err, b.bullmq)
	}
	if err := b.redis.empty(ctx); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(b.redis.addr)
	if err != nil {
		return err
	}
	p, err := b.start("bullmq", "node", filepath.Join(b.bullmq, "drain.mjs"), host, port,
		strconv.Itoa(dbPeer), strconv.Itoa(n), strconv.Itoa(concurrency))
	if err != nil {
		return err
	}
	giveUp := time.AfterFunc(5*time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer giveUp.Stop()
	defer context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })()
	said := bufio.NewScanner(p.out)
	await := func(word string) error {
		if said.Scan() && said.Text() == word {
			return nil
		}
		return p.explain(fmt.Errorf("BullMQ did not say %q", word))
	}
	err = await("filled")
	if err == nil {
		err = b.redis.forget(ctx)
	}
	if err == nil {
		err = measure(func() error {
			if err := p.stdin.Close(); err != nil {
				return err
			}
			return await("done")
		})
	}
	if err != nil {
		_ = p.cmd.Process.Kill()
	}
	_, _ = io.Copy(io.Discard, p.out) // ends with the process
	<-p.ended
	if err == nil && p.err != nil {
		return p.explain(p.err)
	}
	return errors.Join(err, ctx.Err())
}
