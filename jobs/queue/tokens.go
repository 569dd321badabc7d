package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/fleet"
	"muster/jobs"
)

// Token is what is kept of a token of the API; the token itself is not.
type Token struct {
	Name    string    `json:"name"`
	Created jobs.Time `json:"created"`

	// Wrong says why the record cannot be read; empty: it can. Such a token proves nobody, and
	// has a name that RemoveToken knows.
	Wrong string `json:"wrong,omitempty"`
}

// ErrTokenName is wrapped when a token of this name is there already.
var ErrTokenName = errors.New("there is a token of this name")

func hashToken(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// unreadable begins the names of tokens whose record cannot be read.
const unreadable = "unreadable-"

// readToken reads the record of a token by its hash.
func readToken(hash, text string) Token {
	var t Token
	err := json.Unmarshal([]byte(text), &t)
	if err == nil {
		err = fleet.CheckName(t.Name)
	}
	t.Wrong = ""
	if err == nil {
		return t
	}
	// The hash may be anything, too, if somebody has written there by hand.
	sum := hashToken(hash)
	return Token{Name: unreadable + sum[:12], Wrong: "its record in Redis cannot be read"}
}

// CreateToken keeps the hash of a token under the name of its bearer.
func (q *Queue) CreateToken(ctx context.Context, name, secret string) error {
	all, err := q.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Name == name {
			return fmt.Errorf("token %s: %w", name, ErrTokenName)
		}
	}
	now, err := q.now(ctx, HubZone)
	if err != nil {
		return err
	}
	text, err := json.Marshal(Token{Name: name, Created: jobs.Time{Time: now}})
	if err != nil {
		return err
	}
	return q.say("token", q.rdb.HSet(ctx, hubKey("tokens", ""), hashToken(secret), text).Err())
}

// FindToken tells whose token it is; ErrNotFound if it is nobody's, or nobody can say whose.
func (q *Queue) FindToken(ctx context.Context, secret string) (Token, error) {
	hash := hashToken(secret)
	text, err := q.rdb.HGet(ctx, hubKey("tokens", ""), hash).Result()
	if errors.Is(err, redis.Nil) {
		return Token{}, fmt.Errorf("token: %w", ErrNotFound)
	}
	if err != nil {
		return Token{}, q.say("token", err)
	}
	t := readToken(hash, text)
	if t.Wrong != "" {
		return Token{}, fmt.Errorf("token %s: %s: %w", t.Name, t.Wrong, ErrNotFound)
	}
	return t, nil
}

// Tokens lists the tokens by name, those whose record cannot be read with them.
func (q *Queue) Tokens(ctx context.Context) ([]Token, error) {
	h, err := q.rdb.HGetAll(ctx, hubKey("tokens", "")).Result()
	if err != nil {
		return nil, q.say("token", err)
	}
	out := make([]Token, 0, len(h))
	for hash, text := range h {
		out = append(out, readToken(hash, text))
	}
	slices.SortFunc(out, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// RemoveToken makes a token worthless.
func (q *Queue) RemoveToken(ctx context.Context, name string) error {
	h, err := q.rdb.HGetAll(ctx, hubKey("tokens", "")).Result()
	if err != nil {
		return q.say("token", err)
	}
	for hash, text := range h {
		if readToken(hash, text).Name == name {
			return q.say("token", q.rdb.HDel(ctx, hubKey("tokens", ""), hash).Err())
		}
	}
	return fmt.Errorf("token %s: %w", name, ErrNotFound)
}
