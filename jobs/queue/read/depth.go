package read

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Zones reads how many jobs wait in a zone, and the events of the zone.
type Zones struct{ c *queue.Conn }

// NewZones returns the zones behind a connection.
func NewZones(c *queue.Conn) *Zones { return &Zones{c} }

// Depth describes how many jobs wait in a zone, and how long.
type Depth struct {
	Zone    string    `json:"zone"`
	Queued  int64     `json:"queued"`  // never started
	Again   int64     `json:"again"`   // running, or waits for another attempt
	Due     int64     `json:"due"`     // of both: could run now
	Oldest  jobs.Time `json:"oldest"`  // due time of the first queued job, past or future
	Overdue float64   `json:"overdue"` // seconds since then; 0 if it is in the future
	Frozen  jobs.Time `json:"frozen"`  // nothing starts before this time; null: not frozen
	Why     string    `json:"why,omitempty"`
	Owes    bool      `json:"asks_history,omitempty"` // until history has answered
	Halted  string    `json:"halted,omitempty"`
	Paused  string    `json:"paused,omitempty"`
	jobs.Sharing
}

// Depth describes how many jobs wait in a zone, and how long.
func (q *Zones) Depth(ctx context.Context, zone string) (Depth, error) {
	d := Depth{Zone: zone}
	now, err := q.c.Now(ctx, zone)
	if err != nil {
		return d, err
	}
	until := jobs.MicrosOf(now).String()
	waiting, again := keys.Zone(zone, "queue", ""), keys.Zone(zone, "again", "")
	var cards [4]*redis.IntCmd
	var first *redis.ZSliceCmd
	var state *redis.SliceCmd
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		cards[0], cards[1] = p.ZCard(ctx, waiting), p.ZCard(ctx, again)
		cards[2], cards[3] = p.ZCount(ctx, waiting, "-inf", until), p.ZCount(ctx, again, "-inf", until)
		first = p.ZRangeWithScores(ctx, waiting, 0, oldestOf-1)
		state = p.HMGet(ctx, keys.Zone(zone, "zone", ""), "frozen", "why", "halted",
			"paused", "owed")
		return nil
	})
	if err != nil {
		return d, q.c.Say("queue", err)
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
	frozen, _ := jobs.ParseMicros(codec.TextOf(known, 0))
	if d.Owes = codec.TextOf(known, 4) != ""; d.Owes {
		frozen = max(frozen, jobs.MicrosOf(now.Add(time.Second))) // the end of the freeze is not known
	}
	if frozen.Time().After(now) {
		d.Frozen = jobs.TimeOf(frozen)
		d.Why = codec.WhyShut(codec.TextOf(known, 1), codec.TextOf(known, 4))
	}
	d.Halted, d.Paused = codec.TextOf(known, 2), codec.TextOf(known, 3)
	return d, nil
}
