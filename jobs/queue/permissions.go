package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	plainCommands = strings.Fields("cluster|slots command eval evalsha fcall function|delete " +
		"function|list function|load info ping script|load select subscribe time unsubscribe wait")
	scriptCommands = strings.Fields("del exists get hdel hexists hget hgetall hincrby hlen " +
		"hmget hset persist pexpire pttl publish sadd set sismember srem time xadd xdel xrange zadd " +
		"zcard zcount zmscore zrange zrangebyscore zrem zrevrange zrevrangebyscore zscore")
	nodeCommands   = strings.Fields("smembers")
	serverCommands = strings.Fields("exec expire hkeys hscan hsetnx multi unwatch watch " +
		"xinfo|stream xread xrevrange xtrim zremrangebyrank zremrangebyscore")
)

// commands are those that a role gives, sorted.
func (r Role) commands() []string {
	list := slices.Concat(plainCommands, scriptCommands, nodeCommands)
	if r == RoleServer {
		list = append(list, serverCommands...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// access is a pattern of keys.
type access struct {
	pattern string
	write   bool
}

// keys are the keys that a role touches. A server writes all; a node only reads
// what servers publish and when groups were cleared, and of the hub knows the nodes and
// the blobs: no tokens.
func (r Role) keys() []access {
	if r == RoleServer {
		return []access{{prefix + "*", true}}
	}
	var list []access
	for _, k := range zoneKeys {
		kind, _, many := strings.Cut(k.Name, "<")
		if many {
			kind += "*"
		}
		write := k.Writers != "Publish" && k.Writers != "ClearGroup"
		if a := (access{zoneKey("*", kind, ""), write}); k.Type != "channel" &&
			!slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return append(list, access{hubKey("nodes", ""), true}, access{hubKey("node:", "*"), true},
		access{hubKey("windows", ""), false}, access{hubKey("estimates", ""), false},
		access{hubKey("blobs", ""), false},
		access{hubKey("blob:", "*"), false})
}

// channels are the patterns of channels of a role.
func (r Role) channels() []string {
	if r == RoleServer {
		return []string{prefix + "*"}
	}
	var list []string
	for _, k := range zoneKeys {
		if k.Type == "channel" {
			list = append(list, zoneKey("*", k.Name, ""))
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

// lacks lists what the user of a connection may not do and must, in words.
func (r Role) lacks(ctx context.Context, c *redis.Client) ([]string, error) {
	if r == "" {
		return nil, nil
	}
	var lines []any
	for _, command := range r.commands() {
		lines = append(lines, sample(command))
	}
	for _, k := range r.keys() {
		key := strings.ReplaceAll(k.pattern, "*", "x")
		lines = append(lines, "EXISTS "+key)
		if k.write {
			lines = append(lines, "DEL "+key)
		}
	}
	for _, channel := range r.channels() {
		lines = append(lines, "SUBSCRIBE "+strings.ReplaceAll(channel, "*", "x"))
	}
	return c.Eval(ctx, permitText, nil, lines...).StringSlice()
}

// sample is a command with as many arguments as it takes, on a key that every
// role may write.
func sample(command string) string {
	key, channel := zoneKey("x", "queue", ""), zoneKey("x", "wake", "")
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

// permitted turns what is missing on the servers into an error.
func (q *Queue) permitted(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("redis %s: %w of a muster %s: %s: see etc/users.acl", q.cfg.Where(),
		ErrPermission, q.cfg.Role, strings.Join(slices.Compact(missing), "; "))
}
