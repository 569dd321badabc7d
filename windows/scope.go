package windows

import (
	"fmt"
	"iter"
)

// Level says for whom a window or a freeze is: for a host, a group and so on. The order is from
// the general to the special.
type Level int

// The levels.
const (
	Everyone Level = iota // freezes only
	Customer
	Site
	Group
	Host
)

var levels = [...]string{"everyone", "customer", "site", "group", "host"}

// String returns the word for the level in a file.
func (l Level) String() string {
	if l < 0 || int(l) >= len(levels) {
		return fmt.Sprintf("level %d", int(l))
	}
	return levels[l]
}

// Scope names the hosts for which a window or a freeze is.
type Scope struct {
	Level Level
	Name  string // empty for everyone
}

// String returns a text such as "customer acme".
func (s Scope) String() string {
	if s.Level == Everyone {
		return s.Level.String()
	}
	return s.Level.String() + " " + s.Name
}

// Place is the place of some work: a host, with all names by which a scope can include it.
type Place struct {
	Host     string
	Group    string // redundancy group; empty: none
	Site     string // the host's label "site"; empty: none
	Customer string
}

// Scopes yields all scopes that include the place, the most special first.
func (p Place) Scopes() iter.Seq[Scope] { return p.scopes() }

// scopes yields all scopes that include the place, the most special first.
func (p Place) scopes() iter.Seq[Scope] {
	return func(yield func(Scope) bool) {
		for _, s := range [...]Scope{{Host, p.Host}, {Group, p.Group}, {Site, p.Site},
			{Customer, p.Customer}} {
			if s.Name != "" && !yield(s) {
				return
			}
		}
		yield(Scope{})
	}
}
