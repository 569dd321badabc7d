package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Inventory lists all hosts. Parse makes it from files, New from hosts. It may
// be read by many at once as soon as nobody calls SetTrust any more.
type Inventory struct {
	hosts      []Host            // sorted by name
	limits     []Limit           // sorted by name
	index      map[string]int    // name → place in hosts
	hops       map[string][]*Hop // name → the places where it is a jump host
	knownHosts map[string]string // name → file with its host keys; no own keys given
	places     []place           // of the hosts
	warnings   Mistakes
	notes      Mistakes

	extra  map[string]map[string]string // more labels of hosts, for selectors only
	once   sync.Once                    // guards labels
	labels *labelIndex
}

// New makes an inventory of hosts and limits that are known already, as a reader
// of published hosts has them. It checks what Parse checks, except that a host may
// be without host keys. Its error is of type Mistakes.
func New(hosts []Host, limits ...Limit) (*Inventory, error) {
	var r reader
	for _, l := range limits {
		e := limitEntry{Limit: l}
		for _, err := range checkLimit(l) {
			r.mistakeAtLimit(e, "%v", err)
		}
		r.limits = append(r.limits, e)
	}
	for _, h := range hosts {
		r.check(entry{host: h})
	}
	inv := r.inventory(nil)
	if len(r.mistakes) > 0 {
		return nil, r.mistakes
	}
	return inv, nil
}

// Hosts returns all hosts, sorted by name. The slice is the caller's; the labels
// and host keys in it belong to the inventory and must not be changed.
func (v *Inventory) Hosts() []Host { return slices.Clone(v.hosts) }

// Limits returns all limits, sorted by name. The slice is the caller's.
func (v *Inventory) Limits() []Limit { return slices.Clone(v.limits) }

// Host returns the host of that name, and whether there is one.
func (v *Inventory) Host(name string) (Host, bool) {
	i, ok := v.index[name]
	if !ok {
		return Host{}, false
	}
	return v.hosts[i], true
}

// Len is the number of hosts.
func (v *Inventory) Len() int { return len(v.hosts) }

// Zones returns the zones that have hosts, sorted.
func (v *Inventory) Zones() []string {
	seen := map[string]bool{}
	var zones []string
	for i := range v.hosts {
		if z := v.hosts[i].Zone; !seen[z] {
			seen[z] = true
			zones = append(zones, z)
		}
	}
	slices.Sort(zones)
	return zones
}

// Warnings tells what looks like a mistake, but harms nothing.
func (v *Inventory) Warnings() Mistakes { return slices.Clone(v.warnings) }

// Notes tells what of a foreign format was not taken over.
func (v *Inventory) Notes() Mistakes { return slices.Clone(v.notes) }

// WithoutKey names the hosts that nothing is known of by which they could be
// recognised: neither keys nor an authority. Nobody logs in to them.
func (v *Inventory) WithoutKey() []string {
	var names []string
	for i := range v.hosts {
		if h := &v.hosts[i]; len(h.HostKeys)+len(h.HostCAs) == 0 {
			names = append(names, h.Name)
		}
	}
	return names
}

// Place is where a host stands; empty if it came from no file.
func (v *Inventory) Place(name string) (file string, line int) {
	i, ok := v.index[name]
	if !ok {
		return "", 0
	}
	return v.places[i].file, v.places[i].line
}

// Strangers are jump hosts on the ways to hosts that are no hosts themselves,
// sorted by name. Their keys are set as those of hosts.
func (v *Inventory) Strangers() []Hop {
	var list []Hop
	for _, name := range sortedKeys(v.hops) {
		if _, known := v.index[name]; !known {
			list = append(list, *v.hops[name][0])
		}
	}
	return list
}

// KnownHosts returns the known_hosts file in which the keys of a host must be
// looked up. It is empty if the inventory itself has the keys.
func (v *Inventory) KnownHosts(name string) string { return v.knownHosts[name] }

