package hub

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

// Nodes are the machines that work, as they say themselves.
type Nodes struct {
	c *queue.Conn

	mu    sync.Mutex    // guards what follows
	beats int           // until the index of nodes is due again
	ahead time.Duration // the clock of this machine, of that of Redis, as it was found last
}

// NewNodes returns the nodes behind a connection.
func NewNodes(c *queue.Conn) *Nodes { return &Nodes{c: c} }

// beatTTL is how long a node counts as alive after a beat.
const beatTTL = 15 * time.Second

// Beat tells that a node is alive; every 5 s. One Redis call, and once a minute two more:
// the clocks are compared, and the index of nodes is written; that also when Redis did not
// know the node any more, as after FLUSHALL.
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
		// What it said last stays: at maxmemory Redis takes nothing new, but a node that
		// works is not gone.
		err = errors.Join(err, q.c.Redis().PExpire(ctx, key, beatTTL).Err())
	}
	forgotten := errors.Is(err, redis.Nil)
	if err != nil && !forgotten {
		return q.c.Say("beat", err)
	}
	if !due && !forgotten {
		return nil
	}
	err = q.c.Redis().ZAdd(ctx, keys.Hub("nodes", ""),
		redis.Z{Score: float64(n.Seen.UnixMicro()), Member: n.ID}).Err()
	q.indexed(err)
	return q.c.Say("beat", err)
}

// skew is by how much the clock of this machine is ahead of that of Redis, as it was found
// last, or anew.
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
	ahead := middle(before).Sub(now)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ahead = ahead
	return ahead, nil
}

// middle is between an instant and now: something that was read meanwhile is told to have
// been read then.
func middle(before time.Time) time.Time { return before.Add(time.Since(before) / 2) }

// indexEvery is how many beats pass until the index of nodes is written again,
// because an idle node must cost next to nothing.
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

// Gone tells that a node ended in order.
func (q *Nodes) Gone(ctx context.Context, node string) error {
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, keys.Hub("node:", node))
		p.ZRem(ctx, keys.Hub("nodes", ""), node)
		return nil
	})
	return q.c.Say("beat", err)
}

// NodeGone is the state of a node that was not heard of for 15 s.
const NodeGone = jobs.NodeGone

// Nodes lists the nodes by id. One that has not beaten for 15 s is NodeGone,
// with the last minute in which it was seen.
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
			out[i] = jobs.Node{ID: fmt.Sprint(z.Member), State: NodeGone,
				Seen: jobs.TimeOf(jobs.Micros(z.Score))}
		}
	}
	slices.SortFunc(out, func(a, b jobs.Node) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// Wake gives a hint whenever something became due in one of the zones. Hints
// may be lost; the poll is the truth. The second result ends it.
func (q *Nodes) Wake(ctx context.Context, zones []string) (<-chan struct{}, func(), error) {
	channels := make([]string, len(zones))
	for i, z := range zones {
		channels[i] = keys.Zone(z, "wake", "")
	}
	// By default go-redis pings every 3 s; an idle node should cost less.
	ps := q.c.Redis().Subscribe(ctx, channels...)
	if _, err := ps.Receive(ctx); err != nil {
		return nil, nil, errors.Join(q.c.Say("subscribe", err), ps.Close())
	}
	hints := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range ps.Channel(redis.WithChannelHealthCheckInterval(time.Minute)) {
			select {
			case hints <- struct{}{}:
			default:
			}
		}
	}()
	stop := func() {
		ps.Close()
		<-done
	}
	return hints, stop, nil
}
