package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/keys"
)

// trust checks every server that keeps the queue, or may keep it after a
// failover: nothing may be evicted, and an append-only file must be written.
func (q *Conn) trust(ctx context.Context) error {
	if q.cfg.Embedded {
		q.durable = "in memory only: gone when this Redis ends"
		return q.Ping(ctx)
	}
	var mu sync.Mutex
	var wrong, lacks []string
	forgets := false
	look := func(ctx context.Context, c *redis.Client, where string) error {
		list, forgetful, err := inspect(ctx, c)
		if err != nil {
			return err
		}
		blind, err := q.cfg.replays(ctx, c)
		if err != nil {
			return err
		}
		missing, err := q.cfg.lacks(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		for _, mistake := range append(list, blind...) {
			wrong = append(wrong, where+mistake)
		}
		for _, line := range missing {
			lacks = append(lacks, where+line)
		}
		forgets = forgets || forgetful
		return err
	}
	if err := q.eachServer(ctx, look); err != nil {
		return q.Say("connect", err)
	}
	q.durable = "append-only file"
	if forgets {
		q.durable = "no append-only file: a restart forgets"
	}
	if n := q.cfg.Durable; n > 0 {
		q.durable += ", and " + strconv.Itoa(n) + " replicas before anything is accepted or taken"
	}
	if len(wrong) > 0 && !q.cfg.Unsafe {
		slices.Sort(wrong)
		return fmt.Errorf("redis %s: %w: %s (or accept it with --unsafe-redis)",
			q.cfg.Where(), ErrRefused, strings.Join(wrong, "; "))
	}
	if err := q.cfg.permitted(lacks); err != nil {
		return err
	}
	return q.loadLibraries(ctx)
}

// loadLibraries loads what nodes call, for a server, into each Redis that may be written to.
// If other code stands there, Tend says so and puts it right.
func (q *Conn) loadLibraries(ctx context.Context) error {
	if q.cfg.Role != keys.RoleServer {
		return nil
	}
	load := func(ctx context.Context, c *redis.Client) error { return q.functions.load(ctx, c, false) }
	switch rdb := q.rdb.(type) {
	case *redis.ClusterClient:
		return rdb.ForEachMaster(ctx, load)
	case *redis.Client:
		return load(ctx, rdb)
	}
	return nil
}

// inspect says what is wrong with one server.
func inspect(ctx context.Context, c *redis.Client) (wrong []string, forgets bool, err error) {
	info, err := c.Info(ctx, "memory", "persistence").Result()
	if err != nil {
		return nil, false, err
	}
	if p := infoField(info, "maxmemory_policy"); p != "noeviction" {
		wrong = append(wrong, fmt.Sprintf("maxmemory-policy is %s: set noeviction, or jobs vanish", p))
	}
	if infoField(info, "aof_enabled") != "1" {
		forgets = true
		wrong = append(wrong, "appendonly is off: set it to yes, or a restart forgets the queue")
	}
	return wrong, forgets, nil
}

// forgetfulDefault is what is wrong with a server that could not read its append-only file again.
const forgetfulDefault = "the user default may not do everything: Redis reads its " +
	"append-only file with the rights of that user, and a restart would forget what scripts " +
	"wrote; give it the rights and leave it off: ACL SETUSER default ~* &* +@all, and ACL SAVE"

// replays says what keeps a server from reading its append-only file again: it does that with the
// rights of the user default. Nothing is wrong where nobody may ask for them, as under the rules
// of an earlier version.
func (c Config) replays(ctx context.Context, rdb *redis.Client) (wrong []string, err error) {
	if c.Role != keys.RoleServer {
		return nil, nil
	}
	said, err := rdb.Do(ctx, "acl", "dryrun", "default", "hset", keys.Zone("x", "zone", ""), "a",
		"b").Text()
	switch {
	case err != nil && redisSays(err):
		return nil, nil
	case err != nil || said == "OK":
		return nil, err
	}
	return []string{forgetfulDefault}, nil
}

// eachServer calls f for each server that is there. One that is down is no reason
// not to start, as long as the queue can be reached.
func (q *Conn) eachServer(ctx context.Context,
	f func(ctx context.Context, c *redis.Client, where string) error) error {
	switch rdb := q.rdb.(type) {
	case *redis.ClusterClient:
		// It is asked first, because ForEach is silent about a cluster that is not there.
		if _, _, err := q.At(ctx, keys.HubZone); err != nil {
			return err
		}
		return rdb.ForEachShard(ctx, func(ctx context.Context, c *redis.Client) error {
			where := c.Options().Addr + ": "
			if err := f(ctx, c, where); err != nil && redisSays(err) {
				return fmt.Errorf("%s%w", where, err)
			}
			return nil
		})
	case *redis.Client:
		if err := f(ctx, rdb, ""); err != nil || q.cfg.Sentinel.Master == "" {
			return err
		}
		return q.cfg.eachReplica(ctx, rdb, f)
	}
	return nil
}

// eachReplica calls f for the replicas that the server of a Sentinel has now.
func (c Config) eachReplica(ctx context.Context, rdb *redis.Client,
	f func(ctx context.Context, c *redis.Client, where string) error) error {
	info, err := rdb.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	for _, addr := range replicas(info) {
		o := *rdb.Options()
		o.Addr, o.OnConnect = addr, nil
		if o.Dialer, err = c.dialer(); err != nil {
			return err
		}
		replica := redis.NewClient(&o)
		err := f(ctx, replica, addr+": ")
		replica.Close()
		if err != nil && redisSays(err) {
			return fmt.Errorf("%s: %w", addr, err)
		}
	}
	return nil
}

// redisSays tells whether an error is the answer of a server: then it is there.
func redisSays(err error) bool {
	var said redis.Error
	return errors.As(err, &said)
}

// replicas reads the addresses out of INFO replication.
func replicas(info string) (addrs []string) {
	for i := 0; ; i++ {
		line := infoField(info, "slave"+strconv.Itoa(i))
		if line == "" {
			return addrs
		}
		fields := map[string]string{}
		for part := range strings.SplitSeq(line, ",") {
			key, value, _ := strings.Cut(part, "=")
			fields[key] = value
		}
		if fields["state"] == "online" {
			addrs = append(addrs, fields["ip"]+":"+fields["port"])
		}
	}
}

// Durable says in words how far the servers remember what was accepted.
func (q *Conn) Durable() string { return q.durable }

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
