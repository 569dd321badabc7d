package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Role is what a handle is for, and so which permissions it needs.
type Role string

// The roles. A server may do all that a node may. Whoever has none is not checked.
const (
	RoleServer Role = "server"
	RoleNode   Role = "node" // a master and its children
)

// ErrPermission is wrapped by Open's error when the user of Redis may not do what
// its role must.
var ErrPermission = errors.New("the ACL of this user lacks permissions")

// The commands that roles give, themselves or in scripts. etc/users.acl allows
// these and no others; a test holds them against what the suite calls.
var (
	// command is asked by the client of a cluster, before every call if it is refused.
	plainCommands = strings.Fields("cluster|slots command eval evalsha " +
		"info ping script|load select subscribe time unsubscribe wait")
	scriptCommands = strings.Fields("del exists get hdel hexists hget hgetall hincrby hlen " +
		"hmget hset persist pexpire pttl publish sadd set sismember srem time xadd xdel xrange zadd " +
		"zcard zcount zmscore zrange zrangebyscore zrem zrevrange zrevrangebyscore zscore smembers")
	// A node calls the function of step, and cannot change it. Scripts may be loaded by
	// everybody: their hash is their name.
	nodeCommands = strings.Fields("fcall")
	// A server loads that function, and calls none.
	// It asks once, at its start, whether Redis could read its file again (replays).
	serverCommands = strings.Fields(askReplay + " exec expire " +
		"function|delete function|list function|load " +
		"hkeys hscan hsetnx multi unwatch watch " +
		"xinfo|stream xread xrevrange xtrim zremrangebyrank zremrangebyscore")
)

// askReplay is the one command that a role can do without: a server under the rules of an
// earlier version does not ask.
const askReplay = "acl|dryrun"

// nodeWriters are the writers of keys.go that a node calls.
var nodeWriters = strings.Fields("step checkpoint lose epoch order speak ask Alert")

// commands are those that a role gives, sorted.
func (r Role) commands() []string {
	own := nodeCommands
	if r == RoleServer {
		own = serverCommands
	}
	list := slices.Concat(plainCommands, scriptCommands, own)
	slices.Sort(list)
	return slices.Compact(list)
}

// access is a pattern of keys.
type access struct {
	pattern string
	write   bool
}

