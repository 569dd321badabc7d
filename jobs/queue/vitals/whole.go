package vitals

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
)

// settingNames are the settings of Redis that a fault may hang on. None of them can hold a secret.
var settingNames = []string{"maxmemory", "maxmemory-policy", "maxmemory-samples", "appendonly",
	"appendfsync", "no-appendfsync-on-rewrite", "aof-use-rdb-preamble", "save", "maxclients",
	"timeout", "tcp-keepalive", "tcp-backlog", "hz", "io-threads", "busy-reply-threshold",
	"min-replicas-to-write", "min-replicas-max-lag", "repl-backlog-size", "cluster-enabled",
	"client-output-buffer-limit", "proto-max-bulk-len", "lazyfree-lazy-expire", "slowlog-max-len"}

// Told holds the words of one server of Redis about itself.
type Told struct {
	Where    string            `json:"where"`
	Info     map[string]string `json:"info"`               // all fields of INFO
	Settings map[string]string `json:"settings,omitempty"` // those that a fault may hang on
	Refused  string            `json:"refused,omitempty"`  // why it tells no settings
}

// Whole asks each server that serves the queue and can be reached for all that INFO says, and for
// settings, which the users of roles may not read: then Refused says so. The error tells of servers
// that did not answer, beside those that did.
func Whole(ctx context.Context, q *queue.Conn) ([]Told, error) {
	var mu sync.Mutex
	var list []Told
	look := func(ctx context.Context, c *redis.Client) error {
		text, err := c.Info(ctx, "everything").Result()
		if err != nil {
			return err
		}
		t := Told{Where: c.Options().Addr, Info: fieldsOf(text)}
		if user := cmp.Or(c.Options().Username, q.Config().Login.Username); user != "" &&
			user != "default" {
			// A try would stand in the log of Redis, where people look for attackers.
			t.Refused = "no user of muster may read settings, and this is " + user
		} else if t.Settings, err = settings(ctx, c); err != nil {
			t.Refused = err.Error()
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, t)
		return nil
	}
	var err error
	switch rdb := q.Redis().(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachShard(ctx, look)
	case *redis.Client:
		err = look(ctx, rdb)
	}
	slices.SortFunc(list, func(a, b Told) int { return cmp.Compare(a.Where, b.Where) })
	return list, q.Say("look", err)
}

// settings asks for each setting by itself: an older server does not know all of them.
func settings(ctx context.Context, c *redis.Client) (map[string]string, error) {
	asked := make([]*redis.MapStringStringCmd, len(settingNames))
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range settingNames {
			asked[i] = p.ConfigGet(ctx, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i, name := range settingNames {
		if value, known := asked[i].Val()[name]; known {
			out[name] = value
		}
	}
	return out, nil
}
