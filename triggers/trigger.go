package triggers

import (
	"slices"
	"strings"
	"time"

	"muster/windows"
)

// Prefix begins the principal of a trigger, trigger:NAME. The file of access grants it what it may
// do.
const Prefix = "trigger:"

// A Set has the triggers of a file, or of several places.
type Set struct{ list []Trigger }

// NewSet returns a set of triggers, whose names differ.
func NewSet(list []Trigger) *Set { return &Set{slices.Clone(list)} }

// All returns the triggers in the order of the file. The caller owns the list.
func (s *Set) All() []Trigger {
	if s == nil {
		return nil
	}
	return slices.Clone(s.list)
}

// Find returns the trigger with a name.
func (s *Set) Find(name string) (Trigger, bool) {
	for _, t := range s.All() {
		if t.Name == name {
			return t, true
		}
	}
	return Trigger{}, false
}

// Wants reports whether a trigger that is enabled waits for such events.
func (s *Set) Wants(source, kind string) bool {
	return slices.ContainsFunc(s.All(), func(t Trigger) bool {
		return t.Enabled && fitsAny(t.Match.Sources, source) &&
			(len(t.Match.Kinds) == 0 || fitsAny(t.Match.Kinds, kind))
	})
}

// Applied has the triggers that people put in force beside those of a file.
type Applied struct {
	List    []Trigger
	Trouble string // why others are not in the list; empty: there are no others
}

// A Trigger says which events start which task.
type Trigger struct {
	Name     string
	File     string
	Line     int // in its file
	Enabled  bool
	Match    Match
	Debounce *Debounce // nil: each event fires at once
	Limit    Limit
	Work     Work
}

// Principal returns the name under which the trigger submits tasks.
func (t Trigger) Principal() string { return Prefix + t.Name }

// IsPrincipal reports whether a name is that of a trigger.
func IsPrincipal(name string) bool { return strings.HasPrefix(name, Prefix) }

// Match says which events concern a trigger: all of it must hold.
type Match struct {
	Sources   []string // globs, one at least
	Kinds     []string // globs; none: all
	Customers []string // globs; none: all, and events of no customer
	When      []Condition
}

// A Condition compares the values of a field. It holds if one of them fits.
type Condition struct {
	Field  Field
	Op     Op
	Values []string // of equals and glob: one; of exists: true or false
	Line   int
}

// Op is the way in which a condition compares.
type Op string

// The ways to compare.
const (
	Equals Op = "equals"
	Glob   Op = "glob"
	OneOf  Op = "one_of"
	Exists Op = "exists"
)

// Debounce collects events that follow each other: the trigger fires with the last of them.
type Debounce struct {
	Quiet   time.Duration // it fires when no event has come for so long
	Longest time.Duration // and so long after the first one in any case
	By      *Field        // events with different values are collected apart; nil: all together
}

// Limit bounds how often a trigger fires.
type Limit struct {
	Most int
	Per  time.Duration
}

// Work is the task that a trigger submits.
type Work struct {
	Runbook    string
	Args       []Argument
	Aim        Aim
	Hold       bool // it waits for signatures of people
	Window     bool // its jobs begin in windows only, whatever the runbook says
	Expire     string
	Expect     string
	Priority   string
	Supersedes string
	Only       string // check or diff: a dry run on the hosts
	Disruptive bool
	Rollout    *windows.RolloutRequest // nil: all hosts at once, whatever fails
}

// An Argument is an argument of the runbook with the place of its value: exactly one of the three.
type Argument struct {
	Name  string
	Text  *string // written in the file of triggers
	Field *Field  // found in the event
	File  string  // the content of this file, as it is when the trigger fires
	Line  int
}

// Aim says on which hosts a trigger works. The selector picks some; host and labels leave of them
// those that the event means.
type Aim struct {
	On     string // a selector of the file; no value of an event gets into it
	Host   *Field // the exact names of hosts; nil: all that are picked
	Labels []LabelField
	AtMost int // more hosts are refused whole
	Line   int
}

// A LabelField is a label whose value an event says.
type LabelField struct {
	Label string
	Field Field
}
