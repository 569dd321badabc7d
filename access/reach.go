package access

import (
	"fmt"
	"slices"
)

// A Reach is a part of what somebody may do with one verb: it names runbooks and hosts.
type Reach struct {
	Runbooks [][]string // names and globs: of each list one fits; none: all runbooks
	Hosts    Hosts
}

// Reaches returns all that somebody may do with a verb that can have limits, as parts: an act is
// allowed if a part has its runbook and its host. It is for questions that are asked of a database,
// and agrees with Allows. Parts with the same runbooks are one.
func (r *Rights) Reaches(who Who, verb Verb) []Reach {
	var own []Reach
	for g := range r.policy.of(who) {
		own = addReach(own, r.reach(g, setOf(verb), r.ofPolicy))
	}
	if who.Scope == nil {
		return own
	}
	var scope, both []Reach
	for i := range who.Scope.rules.grants {
		scope = addReach(scope, r.reach(&who.Scope.rules.grants[i], setOf(verb), r.ofScope(who.Scope)))
	}
	for _, a := range own {
		for _, b := range scope {
			h := a.Hosts
			h.words = slices.Clone(h.words)
			both = addReach(both, Reach{slices.Concat(a.Runbooks, b.Runbooks), h.and(b.Hosts)})
		}
	}
	return both
}

// reach returns the part that a grant gives.
func (r *Rights) reach(g *grant, verb verbSet, from source) Reach {
	one := Reach{Hosts: Hosts{of: r}}
	if g.verbs&^g.idle()&verb == 0 {
		return one
	}
	one.Hosts.add(g, from)
	for _, list := range g.runbooks {
		texts := make([]string, len(list))
		for i, glob := range list {
			texts[i] = glob.text
		}
		one.Runbooks = append(one.Runbooks, texts)
	}
	return one
}

// addReach adds a part to a list, unless it has no host.
func addReach(list []Reach, one Reach) []Reach {
	if !one.Hosts.all && one.Hosts.Len() == 0 {
		return list
	}
	key := fmt.Sprint(one.Runbooks)
	for i := range list {
		if fmt.Sprint(list[i].Runbooks) == key {
			list[i].Hosts = list[i].Hosts.or(one.Hosts)
			return list
		}
	}
	return append(list, one)
}

// or returns the hosts that are in one of the sets. Both have hosts.
func (h Hosts) or(other Hosts) Hosts {
	if h.all || other.all {
		return Hosts{of: h.of, all: true}
	}
	h.words = slices.Clone(h.words)
	for i := range h.words {
		h.words[i] |= other.words[i]
	}
	return h
}
