package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// bridges are the shared connections to jump hosts, one for each way. A bridge is opened
// for its first user, and closed when nobody has used it for Config.JumpIdle.
type bridges struct {
	client *Client
	ways   pacers // bounds how many channels a jump host opens at a time

	mu   sync.Mutex
	open map[string]*bridge // guarded by mu; by the jump hosts of the way
	work sync.WaitGroup
}

// bridge is a connection to a jump host, or an attempt to connect.
type bridge struct {
	key   string
	name  string
	ready chan struct{} // closed when conn or err is set
	conn  *Conn
	err   error

	cancel context.CancelFunc // cancels the attempt to connect
	users  int                // guarded by bridges.mu
	idle   *time.Timer        // guarded by bridges.mu; nil while somebody uses the bridge
}

// errUnanswered means that a jump host has too many open requests.
var errUnanswered = errors.New("it has not answered to many requests for a connection: too many " +
	"hosts behind it are silent")

// errFell means that the connection to a jump host ended while it opened a channel.
var errFell = errors.New("the connection to it ended")

// cross returns the connection to the last of the jump hosts; the caller must return it with
// giveBack. The error is an [Error] about that jump host, or the cause why ctx ended.
func (b *bridges) cross(ctx context.Context, way []fleet.Hop) (*bridge, error) {
	used, err := b.take(way)
	if err != nil {
		return nil, err
	}
	select {
	case <-used.ready:
	case <-ctx.Done():
		b.giveBack(used)
		return nil, ended(ctx)
	}
	if used.err != nil {
		b.giveBack(used)
		return nil, used.err
	}
	return used, nil
}

// take returns the existing bridge or starts to build one. Building does not depend on the
// context of the first user, because others may wait for the same bridge.
func (b *bridges) take(way []fleet.Hop) (*bridge, error) {
	text, err := json.Marshal(way)
	if err != nil {
		return nil, err
	}
	last := way[len(way)-1]
	b.mu.Lock()
	defer b.mu.Unlock()

	key := string(text)
	used := b.open[key]
	if used == nil || used.fallen() {
		ctx, cancel := context.WithCancel(context.Background())
		used = &bridge{key: key, name: last.Name, ready: make(chan struct{}), cancel: cancel}
		if b.open == nil {
			b.open = make(map[string]*bridge)
		}
		b.open[key] = used
		b.work.Go(func() {
			used.conn, used.err = b.build(ctx, way[:len(way)-1], last)
			close(used.ready)
		})
	}
	used.users++
	if used.idle != nil {
		used.idle.Stop()
		used.idle = nil
	}
	return used, nil
}

// build connects to a jump host.
func (b *bridges) build(ctx context.Context, way []fleet.Hop, h fleet.Hop) (*Conn, error) {
	v, err := b.client.visit(way, h)
	if err != nil {
		return nil, err
	}
	v.jump = true
	return b.client.connect(ctx, v)
}

// fallen reports whether the bridge is unusable: building it failed, or its connection ended.
func (b *bridge) fallen() bool {
	return isClosed(b.ready) && (b.err != nil || isClosed(b.conn.done))
}

// giveBack ends one use of a bridge; used may be nil. The bridge stays open for a while in
// case that somebody else needs it soon.
func (b *bridges) giveBack(used *bridge) {
	if used == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()

	used.users--
	switch current := b.open[used.key] == used; {
	case used.users > 0:
	case current && isClosed(used.ready) && !used.fallen():
		used.idle = time.AfterFunc(b.client.cfg.JumpIdle, func() { b.expire(used) })
	default:
		b.tearDown(used)
	}
}

func (b *bridges) expire(used *bridge) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if used.users == 0 && b.open[used.key] == used {
		b.tearDown(used)
	}
}

// tearDown closes a bridge that nobody uses. The caller holds mu.
func (b *bridges) tearDown(used *bridge) {
	if b.open[used.key] == used {
		delete(b.open, used.key)
	}
	used.cancel()
	b.work.Go(func() {
		<-used.ready
		if used.conn != nil {
			used.conn.Close()
		}
	})
}

// close closes all bridges, even those in use, and waits until they are closed.
func (b *bridges) close() {
	b.mu.Lock()
	for _, used := range b.open {
		if used.idle != nil {
			used.idle.Stop()
		}
		b.tearDown(used)
	}
	b.mu.Unlock()
	b.work.Wait()
}

