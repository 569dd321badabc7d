package hub

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Facts stores the facts that hosts reported about themselves.
type Facts struct{ c *queue.Conn }

// NewFacts returns the facts behind a connection.
func NewFacts(c *queue.Conn) *Facts { return &Facts{c} }

// factsMark is the field of the hash facts that changes with every other field. No host has such a
// name.
const factsMark = "~"

// SaveFacts stores facts that are newer than the stored ones. It returns how many it stored.
func (q *Facts) SaveFacts(ctx context.Context, list []jobs.HostFacts) (saved int, err error) {
	key := keys.Hub("facts", "")
	for chunk := range slices.Chunk(list, codec.ChunkMax) {
		names := make([]string, len(chunk))
		for i, f := range chunk {
			names[i] = f.Host
		}
		old, err := q.c.Redis().HMGet(ctx, key, names...).Result()
		if err != nil {
			return saved, q.c.Say("facts", err)
		}
		var pairs []any
		for i, f := range chunk {
			text, there := old[i].(string)
			if there {
				// Stored facts that cannot be read are replaced.
				var had jobs.HostFacts
				if json.Unmarshal([]byte(text), &had) == nil && !had.At.Before(f.At.Time) {
					continue
				}
			}
			fresh, err := json.Marshal(f)
			if err != nil {
				return saved, err
			}
			pairs = append(pairs, f.Host, fresh)
		}
		if len(pairs) == 0 {
			continue
		}
		pairs = append(pairs, factsMark, rand.Text())
		if err := q.c.Redis().HSet(ctx, key, pairs...).Err(); err != nil {
			return saved, q.c.Say("facts", err)
		}
		saved += len(pairs)/2 - 1
	}
	return saved, nil
}

// FactsMark returns the mark that changes whenever facts do; empty: there are none.
func (q *Facts) FactsMark(ctx context.Context) (string, error) {
	mark, err := q.c.Redis().HGet(ctx, keys.Hub("facts", ""), factsMark).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return mark, q.c.Say("facts", err)
}

// Facts returns the facts of all hosts, and their mark.
func (q *Facts) Facts(ctx context.Context) (list map[string]jobs.HostFacts, mark string,
	err error) {
	all, err := q.c.Redis().HGetAll(ctx, keys.Hub("facts", "")).Result()
	if err != nil {
		return nil, "", q.c.Say("facts", err)
	}
	list = make(map[string]jobs.HostFacts, len(all))
	for host, text := range all {
		if host == factsMark {
			continue
		}
		var f jobs.HostFacts
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return nil, "", fmt.Errorf("facts of host %s: %w", host, err)
		}
		if len(f.Facts) > 0 { // else somebody has cleared them: none that are older come back
			list[host] = f
		}
	}
	return list, all[factsMark], nil
}

// ForgetFacts removes the facts of some hosts.
func (q *Facts) ForgetFacts(ctx context.Context, hosts []string) error {
	if len(hosts) == 0 {
		return nil
	}
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HDel(ctx, keys.Hub("facts", ""), hosts...)
		p.HSet(ctx, keys.Hub("facts", ""), factsMark, rand.Text())
		return nil
	})
	return q.c.Say("facts", err)
}
