package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/keys"
)

// ErrPermission is wrapped by Open's error when the user of Redis lacks a permission that its role
// needs.
var ErrPermission = errors.New("the ACL of this user lacks permissions")

// ask returns the lines that the user of a connection may not call.
func ask(ctx context.Context, c *redis.Client, lines []any) ([]string, error) {
	return c.Eval(ctx, keys.MayCall, nil, lines...).StringSlice()
}

// lacks returns the calls that the user of a connection must be allowed to make and is not.
func (c Config) lacks(ctx context.Context, rdb *redis.Client) ([]string, error) {
	if c.Role == "" {
		return nil, nil
	}
	zones := c.zones()
	var lines []any
	for _, command := range c.Role.Commands() {
		if command == keys.AskReplay {
			continue
		}
		lines = append(lines, keys.Sample(command, zones[0]))
	}
	for _, k := range c.Role.Keys(zones) {
		key := strings.ReplaceAll(k.Pattern, "*", "x")
		lines = append(lines, "EXISTS "+key)
		if k.Write {
			lines = append(lines, "DEL "+key)
		}
	}
	for _, channel := range c.Role.Channels(zones) {
		lines = append(lines, "SUBSCRIBE "+strings.ReplaceAll(channel, "*", "x"))
	}
	return ask(ctx, rdb, lines)
}

// zones returns the zones of a node. A server has all zones, and is checked with one.
func (c Config) zones() []string {
	if len(c.Zones) == 0 {
		return []string{defaultZone}
	}
	return c.Zones
}

const defaultZone = "default"

// Rights shows what the user of a connection may do at Redis.
type Rights struct{ q *Conn }

// Excess returns the calls that the user of a node may make at Redis although no node needs them.
// It returns none for other roles, and if no user is configured, because such a Redis checks
// nobody.
func (r Rights) Excess(ctx context.Context) ([]string, error) {
	if r.q.cfg.Role != keys.RoleNode || !r.q.cfg.named() {
		return nil, nil
	}
	lines := keys.TooMuch()
	c, _, err := r.q.At(ctx, r.q.cfg.zones()[0])
	if err != nil {
		return nil, err
	}
	refused, err := ask(ctx, c, lines)
	var may []string
	for _, line := range lines {
		if !slices.Contains(refused, line.(string)) {
			may = append(may, line.(string))
		}
	}
	return may, r.q.Say("permissions", err)
}

// Permits returns an error that wraps ErrPermission if the user of this queue lacks permissions for
// any of these zones, on any server that it can reach.
func (r Rights) Permits(ctx context.Context, zones []string) error {
	var mu sync.Mutex
	var missing []string
	cfg := r.q.cfg
	cfg.Zones = zones
	err := r.q.eachServer(ctx, func(ctx context.Context, c *redis.Client, where string) error {
		list, err := cfg.lacks(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		for _, line := range list {
			missing = append(missing, where+line)
		}
		return err
	})
	if err != nil {
		return r.q.Say("permissions", err)
	}
	return r.q.cfg.permitted(missing)
}

// permitted turns the calls that servers do not allow into an error.
func (c Config) permitted(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("redis %s: %w of a muster %s: %s: `muster acl` prints the users", c.Where(),
		ErrPermission, c.Role, strings.Join(slices.Compact(missing), "; "))
}
