// Package nodes stores the nodes as they report themselves, the hints that wake them, and the
// orders about them.
//
// Floor 4: may import the connection and all below it.
package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Nodes stores the nodes, as they report themselves.
type Nodes struct {
	c       *queue.Conn
	ordered chan struct{} // see Ordered

	mu    sync.Mutex    // guards the fields below
	beats int           // until the index of nodes is due again
	ahead time.Duration // of Redis's clock, by the last comparison
}

// New returns the nodes behind a connection.
func New(c *queue.Conn) *Nodes {
	return &Nodes{c: c, ordered: make(chan struct{}, 1)}
}

// beatTTL is the time for which a node counts as alive after a beat.
const beatTTL = 15 * time.Second

// Beat reports that a node is alive; every 5 s. It takes one call of Redis, and once a minute two
// more, to compare the clocks and to write the index of nodes. It also writes the index if Redis
// had forgotten the node, as after FLUSHALL.
func (q *Nodes) Beat(ctx context.Context, n jobs.Node) error {
	due := q.indexDue()
	skew, err := q.skew(ctx, due)
	if err != nil {
		return err
	}
	n.Clock.Skew = skew.Seconds()
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	key, set := keys.Hub("node:", n.ID), redis.SetArgs{TTL: beatTTL, Get: true}
	err = q.c.Redis().SetArgs(ctx, key, text, set).Err()
	if err != nil && strings.HasPrefix(err.Error(), "OOM") {
		// The last report stays: at maxmemory Redis stores nothing new, but a node that works is not
		// gone.
		err = errors.Join(err, q.c.Redis().PExpire(ctx, key, beatTTL).Err())
	}
	forgotten := errors.Is(err, redis.Nil)
	if err != nil && !forgotten {
		return q.c.Say("beat", err)
	}
	if !due && !forgotten {
		return nil
	}
	q.order()
	err = q.c.Redis().ZAdd(ctx, keys.Hub("nodes", ""),
		redis.Z{Score: float64(n.Seen.UnixMicro()), Member: n.ID}).Err()
	q.indexed(err)
	return q.c.Say("beat", err)
}

// skew returns how far the clock of this machine is ahead of the clock of Redis, by the last
// comparison or a new one.
func (q *Nodes) skew(ctx context.Context, anew bool) (time.Duration, error) {
	if !anew {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.ahead, nil
	}
	before := time.Now()
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return 0, err
	}
	// The best estimate of when the answer was made is halfway between question and answer.
	ahead := before.Add(time.Since(before) / 2).Sub(now)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ahead = ahead
	return ahead, nil
}

// indexEvery is the number of beats between two writes of the index of nodes, because an idle node
// must cost next to nothing.
const indexEvery = 12

func (q *Nodes) indexDue() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.beats--
	return q.beats < 0
}

func (q *Nodes) indexed(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil {
		q.beats = indexEvery
	}
}

// Gone reports that a node ended in an orderly way.
func (q *Nodes) Gone(ctx context.Context, node string) error {
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, keys.Hub("node:", node))
		p.ZRem(ctx, keys.Hub("nodes", ""), node)
		return nil
	})
	return q.c.Say("beat", err)
}

// Nodes returns the nodes by id. A node without a beat for 15 s is gone, with the last minute
// in which it was seen.
func (q *Nodes) Nodes(ctx context.Context) ([]jobs.Node, error) {
	ids, err := q.c.Redis().ZRangeWithScores(ctx, keys.Hub("nodes", ""), 0, -1).Result()
	if err != nil || len(ids) == 0 {
		return nil, q.c.Say("nodes", err)
	}
	cmds := make([]*redis.StringCmd, len(ids))
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, z := range ids {
			cmds[i] = p.Get(ctx, keys.Hub("node:", fmt.Sprint(z.Member)))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, q.c.Say("nodes", err)
	}
	out := make([]jobs.Node, len(ids))
	for i, z := range ids {
		text, err := cmds[i].Bytes()
		if err != nil || json.Unmarshal(text, &out[i]) != nil {
			out[i] = jobs.Node{ID: fmt.Sprint(z.Member), State: jobs.NodeGone,
				Seen: jobs.TimeOf(jobs.Micros(z.Score))}
		}
	}
	slices.SortFunc(out, func(a, b jobs.Node) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// Wake sends a hint whenever a job becomes due in one of the zones. Hints may be lost; only polling
// is reliable. The second result ends the subscriptions. A server of a zone that is away does not
// keep the hints of the others: its subscription begins when it is back.
func (q *Nodes) Wake(ctx context.Context, zones []string) (<-chan struct{}, func(), error) {
	byServer, err := q.c.Places.Publishers(ctx, zones)
	if err != nil {
		return nil, nil, err
	}
	hints := make(chan struct{}, 1)
	var subs []*redis.PubSub
	var away []error
	for c, list := range byServer {
		channels := make([]string, len(list))
		for i, z := range list {
			channels[i] = keys.Zone(z, "wake", "")
		}
		ps := c.Subscribe(ctx, channels...)
		subs = append(subs, ps)
		if _, err := ps.Receive(ctx); err != nil {
			away = append(away, q.c.Say("subscribe", err))
		}
	}
	var all sync.WaitGroup
	stop := func() {
		for _, ps := range subs {
			ps.Close()
		}
		all.Wait()
	}
	if len(away) > 0 && len(away) == len(subs) {
		stop()
		return nil, nil, errors.Join(away...)
	}
	q.order()
	for _, ps := range subs {
		all.Go(func() { q.hint(ps, hints) })
	}
	return hints, stop, nil
}

// hint passes the messages of a subscription on as hints. By default go-redis pings every 3 s; an
// idle node should cost less.
func (q *Nodes) hint(ps *redis.PubSub, hints chan<- struct{}) {
	for m := range ps.Channel(redis.WithChannelHealthCheckInterval(time.Minute)) {
		if m.Payload == orderedHint {
			q.order()
		}
		select {
		case hints <- struct{}{}:
		default:
		}
	}
}
