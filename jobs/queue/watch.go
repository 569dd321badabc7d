package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// Wake gives a hint whenever something became due in one of the zones. Hints
// may be lost; the poll is the truth. The second result ends it.
func (q *Queue) Wake(ctx context.Context, zones []string) (<-chan struct{}, func(), error) {
	channels := make([]string, len(zones))
	for i, z := range zones {
		channels[i] = zoneKey(z, "wake", "")
	}
	// By default go-redis pings every 3 s; an idle node should cost less.
	ps := q.rdb.Subscribe(ctx, channels...)
	if _, err := ps.Receive(ctx); err != nil {
		return nil, nil, errors.Join(q.say("subscribe", err), ps.Close())
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

// Events reads what happened in a zone after the entry with the given id ("" is
// the beginning, "$" is now), at most limit entries. One call of a script makes
// one entry, so several happenings can have its id. If there is none it waits
// so long for one; an empty answer is no error. last is where to go on.
func (q *Queue) Events(ctx context.Context, zone, after string, limit int,
	wait time.Duration) (list []jobs.Happening, last string, err error) {
	if after == "" {
		after = "0"
	}
	key := zoneKey(zone, "events", "")
	if after == "$" {
		// A fixed place, so that nothing is missed between two calls.
		newest, err := q.rdb.XRevRangeN(ctx, key, "+", "-", 1).Result()
		if err != nil {
			return nil, after, q.say("events", err)
		}
		after = "0"
		if len(newest) > 0 {
			after = newest[0].ID
		}
	}
	block := wait
	if block <= 0 {
		block = -1
	}
	v, err := q.rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{key, after},
		Count: int64(limit), Block: block}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, after, nil
	}
	if err != nil {
		return nil, after, q.say("events", err)
	}
	for _, m := range v[0].Messages {
		list = append(list, happenings(zone, m)...)
		after = m.ID
	}
	return list, after, nil
}

// happenings reads an entry of the stream: all that one call did, a line each.
func happenings(zone string, m redis.XMessage) []jobs.Happening {
	text, _ := m.Values["e"].(string)
	ms, _, _ := strings.Cut(m.ID, "-")
	n, _ := strconv.ParseInt(ms, 10, 64)
	var out []jobs.Happening
	for line := range strings.SplitSeq(text, "\n") {
		parts := strings.SplitN(line, " ", 3)
		if len(parts) < 3 {
			continue
		}
		h := jobs.Happening{ID: m.ID, Zone: zone, At: jobs.TimeOf(jobs.Micros(n * 1000)),
			Event: parts[0], Object: parts[1]}
		if parts[2] != "" && json.Unmarshal([]byte(parts[2]), &h.Detail) != nil {
			h.Detail = parts[2]
		}
		out = append(out, h)
	}
	return out
}

// Depth is what waits in a zone.
type Depth struct {
	Zone    string    `json:"zone"`
	Queued  int64     `json:"queued"`  // never started
	Again   int64     `json:"again"`   // running, or waits for another attempt
	Due     int64     `json:"due"`     // of both, could run now
	Oldest  jobs.Time `json:"oldest"`  // when the first of the queue is, or was to run
	Overdue float64   `json:"overdue"` // seconds since then; 0 if it is in the future
	Frozen  jobs.Time `json:"frozen"`  // nothing starts before; null: not frozen
	Why     string    `json:"why,omitempty"`
	Owes    bool      `json:"asks_history,omitempty"` // until history was asked, however long it takes
	Halted  string    `json:"halted,omitempty"`
	Paused  string    `json:"paused,omitempty"`
	jobs.Sharing
}

