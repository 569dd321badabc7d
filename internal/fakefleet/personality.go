package fakefleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Personality is the behaviour of a host. Each one except Normal is a fault that a real fleet has
// on any day.
type Personality string

// The personalities. Those of the first group never get as far as a login.
const (
	Refuse         Personality = "refuse"           // its port is closed
	Throttle       Personality = "throttle"         // resets some connections before the banner
	Silent         Personality = "silent"           // accepts TCP and never speaks
	Drip           Personality = "drip"             // writes one byte a second
	WrongKey       Personality = "wrong-key"        // shows another host key than the inventory has
	UnknownKeyType Personality = "unknown-key-type" // has only a key of a type not in the inventory

	HangAfterAuth Personality = "hang-after-auth" // answers no request for a channel
	Freeze        Personality = "freeze"          // sends nothing more once a command has started
	Cut           Personality = "cut"             // cuts the line while the command runs on
	NoExitStatus  Personality = "no-exit-status"  // closes the channel without an exit status

	NoReturn Personality = "no-return" // a reboot is the last sign of it

	LockOut Personality = "lock-out" // rules other than its first ones block the way to it

	Normal     Personality = "normal"
	Slow       Personality = "slow"        // has many times the latency
	Fail       Personality = "fail"        // every command exits with 1
	Flood      Personality = "flood"       // every command prints 100 MB first
	NoNewline  Personality = "no-newline"  // no output ever ends a line
	IgnoreTerm Personality = "ignore-term" // commands ignore TERM, only KILL ends them
	Stuck      Personality = "stuck"       // no signal ends a command, as when its disk is gone
)

// Personalities returns all of them, Normal first.
func Personalities() []Personality {
	return []Personality{
		Normal, Slow, Refuse, Throttle, Silent, Drip, WrongKey, UnknownKeyType,
		HangAfterAuth, Freeze, Cut, NoExitStatus, NoReturn, LockOut, Fail, Flood, NoNewline, IgnoreTerm,
		Stuck,
	}
}

// Mix is the fleet of the demo: every tenth host is slow, and of each three hundred hosts one
// refuses, one shows a wrong key, one cuts the line and one would lock itself out.
func Mix(i int) Personality {
	switch i % 300 {
	case 6:
		return Refuse
	case 12:
		return WrongKey
	case 20:
		return Cut
	case 25:
		return LockOut
	}
	if i%10 == 3 {
		return Slow
	}
	return Normal
}

// Count is the number of hosts with one personality.
type Count struct {
	Personality Personality `json:"personality"`
	Hosts       int         `json:"hosts"`
}

// Summary counts the hosts of each personality that occurs, in the order of Personalities: the
// truth for a comparison with a report.
func (f *Fleet) Summary() []Count {
	of := map[Personality]int{}
	for _, h := range f.hosts {
		of[h.personality]++
	}
	var counts []Count
	for _, p := range Personalities() {
		if of[p] > 0 {
			counts = append(counts, Count{p, of[p]})
		}
	}
	return counts
}

// Names returns the names of the hosts that have a personality.
func (f *Fleet) Names(p Personality) []string {
	var names []string
	for _, h := range f.hosts {
		if h.personality == p {
			names = append(names, h.name)
		}
	}
	return names
}

// Touch makes an empty file on the hosts with these names, or without names on all, like a process
// that nobody sees. A command that waits for the file then continues.
func (f *Fleet) Touch(path string, names ...string) error {
	var errs []error
	for _, h := range f.hosts {
		if len(names) == 0 || slices.Contains(names, h.name) {
			errs = append(errs, h.machine.Touch(path))
		}
	}
	return errors.Join(errs...)
}

// Rules lists the rules of the packet filter that a host has at this moment; empty: none.
func (f *Fleet) Rules(name string) string {
	for _, h := range f.hosts {
		if h.name == name {
			return h.machine.Rules()
		}
	}
	return ""
}

func (p Personality) check() error {
	all := Personalities()
	if slices.Contains(all, p) {
		return nil
	}
	known := make([]string, len(all))
	for i, k := range all {
		known[i] = string(k)
	}
	return fmt.Errorf("personality %q is unknown: use one of %s", p, strings.Join(known, ", "))
}
