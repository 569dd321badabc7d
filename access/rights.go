package access

import (
	"fmt"
	"iter"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"

	"muster/fleet"
)

// Rights is a policy over one inventory. It finds the hosts of each selector once, when a question
// first needs them. Concurrent use is safe.
type Rights struct {
	policy    *Policy
	inventory *fleet.Inventory
	names     []string       // of the hosts, sorted
	index     map[string]int // name → index in names
	sets      []atomic.Pointer[hostSet]
	mu        sync.Mutex
	scopes    map[string]*hostSet // hosts of the selectors of scopes, by text
}

// hostSet is a set of hosts: bit i stands for the host at index i of the inventory.
type hostSet struct {
	words []uint64
	lost  []string // names in the selector that no host has
	err   error    // the selector has no meaning in this inventory, so the set is empty
}

// scopesMax bounds the selectors of scopes whose hosts are kept: 4,096 times 2.5 KB for 20,000
// hosts.
const scopesMax = 4096

// Over returns the rights over the hosts of an inventory. Its labels decide who may touch which
// host, so it must be the inventory as its sources have it: without labels of facts and drains.
func (p *Policy) Over(inv *fleet.Inventory) *Rights {
	hosts := inv.Hosts()
	r := &Rights{
		policy:    p,
		inventory: inv,
		names:     make([]string, len(hosts)),
		index:     make(map[string]int, len(hosts)),
		sets:      make([]atomic.Pointer[hostSet], len(p.rules.selectors)),
		scopes:    map[string]*hostSet{},
	}
	for i := range hosts {
		r.names[i] = hosts[i].Name
		r.index[hosts[i].Name] = i
	}
	return r
}

// Policy returns the policy that the rights come from.
func (r *Rights) Policy() *Policy { return r.policy }

