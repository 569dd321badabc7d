package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// jumpsMax bounds the jump hosts on the way to one host.
const jumpsMax = 8

// jump reads the names of jump hosts: one name, or a list in the order of dialing. An
// empty list overrules the defaults.
func (r *reader) jump(n *yaml.Node, e *entry) {
	if n == nil {
		return
	}
	e.jump, e.jumpLine = nil, n.Line
	r.values(n, "jump", &e.jump, CheckName)
}

// resolveJumps replaces the names of jump hosts by everything that a login to them needs.
// It returns the copies of each jump host by its name.
func (r *reader) resolveJumps() map[string][]*Hop {
	ways := wayfinder{reader: r, index: map[string]int{}, found: map[string][]Hop{}}
	asked := false
	for i, e := range r.entries {
		if _, twice := ways.index[e.host.Name]; !twice {
			ways.index[e.host.Name] = i
		}
		asked = asked || len(e.jump) > 0
	}
	if !asked {
		return nil
	}
	ways.state = make([]wayState, len(r.entries))
	for i := range r.entries {
		ways.resolve(i, nil)
	}
	hops := map[string][]*Hop{}
	for _, way := range ways.found {
		for i := range way {
			hops[way[i].Name] = append(hops[way[i].Name], &way[i])
		}
	}
	return hops
}

// wayfinder resolves the jump hosts of all hosts. Hosts that name the same jump hosts share
// one slice, because thousands may be behind the same bastion.
type wayfinder struct {
	*reader
	index map[string]int   // name → index in entries
	state []wayState       // of each entry
	found map[string][]Hop // by the joined names of a way
	said  map[Mistake]bool // mistakes already reported; defaults would repeat them for each host
}

type wayState int

const (
	wayUnknown wayState = iota
	wayAsked            // being resolved: to meet it again means a circle
	wayKnown
)

// resolve finds the way to a host, after the way to its first jump host. askedBy names the
// hosts whose resolution led to this call.
func (w *wayfinder) resolve(i int, askedBy []string) {
	if w.state[i] != wayUnknown {
		return
	}
	w.state[i] = wayAsked
	defer func() { w.state[i] = wayKnown }()

	e := &w.entries[i]
	names := w.names(e)
	if len(names) == 0 {
		return
	}
	askedBy = append(askedBy, e.host.Name)
	first, known := w.index[names[0]]
	if known && w.state[first] == wayAsked {
		circle := append(askedBy[slices.Index(askedBy, names[0]):], names[0])
		w.mistakeAtJump(e, "%s: jump goes in a circle, %s: one of them must have \"jump: []\"",
			e.who(), strings.Join(circle, " → "))
		return
	}
	var before []Hop
	if known {
		w.resolve(first, askedBy)
		before = w.entries[first].host.Jump
	}
	e.host.Jump = w.way(e, before, names)
}

// names returns the jump hosts that apply to a host. If the defaults of its file name the
// host itself as a jump host, only the names before it apply.
func (w *wayfinder) names(e *entry) []string {
	if own := slices.Index(e.jump, e.host.Name); own >= 0 && !e.jumpGiven {
		return e.jump[:own]
	}
	return e.jump
}

func (w *wayfinder) way(e *entry, before []Hop, names []string) []Hop {
	way := slices.Clone(before)
	for _, name := range names {
		i, known := w.index[name]
		switch stranger := w.stranger(name); {
		case !known && stranger != nil:
			way = append(way, *stranger)
			continue
		case !known:
			w.mistakeAtJump(e, "jump host %q is not in the inventory%s", abbreviate(name),
				suggest(name, sortedKeys(w.index)))
			return nil
		case name == e.host.Name:
			w.mistakeAtJump(e, "%s cannot be reached through itself: take it out of jump", e.who())
			return nil
		}
		way = append(way, w.entries[i].host.Hop())
	}
	if err := checkRoute(wayNames(way)); err != nil {
		w.mistakeAtJump(e, "%s: jump %v", e.who(), err)
		return nil
	}
	key := strings.Join(wayNames(way), "\x00")
	if same, known := w.found[key]; known {
		return same
	}
	w.found[key] = way
	return way
}

// stranger returns the jump host of that name which is not a host, or nil.
func (w *wayfinder) stranger(name string) *Hop {
	for i := range w.strangers {
		if w.strangers[i].Name == name {
			return &w.strangers[i]
		}
	}
	return nil
}

func (w *wayfinder) mistakeAtJump(e *entry, format string, args ...any) {
	m := Mistake{e.file, e.jumpLine, fmt.Sprintf(format, args...)}
	if w.said == nil {
		w.said = map[Mistake]bool{}
	}
	if !w.said[m] {
		w.said[m] = true
		w.mistakes = append(w.mistakes, m)
	}
}

func wayNames(way []Hop) []string {
	names := make([]string, len(way))
	for i := range way {
		names[i] = way[i].Name
	}
	return names
}

// checkWay returns the mistakes in jump hosts that are already resolved. Its errors
// continue a sentence which begins with "jump".
func checkWay(way []Hop) error {
	errs := []error{checkRoute(wayNames(way))}
	for _, h := range way {
		// A jump host must pass the checks of a host; it gets defaults for its missing fields.
		as := Host{Name: h.Name, Address: h.Address, Port: h.Port, User: h.User, Key: h.Key,
			HostKeys: h.HostKeys, Zone: DefaultZone, Fence: FenceAuto, HostCert: h.HostCert,
			Access: Access{Certificate: h.Certificate, Profile: h.Profile}}
		for _, err := range checkHost(&as) {
			errs = append(errs, fmt.Errorf("host %q: %w", abbreviate(h.Name), err))
		}
	}
	return errors.Join(errs...)
}

// checkRoute accepts a way that is short and passes each host once.
func checkRoute(names []string) error {
	if len(names) > jumpsMax {
		return fmt.Errorf("has %d hosts on the way: at most %d", len(names), jumpsMax)
	}
	for i, name := range names {
		if slices.Index(names, name) < i {
			return fmt.Errorf("passes host %q twice: %s", abbreviate(name),
				strings.Join(names, " → "))
		}
	}
	return nil
}
