package hub

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Tokens stores the records of the tokens of the API, as texts that servers make and check.
type Tokens struct{ c *queue.Conn }

// NewTokens returns the tokens behind a connection.
func NewTokens(c *queue.Conn) *Tokens { return &Tokens{c} }

// AddToken stores the record of a new token. The error wraps queue.ErrTokenName if its id is taken.
func (q *Tokens) AddToken(ctx context.Context, id, record string) error {
	added, err := q.c.Redis().HSetNX(ctx, keys.Hub("tokens", ""), id, record).Result()
	if err == nil && !added {
		return fmt.Errorf("token %s: %w", id, queue.ErrTokenName)
	}
	return q.c.Say("token", err)
}

// TokenRecord returns the record of a token. The error wraps queue.ErrNotFound if there is none.
func (q *Tokens) TokenRecord(ctx context.Context, id string) (string, error) {
	text, err := q.c.Redis().HGet(ctx, keys.Hub("tokens", ""), id).Result()
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("token: %w", queue.ErrNotFound)
	}
	return text, q.c.Say("token", err)
}

// TokenRecords returns all records by id. Ids and records are as Redis has them: any text.
func (q *Tokens) TokenRecords(ctx context.Context) (map[string]string, error) {
	all, err := q.c.Redis().HGetAll(ctx, keys.Hub("tokens", "")).Result()
	return all, q.c.Say("token", err)
}

// DropToken removes the record of a token.
func (q *Tokens) DropToken(ctx context.Context, id string) error {
	err := q.c.Redis().HDel(ctx, keys.Hub("tokens", ""), id).Err()
	if err == nil {
		err = q.c.Redis().HDel(ctx, keys.Hub("uses", ""), id).Err()
	}
	return q.c.Say("token", err)
}

// NoteTokenUse stores when a token was used last.
func (q *Tokens) NoteTokenUse(ctx context.Context, id string, at time.Time) error {
	return q.c.Say("token", q.c.Redis().HSet(ctx, keys.Hub("uses", ""), id,
		strconv.FormatInt(int64(jobs.MicrosOf(at)), 10)).Err())
}

// TokenUses returns when each token was used last. A time that cannot be read is left out.
func (q *Tokens) TokenUses(ctx context.Context) (map[string]time.Time, error) {
	all, err := q.c.Redis().HGetAll(ctx, keys.Hub("uses", "")).Result()
	out := make(map[string]time.Time, len(all))
	for id, text := range all {
		if micros, err := strconv.ParseInt(text, 10, 64); err == nil {
			out[id] = jobs.Micros(micros).Time()
		}
	}
	return out, q.c.Say("token", err)
}
