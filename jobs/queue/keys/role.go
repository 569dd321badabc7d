package keys

import (
	"slices"
	"strings"
)

// Role is what a handle is for, and so which permissions it needs.
type Role string

// The roles. A server may do all that a node may. Whoever has none is not checked.
const (
	RoleServer Role = "server"
	RoleNode   Role = "node" // a master and its children
)

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
	serverCommands = strings.Fields(AskReplay + " exec expire " +
		"function|delete function|list function|load " +
		"hkeys hscan hsetnx multi unwatch watch " +
		"xinfo|stream xread xrevrange xtrim zremrangebyrank zremrangebyscore")
)

// AskReplay is the one command that a role can do without: a server under the rules of an
// earlier version does not ask.
const AskReplay = "acl|dryrun"

// nodeWriters are the writers of keys.go that a node calls.
var nodeWriters = strings.Fields("step checkpoint lose epoch order speak ask Alert")

// Commands are those that a role gives, sorted.
func (r Role) Commands() []string {
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
	Pattern string
	Write   bool
}

// Keys are the keys that a role touches. A server writes all. A node has those of its zones:
// it writes what the scripts write that it calls, and reads the others. Of the hub it knows
// the nodes, and reads what is agreed about times and the blobs: no tokens.
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
		access{Hub("windows", ""), false}, access{Hub("estimates", ""), false},
		access{Hub("blobs", ""), false},
		access{Hub("blob:", "*"), false})
}

// Channels are the patterns of channels of a role.
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

// rules are those of ACL SETUSER for a role, except for its password.
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
