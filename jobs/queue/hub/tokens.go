package hub

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
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Tokens stores the hashes of the tokens of operators.
type Tokens struct{ c *queue.Conn }

// NewTokens returns the tokens behind a connection.
func NewTokens(c *queue.Conn) *Tokens { return &Tokens{c} }

// Token is the stored record of a token of the API; the token itself is not stored.
type Token struct {
	Name    string    `json:"name"`
	Created jobs.Time `json:"created"`

	// Wrong says why the record cannot be read; empty: it can. Such a token authenticates nobody, and
	// has a name that RemoveToken accepts.
	Wrong string `json:"wrong,omitempty"`
}

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
	// The hash may be any text, too, if somebody has written there by hand.
	sum := hashToken(hash)
	return Token{Name: unreadable + sum[:12], Wrong: "its record in Redis cannot be read"}
}

// CreateToken stores the hash of a token under the name of its bearer.
func (q *Tokens) CreateToken(ctx context.Context, name, secret string) error {
	all, err := q.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Name == name {
			return fmt.Errorf("token %s: %w", name, queue.ErrTokenName)
		}
	}
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	text, err := json.Marshal(Token{Name: name, Created: jobs.Time{Time: now}})
	if err != nil {
		return err
	}
	return q.c.Say("token", q.c.Redis().HSet(ctx, keys.Hub("tokens", ""), hashToken(secret),
		text).Err())
}

// FindToken returns the record of a token; ErrNotFound if there is none, or it cannot be read.
func (q *Tokens) FindToken(ctx context.Context, secret string) (Token, error) {
	hash := hashToken(secret)
	text, err := q.c.Redis().HGet(ctx, keys.Hub("tokens", ""), hash).Result()
	if errors.Is(err, redis.Nil) {
		return Token{}, fmt.Errorf("token: %w", queue.ErrNotFound)
	}
	if err != nil {
		return Token{}, q.c.Say("token", err)
	}
	t := readToken(hash, text)
	if t.Wrong != "" {
		return Token{}, fmt.Errorf("token %s: %s: %w", t.Name, t.Wrong, queue.ErrNotFound)
	}
	return t, nil
}

// Tokens returns the tokens by name, including those whose record cannot be read.
func (q *Tokens) Tokens(ctx context.Context) ([]Token, error) {
	h, err := q.c.Redis().HGetAll(ctx, keys.Hub("tokens", "")).Result()
	if err != nil {
		return nil, q.c.Say("token", err)
	}
	out := make([]Token, 0, len(h))
	for hash, text := range h {
		out = append(out, readToken(hash, text))
	}
	slices.SortFunc(out, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// RemoveToken revokes a token.
func (q *Tokens) RemoveToken(ctx context.Context, name string) error {
	h, err := q.c.Redis().HGetAll(ctx, keys.Hub("tokens", "")).Result()
	if err != nil {
		return q.c.Say("token", err)
	}
	for hash, text := range h {
		if readToken(hash, text).Name == name {
			return q.c.Say("token", q.c.Redis().HDel(ctx, keys.Hub("tokens", ""), hash).Err())
		}
	}
	return fmt.Errorf("token %s: %w", name, queue.ErrNotFound)
}
