package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/internal/proc"
	"muster/jobs"
)

// Queue is a handle on the queue in Redis. It is safe for concurrent use. It
// remembers what was handed out through it, so that after a restart of Redis
// every new connection can say again what its process holds.
type Queue struct {
	rdb redis.UniversalClient
	cfg Config

	mu    sync.Mutex // guards what follows
	zones map[string]*zone
	beats int // until the index of nodes is due again

	durable string // how far the server can be trusted; set by Open
}

// zone is what a handle knows of a zone it has called.
type zone struct {
	entered bool // epoch was called
	epoch   string
	longest time.Duration
	held    map[jobs.ID]held
	now     jobs.Micros   // Redis' time of the last answer …
	boot    time.Duration // … and the boot clock when it came
	stamp   jobs.Micros   // of the last call
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
func Open(ctx context.Context, c Config) (*Queue, error) {
	q, err := OpenLazy(c)
	if err != nil {
		return nil, err
	}
	if err := q.check(ctx); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// OpenLazy connects with the first call and checks nothing: for children, whose
// master has checked.
func OpenLazy(c Config) (*Queue, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	o, err := c.options()
	if err != nil {
		return nil, fmt.Errorf("redis.url: %w", err)
	}
	q := &Queue{cfg: c, zones: map[string]*zone{}}
	o.OnConnect = q.greet
	q.rdb = redis.NewClient(o)
	return q, nil
}

// Close closes the connections.
func (q *Queue) Close() error { return q.rdb.Close() }

// Ping tells whether Redis answers.
func (q *Queue) Ping(ctx context.Context) error { return q.say("ping", q.rdb.Ping(ctx).Err()) }

func (q *Queue) check(ctx context.Context) error {
	if q.cfg.Embedded {
		q.durable = "in memory only: gone when this Redis ends"
		return q.Ping(ctx)
	}
	info, err := q.rdb.Info(ctx, "memory", "persistence").Result()
	if err != nil {
		return q.say("connect", err)
	}
	var wrong []string
	if p := infoField(info, "maxmemory_policy"); p != "noeviction" {
		wrong = append(wrong, fmt.Sprintf("maxmemory-policy is %s: set noeviction, or jobs vanish", p))
	}
	q.durable = "append-only file"
	if infoField(info, "aof_enabled") != "1" {
		q.durable = "no append-only file: a restart forgets"
		wrong = append(wrong, "appendonly is off: set it to yes, or a restart forgets the queue")
	}
	if len(wrong) > 0 && !q.cfg.Unsafe {
		return fmt.Errorf("redis %s: %w: %s (or accept it with --unsafe-redis)",
			q.cfg.Where(), ErrRefused, strings.Join(wrong, "; "))
	}
	return nil
}

// Durable says in words how far the server remembers what was accepted.
func (q *Queue) Durable() string { return q.durable }

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// say gives an error of Redis the operation and the server, in words.
func (q *Queue) say(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return err
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"),
		strings.Contains(text, "called without any password configured"):
		err = fmt.Errorf("user or password refused: check redis.url (%w)", err)
	case strings.HasPrefix(text, "OOM"):
		err = fmt.Errorf("maxmemory is reached, nothing new is accepted: "+
			"give Redis more memory (%w)", err)
	case strings.Contains(text, "NOPERM"):
		err = fmt.Errorf("the ACL of this user lacks a permission (%w)", err)
	}
	return fmt.Errorf("redis %s: %s: %w", q.cfg.Where(), op, err)
}

// greet is called with every new connection, before anything else uses it.
func (q *Queue) greet(ctx context.Context, cn *redis.Conn) error {
	q.mu.Lock()
	names := make([]string, 0, len(q.zones))
	for name := range q.zones {
		names = append(names, name)
	}
	q.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	run, err := q.runID(ctx, cn)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := q.callEpoch(ctx, cn, name, run); err != nil {
			return err
		}
	}
	return nil
}

// enter makes sure that epoch was called for a zone before its first script.
func (q *Queue) enter(ctx context.Context, name string) error {
	q.mu.Lock()
	z := q.zones[name]
	entered := z != nil && z.entered
	q.mu.Unlock()
	if entered {
		return nil
	}
	return q.epoch(ctx, name)
}

// Enter calls epoch for a zone now, as the first script would. A child does it
// at once, beside its first job, so that a restart of Redis waits for its word.
func (q *Queue) Enter(ctx context.Context, name string) error { return q.enter(ctx, name) }

// epoch asks again; also when a script says that the zone is absent.
func (q *Queue) epoch(ctx context.Context, name string) error {
	run, err := q.runID(ctx, q.rdb)
	if err != nil {
		return err
	}
	return q.callEpoch(ctx, q.rdb, name, run)
}

// runIDer is the part of a client or connection that tells the run id.
type runIDer interface {
	Info(ctx context.Context, sections ...string) *redis.StringCmd
}

func (q *Queue) runID(ctx context.Context, c runIDer) (string, error) {
	if q.cfg.Embedded {
		return "embedded", nil
	}
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return "", q.say("connect", err)
	}
	return infoField(info, "run_id"), nil
}

func (q *Queue) callEpoch(ctx context.Context, c redis.Scripter, name, run string) error {
	args := []any{run, "", "", 0}
	q.mu.Lock()
	if z := q.zones[name]; z != nil {
		args[1], args[3] = z.epoch, z.longest.Microseconds()
		now := proc.Boot()
		for id, h := range z.held {
			left := max(h.until-now, time.Millisecond)
			args = append(args, string(id), int64(h.token), left.Microseconds())
		}
	}
	q.mu.Unlock()
	if q.cfg.Node != "" {
		args[2] = q.cfg.Node + "/" + q.cfg.Slot
	}
	v, err := scripts.epoch.run(ctx, c, name, args...).Slice()
	if err != nil {
		return q.say("epoch", err)
	}
	r := reader{v: v}
	epoch := r.text()
	r.text() // frozen until: step says it when it matters
	now, longest := r.micros(), time.Duration(r.micros())*time.Microsecond
	if r.err != nil {
		return fmt.Errorf("epoch of zone %s: %w", name, r.err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	z := q.zones[name]
	if z == nil {
		z = &zone{held: map[jobs.ID]held{}}
		q.zones[name] = z
	}
	z.entered = true
	z.epoch, z.longest, z.now, z.boot = epoch, longest, now, proc.Boot()
	return nil
}

// absent is what scripts answer when the zone's key is missing.
const absent = "absent"

// script calls a script of a zone. If the zone is missing it calls epoch, which
// makes and freezes it, and tries once more.
func (q *Queue) script(ctx context.Context, s *script, name string, args ...any) (reader, error) {
	if err := q.enter(ctx, name); err != nil {
		return reader{}, err
	}
	for try := 0; ; try++ {
		v, err := s.run(ctx, q.rdb, name, args...).Slice()
		if err != nil {
			return reader{}, q.say(s.name, err)
		}
		if len(v) == 0 || v[0] != absent || try > 0 {
			return reader{v: v}, nil
		}
		if err := q.epoch(ctx, name); err != nil {
			return reader{}, err
		}
	}
}
