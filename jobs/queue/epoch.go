package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/internal/proc"
	"muster/jobs"
	"muster/jobs/queue/clock"
	"muster/jobs/queue/codec"
)

// greet is called with every new connection, before any other use of it. addr is the node of a
// cluster to which the connection leads.
func (q *Conn) greet(ctx context.Context, cn *redis.Conn, addr string) error {
	q.mu.Lock()
	names := make([]string, 0, len(q.zones))
	for name, z := range q.zones {
		if z.node == addr {
			names = append(names, name)
		}
	}
	q.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	run, err := q.runID(ctx, cn)
	if errors.Is(err, errSentinel) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		err := q.callEpoch(ctx, cn, epochCall{zone: name, node: addr, run: run})
		if isMoved(err) {
			q.leave(name) // another node serves it: the next call finds it
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leave forgets that epoch was called for a zone.
func (q *Conn) leave(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if z := q.zones[name]; z != nil {
		z.entered = false
	}
}

// enter makes sure that epoch was called for a zone, at the node that now serves it, before its
// first script. It returns the client of that node.
func (q *Conn) enter(ctx context.Context, name string) (*redis.Client, error) {
	c, addr, err := q.At(ctx, name)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	z := q.zones[name]
	entered := z != nil && z.entered && z.node == addr
	q.mu.Unlock()
	if err := q.seats.Take(ctx, name, c); err != nil {
		return nil, q.Say("connect", err)
	}
	if entered {
		return c, nil
	}
	return c, q.epoch(ctx, name, 0)
}

// Enter calls epoch for a zone now, as the first script would. A child does so at once, while its
// first job begins, so that a Redis that restarts knows to wait for its report.
func (q *Conn) Enter(ctx context.Context, name string) error {
	_, err := q.enter(ctx, name)
	return err
}

// Follow calls epoch if the zone has another epoch than this handle knows: another caller found
// that the zone was forgotten, and must learn which jobs are in hand here, and how long locks are.
func (q *Conn) Follow(ctx context.Context, name, epoch string) error {
	q.mu.Lock()
	z := q.zones[name]
	same := z == nil || z.epoch == "" || z.epoch == epoch
	q.mu.Unlock()
	if same {
		return nil
	}
	return q.epoch(ctx, name, 0)
}

// epoch calls the script again; also when a script says that the zone is absent, or when TIME has
// certainly jumped, by so much.
func (q *Conn) epoch(ctx context.Context, name string, jump time.Duration) error {
	c, addr, err := q.At(ctx, name)
	if err != nil {
		return err
	}
	// One connection for both calls: between two connections another server may take over.
	cn := c.Conn()
	run, err := q.runID(ctx, cn)
	if err == nil {
		err = q.callEpoch(ctx, cn, epochCall{zone: name, node: addr, run: run, jump: jump})
	}
	_ = cn.Close()
	if err != nil {
		q.Elsewhere(ctx)
		return err
	}
	return q.Say("connect", q.seats.Take(ctx, name, c)) // looks again if there was another epoch
}

// errSentinel is the error for a connection to a Sentinel: the client of go-redis greets these too.
var errSentinel = errors.New("this is a Sentinel: want redis.sentinel instead of redis.url")

// errReplica is the error for a server that accepts no writes.
var errReplica = errors.New("this server is a replica: it cannot keep the queue")

// runID returns the run id of a server, or an error if the server accepts no writes.
func (q *Conn) runID(ctx context.Context, c *redis.Conn) (string, error) {
	if q.cfg.Embedded {
		return "embedded", nil
	}
	info, err := c.Info(ctx, "server", "replication").Result()
	if err != nil {
		return "", q.Say("connect", err)
	}
	if mode := codec.InfoField(info, "redis_mode"); mode == "sentinel" {
		return "", q.Say("connect", errSentinel)
	} else if mode != "cluster" && codec.InfoField(info, "role") == "slave" {
		// In a cluster a replica itself names the node that serves a zone.
		return "", q.Say("connect", errReplica)
	}
	if err := codec.OldEnough(codec.InfoField(info, "redis_version")); err != nil {
		return "", q.Say("connect", err)
	}
	return codec.InfoField(info, "run_id"), nil
}

// epochCall names the zone, the node and the run of the server for a call of epoch.
type epochCall struct {
	zone, node, run string
	jump            time.Duration // of TIME, for sure; 0: none
}

func (q *Conn) callEpoch(ctx context.Context, c redis.Scripter, e epochCall) error {
	args, sent := q.epochArgs(e)
	v, err := Scripts.epoch.Call(ctx, c, e.zone, args...).Slice()
	if err != nil {
		return q.Say("epoch", err)
	}
	r := codec.Reader{Left: v}
	epoch := r.Text()
	r.Text() // frozen until: step says it when it matters
	now, longest := r.Micros(), r.Duration()
	if r.Err != nil {
		return fmt.Errorf("epoch of zone %s: %w", e.zone, r.Err)
	}
	q.mu.Lock()
	z := q.zones[e.zone]
	if z == nil {
		z = &zone{held: map[jobs.ID]held{}}
		q.zones[e.zone] = z
	}
	jump := z.clock.Jump(clock.Look(now, sent, proc.Boot()))
	if jump.Abs() > q.jumpMin && e.jump == 0 && !q.cfg.Embedded {
		// Redis came back with another time than it left with.
		q.mu.Unlock()
		e.jump = jump
		return q.callEpoch(ctx, c, e)
	}
	defer q.mu.Unlock()
	if z.epoch != epoch {
		q.seats.Doubt(e.zone)
	}
	z.entered, z.node, z.epoch = true, e.node, epoch
	z.longest = max(z.longest, longest)
	z.see(now, sent)
	return nil
}

// epochArgs returns the arguments of epoch, and the boot clock before they are sent.
func (q *Conn) epochArgs(e epochCall) (args []any, sent time.Duration) {
	who, knew, longest, jump, since, stamp := "", "", int64(0), "", "", jobs.Micros(0)
	if q.cfg.Node != "" {
		who = q.cfg.Node + "/" + q.cfg.Slot
	}
	sent = proc.Boot()
	q.mu.Lock()
	defer q.mu.Unlock()
	var inHand []any
	if z := q.zones[e.zone]; z != nil {
		knew, longest = z.epoch, z.longest.Microseconds()
		if z.clock.Known {
			stamp = z.next(q.jumpMin)
		}
		if e.jump != 0 {
			jump = strconv.FormatInt(e.jump.Microseconds(), 10)
			since = z.clock.At(z.looked).Add(e.jump).String()
		}
		for id, h := range z.held {
			left := max(h.until-sent, time.Millisecond)
			inHand = append(inHand, string(id), int64(h.token), left.Microseconds())
			if !z.clock.Known { // of a child that its master has given a job: TIME when it was taken
				stamp = max(stamp, jobs.Micros(h.token))
			}
		}
	}
	return append([]any{e.run, knew, who, longest, jump, since, stamp.String()}, inHand...), sent
}

// movedTries bounds how often a call follows a zone that moves in a cluster.
const (
	movedTries = 5
	movedPause = 100 * time.Millisecond
)

// Script calls a script of a zone. If the zone is missing it calls epoch, which creates and freezes
// the zone, and tries once more. A node that does not serve the zone has not carried the call out,
// so the call is sent to the right node.
func (q *Conn) Script(ctx context.Context, s *Script, name string, args ...any) (codec.Reader,
	error) {
	again := false
	for try := 0; ; try++ {
		c, err := q.enter(ctx, name)
		if err == nil {
			var r codec.Reader
			r, err = q.run(ctx, c, s, name, args)
			if err == nil && (len(r.Left) == 0 || r.Left[0] != codec.Absent || again) {
				return r, nil
			}
		}
		switch {
		case err == nil:
			again = true
			if err := q.epoch(ctx, name, 0); err != nil {
				return codec.Reader{}, err
			}
		case isMoved(err) && try < movedTries:
			q.Elsewhere(ctx)
			if !pass(ctx, movedPause) {
				return codec.Reader{}, err
			}
		default:
			q.Elsewhere(ctx)
			return codec.Reader{}, err
		}
	}
}

// run calls a script once.
func (q *Conn) run(ctx context.Context, c *redis.Client, s *Script, name string,
	args []any) (r codec.Reader, err error) {
	if q.cfg.mustLast(s) {
		r.Left, r.Acked, err = q.runLasting(ctx, c, s, name, args)
	} else {
		r.Left, err = q.call(ctx, c, s, name, args).Slice()
	}
	return r, q.Say(s.name, err)
}

// isMoved reports whether a node has refused a call because another one serves the zone.
func isMoved(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && strings.HasPrefix(said.Error(), "MOVED ")
}

// pass waits for d; it returns false if ctx ended before.
func pass(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