// Depth tells what waits in a zone.
func (q *Queue) Depth(ctx context.Context, zone string) (Depth, error) {
	d := Depth{Zone: zone}
	now, err := q.now(ctx, zone)
	if err != nil {
		return d, err
	}
	until := jobs.MicrosOf(now).String()
	waiting, again := zoneKey(zone, "queue", ""), zoneKey(zone, "again", "")
	var cards [4]*redis.IntCmd
	var first *redis.ZSliceCmd
	var state *redis.SliceCmd
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		cards[0], cards[1] = p.ZCard(ctx, waiting), p.ZCard(ctx, again)
		cards[2], cards[3] = p.ZCount(ctx, waiting, "-inf", until), p.ZCount(ctx, again, "-inf", until)
		first = p.ZRangeWithScores(ctx, waiting, 0, oldestOf-1)
		state = p.HMGet(ctx, zoneKey(zone, "zone", ""), "frozen", "why", "halted",
			"paused", "owed")
		return nil
	})
	if err != nil {
		return d, q.say("queue", err)
	}
	d.Queued, d.Again, d.Due = cards[0].Val(), cards[1].Val(), cards[2].Val()+cards[3].Val()
	if d.Sharing, err = q.sharing(ctx, zone, now); err != nil {
		return d, err
	}
	if d.Oldest, err = q.oldest(ctx, zone, first.Val()); err != nil {
		return d, err
	}
	if !d.Oldest.IsZero() {
		d.Overdue = max(now.Sub(d.Oldest.Time).Seconds(), 0)
	}
	known := state.Val()
	frozen, _ := jobs.ParseMicros(textOf(known, 0))
	if d.Owes = textOf(known, 4) != ""; d.Owes {
		frozen = max(frozen, jobs.MicrosOf(now.Add(time.Second))) // nobody knows how long it takes
	}
	if frozen.Time().After(now) {
		d.Frozen, d.Why = jobs.TimeOf(frozen), whyShut(textOf(known, 1), textOf(known, 4))
	}
	d.Halted, d.Paused = textOf(known, 2), textOf(known, 3)
	return d, nil
}

// Tend does what must happen in a zone also where no master lives: it sees lost
// jobs and expiries, goes on with commits that were left half way, and makes the zone
// stand as the last halt or pause, or its end, wants it, and nodes find the function of
// step; seldom it does what tendSeldom says. A duty calls it every 10 s.
func (q *Queue) Tend(ctx context.Context, zone string) error {
	if err := q.tendHalt(ctx, zone); err != nil {
		return err
	}
	errs := []error{q.tendLibrary(ctx, zone), q.tendPauses(ctx, zone)}
	if err := q.sweep(ctx, zone); err != nil {
		return err
	}
	return errors.Join(append(errs, q.tendSeldom(ctx, zone), q.tendCommits(ctx))...)
}

// sweep has a zone look at what is due, also where no master lives or nothing may start.
func (q *Queue) sweep(ctx context.Context, zone string) error {
	for call := (jobs.Step{}); ; {
		reply, err := q.Step(ctx, zone, call)
		switch {
		case err != nil:
			return err
		case reply.Status == jobs.StatusMore:
		case reply.Status == jobs.StatusHalted && reply.Next > 0:
			call.Request = reply.Next.String()
		default:
			return nil
		}
	}
}

// tendLibrary looks whether the nodes of a zone find the function of step, and the right one.
func (q *Queue) tendLibrary(ctx context.Context, zone string) error {
	c, addr, err := q.at(ctx, zone)
	if err != nil || q.cfg.Role != RoleServer || !q.functions.due(addr) {
		return err
	}
	return q.loadLibrary(ctx, c, true)
}

// cleanEvery is how many rounds pass between two looks at semaphores and open tasks.
const cleanEvery = 30

// tendSeldom frees groups and limits that are held by a job that has ended or does not
// exist, and goes on with resumes and cancels that were left half way. The script looks at
// the owner itself, so what is alive keeps what it has.
func (q *Queue) tendSeldom(ctx context.Context, zone string) error {
	if n, known := q.round(zone); !known || n%cleanEvery != 0 {
		return nil
	}
	// Who submitted while the inventory was changed may not have known its limits.
	err := q.amendInForce(ctx, zone)
	return errors.Join(q.freeSemaphores(ctx, zone), err, q.tendHalfway(ctx, zone))
}

// round counts the rounds in which a zone was tended, from 0 on. It is false for a zone that
// was never called.
func (q *Queue) round(zone string) (n int, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	z := q.zones[zone]
	if z == nil {
		return 0, false
	}
	z.tended++
	return z.tended - 1, true
}

// tendCommits goes on with the commits that somebody left half way.
func (q *Queue) tendCommits(ctx context.Context) error {
	ids, err := q.rdb.SMembers(ctx, hubKey("commits", "")).Result()
	if err != nil {
		return q.say("tend", err)
	}
	var errs []error // one that cannot be committed is not in the way of the others
	for _, id := range ids {
		zones, err := q.taskZones(ctx, jobs.TaskID(id))
		if err == nil {
			err = q.commitAll(ctx, jobs.TaskID(id), zones)
		}
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrCancelled) {
			err = q.say("tend", q.rdb.SRem(ctx, hubKey("commits", ""), id).Err())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("task %s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}