// Version names the content: 16 characters, equal for equal hosts and limits,
// whatever the order of files and lines was. It is computed at each call.
func (v *Inventory) Version() string {
	sum := sha256.New()
	canonical := json.NewEncoder(sum) // sorts labels; a hash accepts every write
	for i := range v.hosts {
		_ = canonical.Encode(&v.hosts[i])
	}
	for i := range v.limits {
		_ = canonical.Encode(&v.limits[i])
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// WithLabels returns the same inventory with more labels for selectors: host to
// label to value. Where a host has such a label already, also by an earlier call, the
// new value counts. The map belongs to the inventory from now on; Hosts and Version do
// not show it.
func (v *Inventory) WithLabels(more map[string]map[string]string) *Inventory {
	for host, labels := range v.extra {
		if more[host] == nil {
			more[host] = labels
			continue
		}
		both := maps.Clone(labels)
		maps.Copy(both, more[host])
		more[host] = both
	}
	return &Inventory{hosts: v.hosts, limits: v.limits, index: v.index, knownHosts: v.knownHosts,
		warnings: v.warnings, hops: v.hops, extra: more}
}

// entry is a host as it was read, with the place where it stands.
type entry struct {
	host       Host
	knownHosts string
	file       string
	line       int

	jump      []string // names of the hosts on the way to it; not those on the way to them
	jumpLine  int      // where they stand
	jumpGiven bool     // by the host itself, and not by the defaults of its file
}

// place is where a host stands.
type place struct {
	file string
	line int
}

// who names the host in a message, safely also when its name is not a name.
func (e entry) who() string {
	if CheckName(e.host.Name) != nil {
		return fmt.Sprintf("host %q", abbreviate(e.host.Name))
	}
	return "host " + e.host.Name
}

// place is " at file:line", or nothing if the host came from no file.
func (e entry) place() string {
	if e.file == "" {
		return ""
	}
	return fmt.Sprintf(" at %s:%d", e.file, e.line)
}

// inventory ends the reading: it checks what concerns several hosts. What is wrong is
// in the mistakes of the reader then.
func (r *reader) inventory(files []string) *Inventory {
	r.checkNames()
	r.override()
	hops := r.resolveJumps()
	r.checkGroups()
	r.checkAddresses()
	r.checkLimits()
	if len(files) > 0 && len(r.entries) == 0 && len(r.mistakes) == 0 {
		r.warnings = append(r.warnings, Mistake{files[0], 1, "the inventory has no hosts"})
	}
	r.mistakes.Sort(files)
	r.warnings.Sort(files)
	return r.build(hops)
}

// build makes an inventory of what was read, without a look at it.
func (r *reader) build(hops map[string][]*Hop) *Inventory {
	slices.SortFunc(r.entries, func(a, b entry) int { return cmp.Compare(a.host.Name, b.host.Name) })
	v := &Inventory{
		hosts:      make([]Host, len(r.entries)),
		index:      make(map[string]int, len(r.entries)),
		hops:       hops,
		knownHosts: make(map[string]string),
		places:     make([]place, len(r.entries)),
		warnings:   r.warnings,
		notes:      r.notes,
	}
	for _, e := range r.limits {
		v.limits = append(v.limits, e.Limit)
	}
	slices.SortFunc(v.limits, func(a, b Limit) int { return cmp.Compare(a.Name, b.Name) })
	for i, e := range r.entries {
		v.hosts[i] = e.host
		v.index[e.host.Name] = i
		v.places[i] = place{e.file, e.line}
		if e.knownHosts != "" {
			v.knownHosts[e.host.Name] = e.knownHosts
		}
	}
	return v
}

// checkNames finds names that several hosts have.
func (r *reader) checkNames() {
	first := make(map[string]entry, len(r.entries))
	for _, e := range r.entries {
		if e.host.Name == "" {
			continue // was reported where it is missing
		}
		if f, seen := first[e.host.Name]; seen {
			r.mistakeAt(e, "%s is there already%s: names must differ", e.who(), f.place())
			continue
		}
		first[e.host.Name] = e
	}
}

// checkAddresses finds hosts that are perhaps one: then two jobs could be at work on it at
// once. The same address for another user, or on another way, may be another host.
func (r *reader) checkAddresses() {
	type place struct {
		address, user string
		port          int
	}
	first := make(map[place]int, len(r.entries))
	for i := range r.entries {
		e := &r.entries[i]
		at := place{strings.ToLower(e.host.Address), e.host.User, e.host.Port}
		f, seen := first[at]
		switch {
		case e.host.Address == "": // was reported where it is missing
		case !seen:
			first[at] = i
		case r.entries[f].host.Name != e.host.Name && slices.Equal(r.entries[f].jump, e.jump):
			r.warnings = append(r.warnings, Mistake{e.file, e.line, fmt.Sprintf("%s has the address of "+
				"%s%s, %s port %d: if it is one host under two names, two jobs can be at work on it at once",
				e.who(), r.entries[f].who(), r.entries[f].place(), at.address, at.port)})
		}
	}
}

// checkGroups finds redundancy groups that cannot be kept: the limit of a group
// lives in one zone and belongs to one customer. One member alone is only worth a
// warning: its pair may be listed later.
func (r *reader) checkGroups() {
	type group struct {
		first   entry
		members int
	}
	var groups []group
	index := map[string]int{}
	for _, e := range r.entries {
		name := e.host.Group
		if name == "" {
			continue
		}
		i, seen := index[name]
		if !seen {
			index[name] = len(groups)
			groups = append(groups, group{first: e, members: 1})
			continue
		}
		groups[i].members++
		r.checkMembers(groups[i].first, e)
	}
	for _, g := range groups {
		if g.members == 1 {
			r.warnings = append(r.warnings, Mistake{g.first.file, g.first.line, fmt.Sprintf(
				"%s is the only member of group %q, which protects nothing: a group has two or more",
				g.first.who(), g.first.host.Group)})
		}
	}
}

// checkMembers compares a member of a group with the first one.
func (r *reader) checkMembers(first, e entry) {
	if a, b := e.host.Zone, first.host.Zone; a != b {
		r.mistakeAt(e, "%s is in zone %q, but %s of the same group %q%s is in zone %q: "+
			"a group lives in one zone", e.who(), a, first.who(), e.host.Group, first.place(), b)
	}
	if a, b := e.host.Customer, first.host.Customer; a != b {
		r.mistakeAt(e, "%s is of customer %q, but %s of the same group %q%s is of %q: "+
			"a group belongs to one customer",
			e.who(), a, first.who(), e.host.Group, first.place(), b)
	}
}
