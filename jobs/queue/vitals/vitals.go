// Package vitals reads how the servers of Redis that hold the queue are set, and how they are. It
// changes nothing in them.
//
// Floor 4: may import the connection and all below it.
package vitals

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
)

// Vitals describes one server of Redis, with the words of its INFO.
type Vitals struct {
	Where   string
	User    string // of this connection; empty: none, which is the user default
	Version string
	Role    string // master or slave

	Policy      string // maxmemory-policy
	Used, Most  int64  // bytes; Most is 0 without a maxmemory
	Appends     bool   // it writes an append-only file
	Append      string // the last write to that file: ok or err
	Rewrite     string // the last rewrite of that file
	Save        string // the last snapshot
	Clock       time.Time
	Here, Apart time.Duration // Apart is the clock of Redis minus the own; Here is its uncertainty
}

// Read asks each server that serves the queue and can be reached. OpenLazy makes a connection that
// suffices: a server that Open refuses can be read, too.
func Read(ctx context.Context, q *queue.Conn) ([]Vitals, error) {
	var mu sync.Mutex
	var list []Vitals
	look := func(ctx context.Context, c *redis.Client) error {
		v, err := read(ctx, c)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, v)
		return nil
	}
	var err error
	switch rdb := q.Redis().(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachShard(ctx, look)
	case *redis.Client:
		err = look(ctx, rdb)
	}
	slices.SortFunc(list, func(a, b Vitals) int { return strings.Compare(a.Where, b.Where) })
	return list, q.Say("look", err)
}

func read(ctx context.Context, c *redis.Client) (v Vitals, err error) {
	text, err := c.Info(ctx, "server", "memory", "persistence", "replication").Result()
	if err != nil {
		return v, err
	}
	v = parse(text)
	v.Where, v.User = c.Options().Addr, c.Options().Username
	// The connection exists by now, so that the way to Redis and back is short.
	began := time.Now()
	v.Clock, err = c.Time(ctx).Result()
	took := time.Since(began)
	v.Here = took / 2
	v.Apart = v.Clock.Sub(began.Add(v.Here))
	return v, err
}

// fieldsOf reads the answer of INFO.
func fieldsOf(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}

func parse(info string) Vitals {
	fields := fieldsOf(info)
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(fields[name], 10, 64) // a missing one is 0
		return n
	}
	return Vitals{Version: fields["redis_version"], Role: fields["role"],
		Policy: fields["maxmemory_policy"], Used: number("used_memory"), Most: number("maxmemory"),
		Appends: fields["aof_enabled"] == "1", Append: fields["aof_last_write_status"],
		Rewrite: fields["aof_last_bgrewrite_status"], Save: fields["rdb_last_bgsave_status"]}
}
