package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// factsMark is the field of the hash facts that changes with every other one. No host
// has such a name.
const factsMark = "~"

// SaveFacts keeps what hosts said of themselves, where it is newer than what is kept. It
// returns how many that were.
func (q *Queue) SaveFacts(ctx context.Context, list []jobs.HostFacts) (saved int, err error) {
	key := hubKey("facts", "")
	for chunk := range slices.Chunk(list, chunkMax) {
		names := make([]string, len(chunk))
		for i, f := range chunk {
			names[i] = f.Host
		}
		old, err := q.rdb.HMGet(ctx, key, names...).Result()
		if err != nil {
			return saved, q.say("facts", err)
		}
		var pairs []any
		for i, f := range chunk {
			text, there := old[i].(string)
			if there {
				// One that cannot be read is replaced.
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
		if err := q.rdb.HSet(ctx, key, pairs...).Err(); err != nil {
			return saved, q.say("facts", err)
		}
		saved += len(pairs)/2 - 1
	}
	return saved, nil
}

// FactsMark changes whenever facts do; empty: there are none.
func (q *Queue) FactsMark(ctx context.Context) (string, error) {
	mark, err := q.rdb.HGet(ctx, hubKey("facts", ""), factsMark).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return mark, q.say("facts", err)
}

// Facts are those of all hosts, and their mark.
func (q *Queue) Facts(ctx context.Context) (list map[string]jobs.HostFacts, mark string,
	err error) {
	all, err := q.rdb.HGetAll(ctx, hubKey("facts", "")).Result()
	if err != nil {
		return nil, "", q.say("facts", err)
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
		list[host] = f
	}
	return list, all[factsMark], nil
}

// ForgetFacts removes those of some hosts.
func (q *Queue) ForgetFacts(ctx context.Context, hosts []string) error {
	if len(hosts) == 0 {
		return nil
	}
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HDel(ctx, hubKey("facts", ""), hosts...)
		p.HSet(ctx, hubKey("facts", ""), factsMark, rand.Text())
		return nil
	})
	return q.say("facts", err)
}
