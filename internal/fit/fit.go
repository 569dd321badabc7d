// Package fit asks the Redis of a configuration whether a server could start with it, and names the
// commands that would make it fit. It sets nothing there.
//
// Floor 11: may import the packages that set up a server, such as jobs/queue and internal/settings.
package fit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"muster/internal/settings"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Redis describes the Redis of a configuration.
type Redis struct {
	At    string   `json:"at,omitempty"`
	Ready bool     `json:"ready"`
	Error string   `json:"error,omitempty"` // why it is not ready
	Do    []string `json:"do,omitempty"`    // commands that make it ready
	Users bool     `json:"users"`           // muster logs in there as a user
}

// redisPatience bounds the wait for an answer of Redis.
const redisPatience = 5 * time.Second

// Look asks the Redis of a configuration whether a server could start with it.
func Look(ctx context.Context, src settings.Source) Redis {
	if src.File == "" {
		if _, err := os.Stat(settings.DefaultConfig); !errors.Is(err, fs.ErrNotExist) {
			src.File = settings.DefaultConfig
		}
	}
	s, err := settings.Read(src)
	if err != nil {
		return Redis{Error: err.Error()}
	}
	c := s.Queue()
	c.Role, c.Zones, c.Unsafe = keys.RoleServer, s.Master.Zones, false
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	m := Redis{At: c.Where(), Users: c.Login.Username != ""}
	q, err := queue.Open(ctx, c)
	if err != nil {
		m.Error, m.Do = err.Error(), remedies(err)
		return m
	}
	m.Ready = true
	if err := q.Close(); err != nil {
		m.Error = err.Error()
	}
	return m
}

// Say tells a person what is to do at Redis.
func (m Redis) Say(w io.Writer) {
	switch {
	case m.Ready:
		fmt.Fprintf(w, "Redis %s is fit for a queue\n", m.At)
	case len(m.Do) > 0:
		fmt.Fprintf(w, "%s\nbefore a server starts, do this there:\n", m.Error)
		for _, command := range m.Do {
			fmt.Fprintf(w, "  %s\n", command)
		}
	default:
		fmt.Fprintf(w, "no server can start with the Redis of the configuration yet: %s\nstart it "+
			"(redis-server; redis.url names it), and call init again\n", m.Error)
	}
	if m.Ready && !m.Users {
		fmt.Fprintf(w, "it has no users, so whoever reaches it may write there; users for muster: "+
			"muster acl > /etc/redis/users.acl (muster acl --help)\n")
	}
}

// commands has the command for each mistake in the settings of a Redis, by words of its report.
var commands = []struct{ words, command string }{
	{"maxmemory-policy is ", "redis-cli CONFIG SET maxmemory-policy noeviction"},
	{"appendonly is off", "redis-cli CONFIG SET appendonly yes"},
	{"the user default may not do everything",
		"redis-cli ACL SETUSER default '~*' '&*' +@all && redis-cli ACL SAVE"},
}

// remedies returns the commands that mend what queue.Open says of a Redis: first the settings, then
// the order to remember them. It returns none for other errors.
func remedies(err error) (list []string) {
	if err == nil {
		return nil
	}
	config := false
	for _, r := range commands {
		if strings.Contains(err.Error(), r.words) {
			list = append(list, r.command)
			config = config || strings.Contains(r.command, " CONFIG ")
		}
	}
	if config {
		list = append(list, "redis-cli CONFIG REWRITE")
	}
	return list
}
