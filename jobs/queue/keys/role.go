package keys

import (
	"slices"
	"strings"
)

// Role is the purpose of a handle; it decides which permissions the handle needs.
type Role string

// The roles. A server may do all that a node may. A handle without a role is not checked.
const (
	RoleServer Role = "server"
	RoleNode   Role = "node" // a master and its children
)

// These commands are called by the roles, directly or in scripts. etc/users.acl allows these and no
// others; a test compares them with the commands that the test suite calls.
var (
	// The client of a cluster calls command; if that is refused, it does so before every call.
	plainCommands = strings.Fields("cluster|slots command eval evalsha " +
		"info ping script|load select subscribe time unsubscribe wait")
	scriptCommands = strings.Fields("del exists get hdel hexists hget hgetall hincrby hlen " +
		"hmget hset persist pexpire pttl publish sadd set sismember srem time xadd xdel xrange zadd " +
		"zcard zcount zmscore zrange zrangebyscore zrem zrevrange zrevrangebyscore zscore smembers")
	// A node calls the function of step and cannot change it. Everybody may load scripts, because the
	// hash of a script is its name.
	nodeCommands = strings.Fields("fcall")
	// A server loads that function and calls none. At its start it asks once whether Redis could read
	// its append-only file again (see replays).
	serverCommands = strings.Fields(AskReplay + " exec expire " +
		"function|delete function|list function|load " +
		"hkeys hscan hsetnx multi unwatch watch " +
		"xinfo|stream xread xrevrange xtrim zremrangebyrank zremrangebyscore")
)

// AskReplay is the only command that a role does not need: a server whose ACL rules come from an
// earlier version does not use it.
const AskReplay = "acl|dryrun"

// nodeWriters lists the writers in keys.go that a node calls.
var nodeWriters = strings.Fields("step checkpoint lose epoch reorder speak ask Alert")

// Commands returns the commands that a role calls, sorted.
func (r Role) Commands() []string {
	own := nodeCommands
	if r == RoleServer {
		own = serverCommands
	}
	list := slices.Concat(plainCommands, scriptCommands, own)
	slices.Sort(list)
	return slices.Compact(list)
}

// An access is a pattern of keys, and whether the role may write them.
type access struct {
	Pattern string
	Write   bool
}

// Keys returns the keys that a role touches. A server writes all. A node may use the keys of its
// zones: it writes the keys that its scripts write, and reads the others. In the hub it uses the
// nodes, and reads the orders about them, the agreed times and the blobs, but no tokens.
func (r Role) Keys(zones []string) []access {
	if r == RoleServer {
		return []access{{Prefix + "*", true}}
	}
	var list []access
	for _, zone := range zones {
		for _, k := range ZoneKeys {
			kind, _, many := strings.Cut(k.Name, "<")
			if many {
				kind += "*"
			}
			a := access{Zone(zone, kind, ""), k.ofNodes()}
			if k.Type != "channel" && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return append(list, access{Hub("nodes", ""), true}, access{Hub("node:", "*"), true},
		access{Hub("nodeorders", ""), false}, access{Hub("apart", ""), false},
		access{Hub("windows", ""), false}, access{Hub("estimates", ""), false},
		access{Hub("blobs", ""), false},
		access{Hub("blob:", "*"), false})
}

// Channels returns the patterns of channels that a role may use.
func (r Role) Channels(zones []string) []string {
	if r == RoleServer {
		return []string{Prefix + "*"}
	}
	var list []string
	for _, zone := range zones {
		for _, k := range ZoneKeys {
			if k.Type == "channel" {
				list = append(list, Zone(zone, k.Name, ""))
			}
		}
	}
	return list
}

// rules returns the rules for ACL SETUSER of a role, without its password.
func (r Role) rules(zones []string) []string {
	rules := []string{"sanitize-payload", "resetkeys"}
	for _, k := range r.Keys(zones) {
		if k.Write {
			rules = append(rules, "~"+k.Pattern)
		} else {
			rules = append(rules, "%R~"+k.Pattern)
		}
	}
	rules = append(rules, "resetchannels")
	for _, c := range r.Channels(zones) {
		rules = append(rules, "&"+c)
	}
	rules = append(rules, "-@all")
	for _, c := range r.Commands() {
		rules = append(rules, "+"+c)
	}
	return rules
}