// dial opens a connection from the jump host to address. It takes over the caller's use of
// the bridge: closing the connection ends that use.
func (b *bridges) dial(ctx context.Context, over *bridge, h fleet.Hop) (net.Conn, Kind, error) {
	if err := b.ways.enter(ctx, over.key); err != nil {
		b.giveBack(over)
		return nil, KindCancelled, err
	}
	limited, cancel := context.WithTimeout(ctx, b.client.cfg.TCP)
	defer cancel()

	ch, reqs, err := over.openWay(limited, h)
	kind := Kind("")
	if err != nil {
		kind, err = over.explain(err, b.client.cfg.TCP)
	}
	b.ways.leave(over.key, kind)
	if err != nil {
		b.giveBack(over)
		return nil, kind, err
	}
	t := &tunnel{Channel: ch, to: net.JoinHostPort(h.Address, strconv.Itoa(h.Port)),
		gone: make(chan struct{})}
	t.closed = func() { b.end(over, t) }
	over.conn.tasks.Go(func() {
		ssh.DiscardRequests(reqs)
		close(t.gone)
	})
	return t, "", nil
}

// openWay asks the jump host for a channel. It may return while the request is still open,
// because the library cannot cancel it and a jump host waits minutes for a silent host.
func (b *bridge) openWay(ctx context.Context, h fleet.Hop) (
	ssh.Channel, <-chan *ssh.Request, error,
) {
	select {
	case b.conn.asked <- struct{}{}:
	default:
		return nil, nil, errUnanswered
	}
	type answer struct {
		ch   ssh.Channel
		reqs <-chan *ssh.Request
		err  error
	}
	answers := make(chan answer)
	b.conn.tasks.Go(func() {
		ch, reqs, err := b.conn.openChannel("direct-tcpip", ssh.Marshal(struct {
			Host       string
			Port       uint32
			Origin     string
			OriginPort uint32
		}{h.Address, uint32(h.Port), "127.0.0.1", 0}))
		<-b.conn.asked
		select {
		case answers <- answer{ch, reqs, err}:
		case <-ctx.Done():
			if err == nil {
				_ = ch.Close() // an error also ends the connection, which reports it
				ssh.DiscardRequests(reqs)
			}
		}
	})
	select {
	case a := <-answers:
		return a.ch, a.reqs, a.err
	case <-ctx.Done():
		return nil, nil, ended(ctx)
	}
}

// explain returns why a jump host opened no channel.
func (b *bridge) explain(err error, limit time.Duration) (Kind, error) {
	var refused *ssh.OpenChannelError
	switch {
	case errors.Is(err, errUnanswered):
		return KindThrottled, fmt.Errorf("jump host %s: %w", b.name, err)
	case errors.Is(err, context.DeadlineExceeded):
		return KindUnreachable, fmt.Errorf("no answer to TCP from behind jump host %s within %s",
			b.name, limit)
	case !errors.As(err, &refused):
		wait(b.conn.done, b.conn.cfg.Drain) // so that the next user finds the bridge fallen
		if why := b.conn.why(); why != nil {
			err = why
		}
		return KindUnreachable, fmt.Errorf("jump host %s: %w: %w", b.name, errFell, err)
	}
	said := saidWords([]byte(refused.Message))
	switch {
	case refused.Reason == ssh.ResourceShortage, strings.Contains(said, "open files"):
		return KindThrottled, fmt.Errorf("jump host %s has no room for a connection, and %s", b.name,
			said)
	case refused.Reason == ssh.ConnectionFailed:
		return KindUnreachable, fmt.Errorf("jump host %s cannot reach it, and %s", b.name, said)
	}
	return KindRefused, fmt.Errorf("jump host %s does not forward there (AllowTcpForwarding, "+
		"PermitOpen), and %s", b.name, said)
}

// end closes a tunnel. If the jump host does not confirm that in time, it hangs, and end
// closes its connection so that nobody waits for the tunnel any longer.
func (b *bridges) end(over *bridge, t *tunnel) {
	over.conn.tasks.Go(func() {
		late := over.conn.within(over.conn.cfg.Channel, "close a connection to a host behind it")
		defer late.Stop()

		_ = t.Channel.Close() // an error also ends the connection, which reports it
		<-t.gone
		b.giveBack(over)
	})
}
