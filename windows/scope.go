package windows

import (
	"fmt"
	"iter"
)

// Level is what a window or a freeze is for. The order is from the general to the
// special.
type Level int

// The levels.
const (
	Everyone Level = iota // only freezes
	Customer
	Site
	Group
	Host
)

var levels = [...]string{"everyone", "customer", "site", "group", "host"}

// String is the word for the level, as in a file.
func (l Level) String() string {
	if l < 0 || int(l) >= len(levels) {
		return fmt.Sprintf("level %d", int(l))
	}
	return levels[l]
}

// Scope is who or what a window or a freeze is for.
type Scope struct {
	Level Level
	Name  string // empty for everyone
}

// String is as in "customer acme".
func (s Scope) String() string {
	if s.Level == Everyone {
		return s.Level.String()
	}
	return s.Level.String() + " " + s.Name
}

// Place is where work is to be done: a host, with all that a scope can name.
type Place struct {
	Host     string
	Group    string // redundancy group; empty: none
	Site     string // its label "site"; empty: none
	Customer string
}

// Scopes are all that may be for the place, the most special first.
func (p Place) Scopes() iter.Seq[Scope] { return p.scopes() }

// scopes are all that may be for the place, the most special first.
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