// keys are the keys that a role touches. A server writes all. A node has those of its zones:
// it writes what the scripts write that it calls, and reads the others. Of the hub it knows
// the nodes, and reads what is agreed about times and the blobs: no tokens.
func (r Role) keys(zones []string) []access {
	if r == RoleServer {
		return []access{{prefix + "*", true}}
	}
	var list []access
	for _, zone := range zones {
		for _, k := range zoneKeys {
			kind, _, many := strings.Cut(k.Name, "<")
			if many {
				kind += "*"
			}
			a := access{zoneKey(zone, kind, ""), k.ofNodes()}
			if k.Type != "channel" && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return append(list, access{hubKey("nodes", ""), true}, access{hubKey("node:", "*"), true},
		access{hubKey("windows", ""), false}, access{hubKey("estimates", ""), false},
		access{hubKey("blobs", ""), false},
		access{hubKey("blob:", "*"), false})
}

// ofNodes tells whether nodes write a key.
func (k Key) ofNodes() bool {
	return slices.ContainsFunc(strings.Split(k.Writers, ", "), func(name string) bool {
		return slices.Contains(nodeWriters, name)
	})
}

// channels are the patterns of channels of a role.
func (r Role) channels(zones []string) []string {
	if r == RoleServer {
		return []string{prefix + "*"}
	}
	var list []string
	for _, zone := range zones {
		for _, k := range zoneKeys {
			if k.Type == "channel" {
				list = append(list, zoneKey(zone, k.Name, ""))
			}
		}
	}
	return list
}

// permitText asks Redis what the user of this connection may do, and does none of
// it. Each argument is a command with its arguments, separated by blanks.
const permitText = `local missing = {}
if not redis.acl_check_cmd then return missing end
for _, line in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(line, '%S+') do words[#words + 1] = word end
  local known, may = pcall(redis.acl_check_cmd, unpack(words))
  if known and not may then missing[#missing + 1] = line end
end
return missing`

// ask returns those of some lines that the user of a connection may not give.
func ask(ctx context.Context, c *redis.Client, lines []any) ([]string, error) {
	return c.Eval(ctx, permitText, nil, lines...).StringSlice()
}

// lacks lists what the user of a connection may not do and must, in words.
func (c Config) lacks(ctx context.Context, rdb *redis.Client) ([]string, error) {
	if c.Role == "" {
		return nil, nil
	}
	zones := c.zones()
	var lines []any
	for _, command := range c.Role.commands() {
		if command == askReplay {
			continue
		}
		lines = append(lines, sample(command, zones[0]))
	}
	for _, k := range c.Role.keys(zones) {
		key := strings.ReplaceAll(k.pattern, "*", "x")
		lines = append(lines, "EXISTS "+key)
		if k.write {
			lines = append(lines, "DEL "+key)
		}
	}
	for _, channel := range c.Role.channels(zones) {
		lines = append(lines, "SUBSCRIBE "+strings.ReplaceAll(channel, "*", "x"))
	}
	return ask(ctx, rdb, lines)
}

// zones are those of a node; a server has all, and is asked about one.
func (c Config) zones() []string {
	if len(c.Zones) == 0 {
		return []string{defaultZone}
	}
	return c.Zones
}

const defaultZone = "default"

// tooMuch is what no user of a node needs, and what would make it master of the others.
// Another zone stands for all others.
func tooMuch() []any {
	other := "muster-another-zone"
	return []any{"FUNCTION LOAD x", "FUNCTION DELETE x", "FUNCTION FLUSH", "SCRIPT FLUSH", "FLUSHALL",
		"CONFIG GET x", "ACL LIST", "EXISTS " + hubKey("tokens", ""), "DEL " + hubKey("tokens", ""),
		"DEL " + hubKey("inventory", ""), "DEL " + hubKey("schedules", ""),
		"DEL " + hubKey("task:", "x"), "DEL " + zoneKey(other, "queue", ""),
		"DEL " + zoneKey(other, "task:", "x")}
}

// Excess lists what the user of a node may do at Redis although no node needs it. It is
// empty for others, and where no user is named: such a Redis asks nobody.
func (q *Queue) Excess(ctx context.Context) ([]string, error) {
	if q.cfg.Role != RoleNode || !q.cfg.named() {
		return nil, nil
	}
	lines := tooMuch()
	c, _, err := q.at(ctx, q.cfg.zones()[0])
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
	return may, q.say("permissions", err)
}

// sample is a command with as many arguments as it takes, on a key of a zone that every
// role may write.
func sample(command, zone string) string {
	key, channel := zoneKey(zone, "queue", ""), zoneKey(zone, "wake", "")
	words := strings.ReplaceAll(strings.ToUpper(command), "|", " ")
	switch command {
	case "command", "info", "ping", "time", "unsubscribe", "cluster|slots", "exec", "multi", "unwatch",
		"function|list":
		return words
	case "select":
		return words + " 0"
	case "del", "exists", "watch": // all their arguments are keys
		return words + " " + key
	case "wait":
		return words + " 0 0"
	case "script|load", "function|load", "function|delete":
		return words + " x"
	case "eval", "evalsha", "fcall":
		return words + " x 1 " + key
	case "subscribe":
		return words + " " + channel
	case "publish":
		return words + " " + channel + " x"
	case "xinfo|stream":
		return words + " " + key
	case "xtrim":
		return words + " " + key + " MAXLEN 1"
	case "xread":
		return words + " STREAMS " + key + " 0"
	case "xadd":
		return words + " " + key + " * e x"
	}
	return words + " " + key + " 1 1 1"
}

// Permits returns an error that wraps ErrPermission if the user of this queue may not work for
// all of some zones, on each server that is there.
func (q *Queue) Permits(ctx context.Context, zones []string) error {
	var mu sync.Mutex
	var missing []string
	cfg := q.cfg
	cfg.Zones = zones
	err := q.eachServer(ctx, func(ctx context.Context, c *redis.Client, where string) error {
		list, err := cfg.lacks(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		for _, line := range list {
			missing = append(missing, where+line)
		}
		return err
	})
	if err != nil {
		return q.say("permissions", err)
	}
	return q.permitted(missing)
}

// permitted turns what is missing on the servers into an error.
func (q *Queue) permitted(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("redis %s: %w of a muster %s: %s: `muster acl` prints the users", q.cfg.Where(),
		ErrPermission, q.cfg.Role, strings.Join(slices.Compact(missing), "; "))
}
