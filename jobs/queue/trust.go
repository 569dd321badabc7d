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

	"muster/jobs/queue/codec"
	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

// trust checks every server that holds the queue, or may hold it after a failover: it must evict
// nothing and write an append-only file.
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
	if err := q.seats.All(ctx, q.cfg.Zones); err != nil {
		return q.Say("connect", err)
	}
	return q.loadLibraries(ctx)
}

// safe returns an error that wraps ErrRefused if the server of a zone may forget or evict.
func (c Config) safe(ctx context.Context, own *redis.Client) error {
	if c.Unsafe || c.Embedded {
		return nil
	}
	wrong, _, err := inspect(ctx, own)
	if err == nil && len(wrong) > 0 {
		err = &hooks.AwayError{Server: own.Options().Addr,
			Err: fmt.Errorf("%w: %s", ErrRefused, strings.Join(wrong, "; "))}
	}
	return err
}

// loadLibraries loads, for a server, the function that nodes call into each Redis that accepts
// writes. If other code has its name, Tend reports that and replaces it.
func (q *Conn) loadLibraries(ctx context.Context) error {
	if q.cfg.Role != keys.RoleServer {
		return nil
	}
	load := func(ctx context.Context, c *redis.Client) error {
		if err := q.functions.load(ctx, c, false); !Away(err) {
			return err
		}
		return nil // TendLibrary loads it when the server is back
	}
	switch rdb := q.rdb.(type) {
	case *redis.ClusterClient:
		return rdb.ForEachMaster(ctx, load)
	case *redis.Client:
		return load(ctx, rdb)
	}
	return nil
}

// inspect returns the mistakes in the settings of one server.
func inspect(ctx context.Context, c *redis.Client) (wrong []string, forgets bool, err error) {
	info, err := c.Info(ctx, "memory", "persistence").Result()
	if err != nil {
		return nil, false, err
	}
	wrong, forgets = codec.Forgetful(info)
	return wrong, forgets, nil
}

// forgetfulDefault explains the mistake of a server that could not read its append-only file again.
const forgetfulDefault = "the user default may not do everything: Redis reads its " +
	"append-only file with the rights of that user, and a restart would forget what scripts " +
	"wrote; give it the rights and leave it off: ACL SETUSER default ~* &* +@all, and ACL SAVE"

// replays explains why a server could not read its append-only file again, which it does with the
// rights of the user default. It finds no mistake if it may not ask for those rights, as under the
// ACL rules of an earlier version.
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

// eachServer calls f for each server that can be reached. muster starts even if one is down, as
// long as it can reach the queue.
func (q *Conn) eachServer(ctx context.Context,
	f func(ctx context.Context, c *redis.Client, where string) error) error {
	switch rdb := q.rdb.(type) {
	case *redis.ClusterClient:
		// At comes first, because ForEachShard returns no error for a cluster that is down.
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

// eachReplica calls f for the present replicas of the server that the Sentinels name.
func (c Config) eachReplica(ctx context.Context, rdb *redis.Client,
	f func(ctx context.Context, c *redis.Client, where string) error) error {
	info, err := rdb.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	for _, addr := range codec.Replicas(info) {
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

// redisSays reports whether an error is the answer of a server: then the server is up.
func redisSays(err error) bool {
	var said redis.Error
	return errors.As(err, &said)
}

// Durable describes in words how well the servers preserve what they accepted.
func (q *Conn) Durable() string { return q.durable }
