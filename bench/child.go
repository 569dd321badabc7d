package main

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"time"

	"muster/fleet"
	"muster/jobs"
	"muster/testkit/queuetest"
)

// child measures one child process: how soon after its master took a job for it
// the host hears of it, and what it costs in memory while the host works.
func child(ctx context.Context, b *bench) (rows []row, err error) {
	h, err := b.newHosts(childSamples)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	first, err := b.firstBytes(ctx, h)
	if err != nil {
		return nil, err
	}
	memory, err := b.childMemory(ctx, h)
	if err != nil {
		return nil, err
	}
	floor := newRow("floor: muster version, start to end", "ms", first[1])
	return []row{
		newRow("from its take to the first byte of SSH", "ms", first[0]).
			to("the floor", floor).atMost(15),
		floor,
		newRow("own memory, with a job in hand", "MB", memory).atMost(15),
	}, nil
}

// childSamples is how many children are started, at least.
const childSamples = 20

// firstBytes starts children in turns with processes that end at once.
func (b *bench) firstBytes(ctx context.Context, h *hosts) (got [][]float64, err error) {
	n, host, err := b.listening(ctx, h, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close(), host.Close()) }()

	return b.race(ctx, max(childSamples, b.rounds), []contender{
		{"child", func(ctx context.Context) (float64, error) { return n.firstByte(ctx, host) }},
		{"process", func(ctx context.Context) (float64, error) {
			began := time.Now()
			err := exec.CommandContext(ctx, b.muster, "version").Run()
			return millis(time.Since(began)), err
		}},
	})
}

// listening is a node with nothing to do, and its one host, which hears who comes.
func (b *bench) listening(ctx context.Context, h *hosts, linger time.Duration) (*node, *ear, error) {
	host, err := newEar(h.list[0])
	if err != nil {
		return nil, nil, err
	}
	n, err := b.newNode(ctx, nodeSize{children: 1, slots: 1, linger: linger}, func(q *queuetest.Queue) error {
		return q.Publish(ctx, inventory, []fleet.Host{host.Host}, nil)
	})
	if err != nil {
		return nil, nil, errors.Join(err, host.Close())
	}
	return n, host, nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// firstByte is the time from a take, by Redis' clock, to the first byte that the
// host hears. Both clocks are that of this machine.
func (n *node) firstByte(ctx context.Context, host *ear) (float64, error) {
	id, err := put(ctx, n.q, "true", []string{host.Name})
	if err != nil {
		return 0, err
	}
	at, err := host.hear()
	if err != nil {
		return 0, n.explain(err)
	}
	// The host has hung up, so the job ends as unreachable: that is all right.
	if _, err := n.ended(ctx, id); err != nil {
		return 0, err
	}
	j, err := n.q.Job(ctx, jobs.NewID(id, host.Name))
	return millis(at.Sub(j.Started.Time)), err
}

// ear is a host that hears the first byte of a client and hangs up.
type ear struct {
	*net.TCPListener
	fleet.Host
}

// newEar makes one that can be reached as another host is.
func newEar(like fleet.Host) (*ear, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	like.Address, like.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	return &ear{l, like}, nil
}

// hear waits for a client and tells when its first byte came.
func (e *ear) hear() (time.Time, error) {
	if err := e.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return time.Time{}, err
	}
	c, err := e.Accept()
	if err != nil {
		return time.Time{}, err
	}
	defer c.Close()
	_, err = c.Read(make([]byte, 1))
	at := time.Now()
	if err == nil {
		// Who hangs up without a word has too many to log in, and is called again at once.
		_, err = c.Write([]byte("SSH-2.0-ear\r\n"))
	}
	return at, err
}

// childMemory is the private memory of children that each wait for a host.
func (b *bench) childMemory(ctx context.Context, h *hosts) (mega []float64, err error) {
	n, err := b.newNode(ctx, nodeSize{children: childSamples, slots: 1}, func(q *queuetest.Queue) error {
		return q.Publish(ctx, inventory, h.list, nil)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()

	id, err := put(ctx, n.q, "sleep 5", namesOf(h.list))
	if err != nil {
		return nil, err
	}
	var pids []int
	err = n.until(ctx, look, func() (bool, error) {
		pids, err = n.children()
		return len(pids) == childSamples, err
	})
	if err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second) // each has logged in by then
	for _, pid := range pids {
		bytes, err := privateMemory(pid)
		if err != nil {
			return nil, err
		}
		mega = append(mega, bytes/1e6)
	}
	_, err = n.succeeded(ctx, id)
	return mega, err
}
