package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
)

const (
	// recordAtMost is what the record may add to a step.
	recordAtMost = 15 * time.Millisecond

	// farAway is the round trip of a host that is far away: what grows with it are trips.
	farAway = 50 * time.Millisecond
)

// records tells what the record that a host keeps costs a step, beside the same command as
// it is: on a real sshd, over one connection that is open.
func records(ctx context.Context, b *bench) (rows []row, err error) {
	d, err := b.startSSHD()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	near, err := b.recorded(ctx, d.host)
	if err != nil {
		return nil, err
	}
	host, hangUp, err := delayed(d.host, farAway/2)
	if err != nil {
		return nil, err
	}
	defer hangUp()
	far, err := b.recorded(ctx, host)
	if err != nil {
		return nil, err
	}
	cost := difference(near)
	trips := []float64{(leastMore(far) - leastMore(near)) / millis(farAway)}
	return []row{newRow("`true`, as it is", "ms", near[0]), newRow("`true`, with a record", "ms", near[1]),
		newRow("what the record adds", "ms", cost).atMost(millis(recordAtMost)),
		newRow("what it adds at "+farAway.String()+" away, in round trips", "", trips).atMost(1)}, nil
}

// difference is how much longer the second of two took, each time.
func difference(took [2][]float64) []float64 {
	more := make([]float64, len(took[0]))
	for i := range more {
		more[i] = took[1][i] - took[0][i]
	}
	return more
}

// leastMore compares the fastest of each: what a busy machine adds is not in them.
func leastMore(took [2][]float64) float64 { return slices.Min(took[1]) - slices.Min(took[0]) }

// recorded takes the times of a command as it is, and with a record, in turns.
func (b *bench) recorded(ctx context.Context, h fleet.Host) (took [2][]float64, err error) {
	cfg := remote.Default()
	cfg.RecordDir = filepath.Join(b.dir, "records")
	client, err := remote.New(cfg)
	if err != nil {
		return took, err
	}
	defer client.Close()
	var conns [2]*remote.Conn
	for i, fence := range []fleet.Fence{fleet.FenceNone, fleet.FenceRequired} {
		h.Fence = fence
		if conns[i], err = client.Connect(ctx, h); err != nil {
			return took, err
		}
		defer conns[i].Close()
	}
	for range b.size(20 * b.rounds) {
		for i, conn := range conns {
			now := time.Now().UnixMicro()
			result, err := conn.Run(ctx, remote.Command{Shell: "true", Bound: time.Minute,
				Record: &remote.Record{Job: fmt.Sprint("bench", now), Token: now, Since: now}})
			if err != nil {
				return took, err
			}
			took[i] = append(took[i], millis(result.Took))
		}
	}
	return took, nil
}

// delayed is a host behind a line on which each byte takes so long in either direction.
func delayed(h fleet.Host, each time.Duration) (fleet.Host, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return h, nil, err
	}
	to := net.JoinHostPort(h.Address, fmt.Sprint(h.Port))
	var work sync.WaitGroup
	work.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to)
			if err != nil {
				down.Close()
				continue
			}
			work.Go(func() { crawl(up, down, each) })
			work.Go(func() { crawl(down, up, each) })
		}
	})
	h.Port = l.Addr().(*net.TCPAddr).Port
	return h, func() { l.Close(); work.Wait() }, nil
}

// crawl brings bytes from one end to the other, late but in the same rhythm.
func crawl(to io.WriteCloser, from io.Reader, late time.Duration) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 1000)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(pieces)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			pieces <- piece{buf[:n], time.Now().Add(late)}
		}
	})
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	to.Close()
	for range pieces { // what nobody wants any more
	}
	reading.Wait()
}
