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

// Inventory lists all hosts. Parse creates it from files, New from hosts. Concurrent
// reads are safe once nobody calls SetTrust any more.
type Inventory struct {
	hosts      []Host            // sorted by name
	limits     []Limit           // sorted by name
	index      map[string]int    // name → index in hosts
	hops       map[string][]*Hop // name → the copies of it in the ways of other hosts
	knownHosts map[string]string // name → file with its host keys, for hosts without keys here
	places     []place           // of the hosts, in the same order
	warnings   Mistakes
	notes      Mistakes

	extra  map[string]map[string]string // additional labels by host, for selectors only
	once   sync.Once                    // guards labels
	labels *labelIndex
}

// New builds an inventory from hosts and limits that exist already, such as those that
// were published to Redis. It makes the same checks as Parse, except that a host may have
// no host keys. Its error is of type Mistakes.
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

// Hosts returns all hosts, sorted by name. The caller owns the slice, but must not change
// the labels and host keys in it, because they belong to the inventory.
func (v *Inventory) Hosts() []Host { return slices.Clone(v.hosts) }

// Limits returns all limits, sorted by name. The caller owns the slice.
func (v *Inventory) Limits() []Limit { return slices.Clone(v.limits) }

// Host returns the host with that name and reports whether it exists.
func (v *Inventory) Host(name string) (Host, bool) {
	i, ok := v.index[name]
	if !ok {
		return Host{}, false
	}
	return v.hosts[i], true
}

// Len returns the number of hosts.
func (v *Inventory) Len() int { return len(v.hosts) }

// Zones returns the zones that have hosts, sorted.
func (v *Inventory) Zones() []string {
	seen := map[string]bool{}
	for i := range v.hosts {
		seen[v.hosts[i].Zone] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// Warnings returns what looks like a mistake but harms nothing.
func (v *Inventory) Warnings() Mistakes { return slices.Clone(v.warnings) }

// Notes returns the parts of a foreign format that were ignored.
func (v *Inventory) Notes() Mistakes { return slices.Clone(v.notes) }

// WithoutKey returns the names of the hosts for which neither a key nor an authority is
// known. Muster does not log in to them, because it could not verify them.
func (v *Inventory) WithoutKey() []string {
	var names []string
	for i := range v.hosts {
		if h := &v.hosts[i]; len(h.HostKeys)+len(h.HostCAs) == 0 {
			names = append(names, h.Name)
		}
	}
	return names
}

// Place returns the file and line that define a host; file is empty if it came from none.
func (v *Inventory) Place(name string) (file string, line int) {
	i, ok := v.index[name]
	if !ok {
		return "", 0
	}
	return v.places[i].file, v.places[i].line
}

// Strangers returns the jump hosts that are not hosts of the inventory themselves, sorted
// by name. SetTrust sets their keys as it does for hosts.
func (v *Inventory) Strangers() []Hop {
	var list []Hop
	for _, name := range sortedKeys(v.hops) {
		if _, known := v.index[name]; !known {
			list = append(list, *v.hops[name][0])
		}
	}
	return list
}

// KnownHosts returns the known_hosts file that has the keys of a host. It is empty if
// the inventory itself has the keys.
func (v *Inventory) KnownHosts(name string) string { return v.knownHosts[name] }

// Version identifies the content by 16 characters. Equal hosts and limits give equal
// versions, in whatever order files and lines were. Each call computes it anew.
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

// InZones returns the same inventory with some of its hosts in other zones.
func (v *Inventory) InZones(zones map[string]string) *Inventory {
	next := v.WithLabels(map[string]map[string]string{})
	next.hosts, next.places, next.notes = v.Hosts(), v.places, v.notes
	for name, zone := range zones {
		next.hosts[v.index[name]].Zone = zone
	}
	return next
}

// WithLabels returns the same inventory with additional labels for selectors: host to
// label to value. If a host already has such a label, also from an earlier call, the
// new value counts. The map belongs to the inventory from now on; Hosts and Version do
// not include it.
func (v *Inventory) WithLabels(more map[string]map[string]string) *Inventory {
	for host, labels := range v.extra {
		both := maps.Clone(labels)
		maps.Copy(both, more[host])
		more[host] = both
	}
	return &Inventory{hosts: v.hosts, limits: v.limits, index: v.index, knownHosts: v.knownHosts,
		warnings: v.warnings, hops: v.hops, extra: more}
}

// entry is a host as it was read, with the file and line that define it.
type entry struct {
	host       Host
	knownHosts string
	file       string
	line       int

	jump      []string // names of the host's own jump hosts, without the jump hosts of those
	jumpLine  int      // line that names them
	jumpGiven bool     // the host names them itself; otherwise the defaults of its file do
}

// place is the file and line that define a host.
type place struct {
	file string
	line int
}

// who returns the host's name for a message, quoted and cut if it is not a valid name.
func (e entry) who() string {
	if CheckName(e.host.Name) != nil {
		return fmt.Sprintf("host %q", abbreviate(e.host.Name))
	}
	return "host " + e.host.Name
}

// place returns " at file:line", or "" if the host came from no file.
func (e entry) place() string {
	if e.file == "" {
		return ""
	}
	return fmt.Sprintf(" at %s:%d", e.file, e.line)
}

// inventory finishes reading: it checks the rules that concern several hosts and adds
// their mistakes to those of the reader.
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

// build creates an inventory from what was read, without any check.
func (r *reader) build(hops map[string][]*Hop) *Inventory {
	slices.SortFunc(r.entries, func(a, b entry) int { return cmp.Compare(a.host.Name, b.host.Name) })
	v := &Inventory{
		hosts:      make([]Host, len(r.entries)),
		index:      make(map[string]int, len(r.entries)),
		hops:       hops,
		knownHosts: make(map[string]string),
		places:     make([]place, len(r.entries)),
		warnings:   r.warnings, notes: r.notes,
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

// checkNames reports names that several hosts share.
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

// checkAddresses warns of entries that may be the same host, because two jobs could then work
// on it at once. The same address with another user or other jump hosts may be another host.
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

// checkGroups reports redundancy groups whose rule cannot be enforced: the limit of a
// group lives in one zone and belongs to one customer. A group with one member only gets
// a warning, because its pair may be listed later.
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

// checkMembers compares a member of a group with the first member.
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
