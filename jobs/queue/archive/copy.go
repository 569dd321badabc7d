package archive

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// The rules let a user of Redis copy, or restore. No role has these rights.
const (
	// ReadRules are for a backup.
	ReadRules = "~" + keys.Prefix + "* -@all +cluster|slots +command +ping +scan +dump +pttl +eval " +
		"+evalsha +hgetall +hget +hmget +zrange +smembers +get +info +time"
	// RestoreRules are for a restore, beside the rules of a server.
	RestoreRules = "+restore +scan +unlink"
)

// Archive is all that an installation has in Redis.
type Archive struct{ c *queue.Conn }

// New returns the archive behind a connection.
func New(c *queue.Conn) Archive { return Archive{c} }

// A Record is a key of Redis with its value.
type Record struct {
	Key    string
	TTL    time.Duration // 0: it does not expire
	Dump   []byte        // as DUMP gives it; nil: Fields
	Fields []string      // of a hash that a restore must change: names and values in turn
}

// Copied says what a copy has.
type Copied struct {
	Keys  int
	Zones []string
	Pause time.Duration // Redis did nothing else for at most so long
}

// page is the number of keys that one call of SCAN looks at, and batch of those that are read at
// once; of large ones fewer are.
const (
	page       = 1000
	batch      = 256
	batchLarge = 8
)

// Read passes a copy to put.
func (a Archive) Read(ctx context.Context, put func(Record) error) (Copied, error) {
	names, err := a.names(ctx)
	if err != nil {
		return Copied{}, err
	}
	hub := names[keys.HubZone]
	delete(names, keys.HubZone)
	r := &copier{c: a.c, put: put, done: map[string]bool{}}
	r.Zones = slices.Sorted(maps.Keys(names))
	// A task whose commit had begun before its zones are read is complete there.
	for _, kind := range []string{"commits", "signing"} {
		if err := r.loose(ctx, keys.HubZone, []string{keys.Hub(kind, "")}, batch); err != nil {
			return r.Copied, err
		}
	}
	for _, zone := range r.Zones {
		if err := r.zone(ctx, zone, names[zone]); err != nil {
			return r.Copied, fmt.Errorf("zone %s: %w", zone, err)
		}
	}
	if err := r.hub(ctx, hub); err != nil {
		return r.Copied, fmt.Errorf("the hub: %w", err)
	}
	return r.Copied, nil
}

// names returns all keys by zone.
func (a Archive) names(ctx context.Context) (map[string][]string, error) {
	var mu sync.Mutex // nodes of a cluster are asked at the same time
	out := map[string][]string{}
	one := func(ctx context.Context, c *redis.Client) error {
		for cursor := uint64(0); ; {
			list, next, err := c.Scan(ctx, cursor, keys.Prefix+"{*", page).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			for _, key := range list {
				if zone, _, ok := strings.Cut(strings.TrimPrefix(key, keys.Prefix+"{"), "}:"); ok {
					out[zone] = append(out[zone], key)
				}
			}
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	var err error
	if cluster, is := a.c.Redis().(*redis.ClusterClient); is {
		err = cluster.ForEachMaster(ctx, one)
	} else {
		var c *redis.Client
		if c, _, err = a.c.At(ctx, keys.HubZone); err == nil {
			err = one(ctx, c)
		}
	}
	return out, a.c.Say("list the keys", err)
}

// copier copies keys, each once.
type copier struct {
	Copied
	c    *queue.Conn
	put  func(Record) error
	done map[string]bool
}

// passing reports whether a key is of no use in a copy: it is of a process, which has ended by the
// time of a restore, or says on which servers zones are, which is another matter after one.
func passing(kind string) bool {
	for _, of := range []string{"hold:", "overload", "leader:", "node:", "nodes", "staff", "apart"} {
		if kind == of || strings.HasSuffix(of, ":") && strings.HasPrefix(kind, of) {
			return true
		}
	}
	return false
}

// zone copies a zone: first what does not change with its jobs, then the rest in one call.
func (r *copier) zone(ctx context.Context, zone string, names []string) error {
	var loose, core, tasks []string
	for _, key := range names {
		switch _, kind, _ := strings.Cut(key, "}:"); {
		case passing(kind) || kind == "zone":
		case strings.HasPrefix(kind, "task:"):
			tasks = append(tasks, key)
		case kind == "events" || strings.HasPrefix(kind, "out:") || strings.HasPrefix(kind, "hosts:") ||
			strings.HasPrefix(kind, "traits:"):
			loose = append(loose, key)
		default:
			core = append(core, key)
		}
	}
	ended, open, err := r.ended(ctx, zone, tasks)
	if err != nil {
		return err
	}
	if err := r.loose(ctx, zone, append(loose, ended...), batch); err != nil {
		return err
	}
	return r.core(ctx, zone, append(core, open...))
}

// ended parts tasks into those that have ended, which begin no more, and the others.
func (r *copier) ended(ctx context.Context, zone string, tasks []string) (ended, open []string,
	err error) {
	c, _, err := r.c.At(ctx, zone)
	if err != nil {
		return nil, nil, err
	}
	for some := range slices.Chunk(tasks, batch) {
		found := make([]*redis.SliceCmd, len(some))
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, key := range some {
				found[i] = p.HMGet(ctx, key, "total", "done", "committed")
			}
			return nil
		})
		if err != nil {
			return nil, nil, r.c.Say("tasks", err)
		}
		for i, key := range some {
			v := found[i].Val()
			total := codec.TextOf(v, 0)
			if total != "" && total == codec.TextOf(v, 1) && codec.TextOf(v, 2) != "" {
				ended = append(ended, key)
			} else {
				open = append(open, key)
			}
		}
	}
	return ended, open, nil
}