// find computes the hosts of a selector.
func (r *Rights) find(sel fleet.Selector) *hostSet {
	s := &hostSet{words: make([]uint64, (len(r.names)+63)/64)}
	picked, lost, err := r.inventory.Known(sel)
	s.lost, s.err = lost, err
	if err == nil {
		for i := range picked {
			s.words[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

// A source looks up the hosts of selector i of some rules.
type source func(i int) *hostSet

// ofPolicy is the source for the rules of the policy. Two goroutines may compute the same set at
// once; the first to finish stores its set, and both return that one.
func (r *Rights) ofPolicy(i int) *hostSet {
	if s := r.sets[i].Load(); s != nil {
		return s
	}
	r.sets[i].CompareAndSwap(nil, r.find(r.policy.rules.selectors[i].Selector))
	return r.sets[i].Load()
}

// ofScope returns the source for the rules of a scope.
func (r *Rights) ofScope(scope *Scope) source {
	return func(i int) *hostSet {
		sel := scope.rules.selectors[i].Selector
		r.mu.Lock()
		defer r.mu.Unlock()
		s := r.scopes[sel.String()]
		if s == nil {
			s = r.find(sel)
			if len(r.scopes) >= scopesMax {
				clear(r.scopes)
			}
			r.scopes[sel.String()] = s
		}
		return s
	}
}

// at returns the index of a host; -1 for a host that the inventory lacks, and for the whole house.
func (r *Rights) at(host string) int {
	if i, known := r.index[host]; known {
		return i
	}
	return -1
}

// has reports whether a grant reaches the host at an index.
func (g *grant) has(at int, from source) bool {
	if at < 0 {
		return len(g.hosts) == 0
	}
	for _, i := range g.hosts {
		if from(i).words[at/64]&(1<<(at%64)) == 0 {
			return false
		}
	}
	return true
}

// Allows reports whether somebody may do something to a host; if host is empty, to the whole
// house. The package doc has the rule for questions about no host or no runbook. Grants without a
// limit of hosts also count for a host that the inventory lacks.
func (r *Rights) Allows(who Who, act Act, host string) bool {
	return r.grantFor(who, act, host) != nil && r.inScope(who.Scope, act, host)
}

// grantFor returns the first grant that allows an act, or nil.
func (r *Rights) grantFor(who Who, act Act, host string) *grant {
	verb, at := setOf(act.Verb), r.at(host)
	for g := range r.policy.of(who) {
		if g.verbs&verb != 0 && g.has(at, r.ofPolicy) && g.covers(act, verb) {
			return g
		}
	}
	return nil
}

func (r *Rights) inScope(scope *Scope, act Act, host string) bool {
	if scope == nil {
		return true
	}
	verb, at, from := setOf(act.Verb), r.at(host), r.ofScope(scope)
	for i := range scope.rules.grants {
		if g := &scope.rules.grants[i]; g.covers(act, verb) && g.has(at, from) {
			return true
		}
	}
	return false
}

// Hosts returns the hosts to which somebody may do something. It agrees with Allows for each host.
func (r *Rights) Hosts(who Who, act Act) Hosts {
	verb := setOf(act.Verb)
	h := Hosts{of: r}
	for g := range r.policy.of(who) {
		if g.covers(act, verb) && h.add(g, r.ofPolicy) {
			break
		}
	}
	if who.Scope == nil {
		return h
	}
	scope, from := Hosts{of: r}, r.ofScope(who.Scope)
	for i := range who.Scope.rules.grants {
		if g := &who.Scope.rules.grants[i]; g.covers(act, verb) && scope.add(g, from) {
			break
		}
	}
	return h.and(scope)
}

// Hosts is a set of hosts that somebody may touch.
type Hosts struct {
	of    *Rights
	all   bool
	words []uint64 // unless all
}

// add adds the hosts of a grant, and reports whether the set now has all.
func (h *Hosts) add(g *grant, from source) bool {
	if len(g.hosts) == 0 {
		*h = Hosts{of: h.of, all: true}
		return true
	}
	if h.words == nil {
		h.words = make([]uint64, (len(h.of.names)+63)/64)
	}
	sets := make([]*hostSet, len(g.hosts))
	for i, selector := range g.hosts {
		sets[i] = from(selector)
	}
	for i := range h.words {
		word := ^uint64(0)
		for _, s := range sets {
			word &= s.words[i]
		}
		h.words[i] |= word
	}
	return false
}

// and returns the hosts that are in both sets.
func (h Hosts) and(other Hosts) Hosts {
	switch {
	case h.all:
		return other
	case other.all:
		return h
	case h.words == nil || other.words == nil:
		return Hosts{of: h.of}
	}
	for i := range h.words {
		h.words[i] &= other.words[i]
	}
	return h
}

// All reports whether the set has every host, also those that the inventory lacks.
func (h Hosts) All() bool { return h.all }

// Has reports whether the set has a host.
func (h Hosts) Has(host string) bool {
	if h.all || h.words == nil {
		return h.all
	}
	i, known := h.of.index[host]
	return known && h.words[i/64]&(1<<(i%64)) != 0
}

// Len returns how many hosts of the inventory the set has.
func (h Hosts) Len() int {
	if h.all {
		return len(h.of.names)
	}
	n := 0
	for _, word := range h.words {
		n += bits.OnesCount64(word)
	}
	return n
}

// Names yields the hosts of the inventory that the set has, sorted by name.
func (h Hosts) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		if h.of == nil {
			return
		}
		for i, name := range h.of.names {
			if (h.all || h.words != nil && h.words[i/64]&(1<<(i%64)) != 0) && !yield(name) {
				return
			}
		}
	}
}

// Refused returns those of the hosts to which somebody may not do something, in their order; none
// if everything is allowed. A refusal is whole, and Refusal has the words for it.
func (r *Rights) Refused(who Who, act Act, hosts []string) []string {
	may := r.Hosts(who, act)
	var refused []string
	for _, host := range hosts {
		if !may.Has(host) {
			refused = append(refused, host)
		}
	}
	return refused
}

// examplesMax bounds the hosts that a refusal names.
const examplesMax = 3

// Refusal returns the error that refuses an act on some hosts of those that were asked for. It
// names how many they are, and up to three. The caller leaves out hosts that may not be seen.
func Refusal(who Who, act Act, refused []string, asked int) error {
	examples := strings.Join(refused[:min(examplesMax, len(refused))], ", ")
	if more := len(refused) - examplesMax; more > 0 {
		examples += fmt.Sprintf(" and %d more", more)
	}
	on := fmt.Sprintf("%d of %d hosts: %s", len(refused), asked, examples)
	if asked == 1 {
		on = examples
	}
	return fmt.Errorf("%s may not %s on %s", who.Principal, act, on)
}

// String returns an act for people, as in: run firewall.
func (a Act) String() string { return strings.TrimSpace(string(a.Verb) + " " + a.Runbook) }
