package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/internal/proc"
	"muster/jobs"
	"muster/jobs/queue/apart"
	"muster/jobs/queue/clock"
	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

// Conn is the connection to the queue in Redis, which the handles in the folders below share. It is
// safe for concurrent use. It remembers which jobs were handed out through it, so that after a
// restart of Redis every new connection can report again which jobs its process holds.
type Conn struct {
	rdb redis.UniversalClient
	cfg Config

	mu    sync.Mutex // guards the fields below
	zones map[string]*zone

	jumpMin time.Duration // the least jump of TIME that counts

	durable string // describes the persistence of the servers; set by Open

	functions functions    // whether to call step as a function
	seats     *apart.Seats // whether zones are where the others have them

	hooks.Meter // counts all calls

	Hand   Hand   // jobs in hand here
	Places Places // zones of tasks and jobs
	Rights Rights // what Redis lets this connection do
}

// zone holds what a handle knows about a zone it has called.
type zone struct {
	entered bool   // epoch was called …
	node    string // … at this node of a cluster; empty: there is one server only
	epoch   string
	longest time.Duration
	held    map[jobs.ID]held
	clock   clock.Clock   // of the node …
	looked  time.Duration // … and when it was last seen, on the boot clock
	stamp   jobs.Micros   // of the last call
	tended  int           // rounds of Tend
}

// see notes that a call which was sent then and is answered now has read TIME.
func (z *zone) see(now jobs.Micros, sent time.Duration) {
	came := proc.Boot()
	z.clock, z.looked = z.clock.With(clock.Look(now, sent, came)), came
}

// held is a job in hand: its lock ends when the boot clock shows until.
type held struct {
	token   jobs.Token
	timeout time.Duration // of its lock
	until   time.Duration
}

// ErrRefused is wrapped by Open's error when the server may forget or evict.
var ErrRefused = errors.New("this Redis is not safe for a queue")

// Open connects and checks that the server can be trusted with a queue: nothing
// is evicted and an append-only file is written (design §4).
func Open(ctx context.Context, c Config) (*Conn, error) {
	q, err := OpenLazy(c)
	if err != nil {
		return nil, err
	}
	if err := q.trust(ctx); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// OpenLazy connects with the first call and checks nothing: it is for children, whose master has
// checked.
func OpenLazy(c Config) (*Conn, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	q := &Conn{cfg: c, zones: map[string]*zone{}, jumpMin: jumpMin}
	q.functions.cfg = &q.cfg
	q.seats = &apart.Seats{Zones: c.Apart, Node: c.Role == keys.RoleNode, Trust: c.safe}
	if c.Slot == "" && len(c.Cluster) == 0 {
		q.seats.At = q.At // a child has the list of its master, and a cluster decides by itself
	}
	q.Hand, q.Places, q.Rights = Hand{q}, Places{q}, Rights{q}
	return q, q.connect()
}

// Redis returns the client behind the connection, for reads and for writes that need no script.
func (q *Conn) Redis() redis.UniversalClient { return q.rdb }

// Config returns the configuration of the connection. It never changes.
func (q *Conn) Config() *Config { return &q.cfg }

// Close closes the connections.
func (q *Conn) Close() error { return q.rdb.Close() }

// Ping returns nil if Redis answers. In a cluster it asks each node that serves a zone of this
// handle; after a failover of such a node it reports again which jobs are in hand.
func (q *Conn) Ping(ctx context.Context) error {
	rdb, many := q.rdb.(*redis.ClusterClient)
	if !many {
		return q.Say("ping", q.rdb.Ping(ctx).Err())
	}
	q.mu.Lock()
	names := slices.Collect(maps.Keys(q.zones))
	q.mu.Unlock()
	if len(names) == 0 {
		return q.Say("ping", rdb.Exists(ctx, keys.Hub("zones", "")).Err())
	}
	var errs []error
	for _, name := range names {
		c, err := q.enter(ctx, name)
		if err == nil {
			err = q.Say("ping", c.Exists(ctx, keys.Zone(name, "zone", "")).Err())
		}
		if err != nil {
			q.Elsewhere(ctx)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ErrFull is wrapped by Writes' error when Redis has reached its maxmemory: it takes no new tasks,
// but still results and cancels.
var ErrFull = errors.New("it is full")

// Writes returns nil if Redis accepts new data. Ping does not show that: a server that is full, a
// replica, or one that cannot write its files answers, and refuses. Writes tries a write that
// changes nothing; in a cluster it does so at the hub's node, and at each node that serves a zone
// of this handle.
func (q *Conn) Writes(ctx context.Context) error {
	errs := []error{q.tryWrite(ctx, q.rdb, keys.Hub("tasks", ""))}
	if _, many := q.rdb.(*redis.ClusterClient); !many {
		return errs[0]
	}
	q.mu.Lock()
	names := slices.Sorted(maps.Keys(q.zones))
	q.mu.Unlock()
	for _, name := range names {
		c, err := q.enter(ctx, name)
		if err == nil {
			err = q.tryWrite(ctx, c, keys.Zone(name, "queue", ""))
		}
		if err != nil {
			q.Elsewhere(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tryWrite gives a member of a sorted set a new score, if the member exists. The name of the member
// is empty, and no task and no job has an empty name, so it never exists.
func (q *Conn) tryWrite(ctx context.Context, c redis.Cmdable, key string) error {
	err := c.ZAddXX(ctx, key, redis.Z{}).Err()
	full := err != nil && strings.HasPrefix(err.Error(), "OOM")
	if err = q.Say("write", err); full {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