// loose copies keys one after the other.
func (r *copier) loose(ctx context.Context, zone string, list []string, most int) error {
	c, _, err := r.c.At(ctx, zone)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(list, most) {
		dumps, ttls := make([]*redis.StringCmd, len(some)), make([]*redis.DurationCmd, len(some))
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, key := range some {
				dumps[i], ttls[i] = p.Dump(ctx, key), p.PTTL(ctx, key)
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return r.c.Say("copy", err)
		}
		for i, key := range some {
			text, err := dumps[i].Bytes()
			if errors.Is(err, redis.Nil) {
				continue // it has expired meanwhile
			}
			if err != nil {
				return r.c.Say("copy", err)
			}
			if err := r.add(Record{Key: key, TTL: max(ttls[i].Val(), 0), Dump: text}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *copier) add(record Record) error {
	if r.done[record.Key] {
		return nil
	}
	r.done[record.Key] = true
	r.Keys++
	return r.put(record)
}

//go:embed copy.lua
var copyText string

var copyScript = redis.NewScript(copyText)

// core copies keys in one call, with those of open tasks that were submitted meanwhile. The zone
// itself and the halt of the hub come with their fields.
func (r *copier) core(ctx context.Context, zone string, list []string) error {
	c, _, err := r.c.At(ctx, zone)
	if err != nil {
		return err
	}
	table, first := keys.ZoneKeys, keys.Zone(zone, "zone", "")
	if zone == keys.HubZone {
		table, first = keys.HubKeys, keys.Hub("halt", "")
	}
	args := make([]any, 0, len(list)+len(table))
	for _, key := range list {
		args = append(args, key)
	}
	for _, k := range table { // one may have come since the keys were listed
		key := keys.Zone(zone, k.Name, "")
		if !strings.Contains(k.Name, "<") && !passing(k.Name) && k.Type != "channel" && key != first &&
			k.Type != "stream" {
			args = append(args, key)
		}
	}
	from := time.Now()
	v, err := copyScript.Run(ctx, c, []string{first}, args...).Slice()
	if err != nil {
		return r.c.Say("copy", err)
	}
	r.Pause = max(r.Pause, time.Since(from))
	reader := codec.Reader{Left: v}
	fields := reader.Texts()
	if len(fields) > 0 {
		if err := r.add(Record{Key: first, Fields: fields}); err != nil {
			return err
		}
	}
	for len(reader.Left) > 0 {
		key, ttl, text := reader.Text(), reader.Int(), reader.Text()
		if reader.Err != nil {
			return fmt.Errorf("copy: %w", reader.Err)
		}
		record := Record{Key: key, TTL: time.Duration(max(ttl, 0)) * time.Millisecond, Dump: []byte(text)}
		if err := r.add(record); err != nil {
			return err
		}
	}
	return reader.Err
}

// hub copies what belongs to no zone. It comes last, so it knows all tasks of the zones.
func (r *copier) hub(ctx context.Context, names []string) error {
	var large, loose, core []string
	for _, key := range names {
		switch _, kind, _ := strings.Cut(key, "}:"); {
		case passing(kind) || kind == "halt" || kind == "sessions":
		case strings.HasPrefix(kind, "blob:"):
			large = append(large, key)
		case kind == "events" || strings.HasPrefix(kind, "task:") || strings.HasPrefix(kind, "chain:") ||
			strings.HasPrefix(kind, "key:") || strings.HasPrefix(kind, "retried:") ||
			strings.HasPrefix(kind, "event:") || strings.HasPrefix(kind, "seen:"):
			loose = append(loose, key)
		default:
			core = append(core, key)
		}
	}
	if err := r.core(ctx, keys.HubZone, core); err != nil {
		return err
	}
	// Tasks and chains may have come since the keys were listed.
	for kind, ask := range map[string]func() ([]string, error){
		"task:": func() ([]string, error) {
			return r.c.Redis().ZRange(ctx, keys.Hub("tasks", ""), 0, -1).Result()
		},
		"chain:": func() ([]string, error) {
			return r.c.Redis().SMembers(ctx, keys.Hub("chains", "")).Result()
		},
	} {
		ids, err := ask()
		if err != nil {
			return r.c.Say("tasks", err)
		}
		for _, id := range ids {
			loose = append(loose, keys.Hub(kind, id))
		}
	}
	slices.Sort(loose)
	if err := r.loose(ctx, keys.HubZone, slices.Compact(loose), batch); err != nil {
		return err
	}
	return r.loose(ctx, keys.HubZone, large, batchLarge)
}
