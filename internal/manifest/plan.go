package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Change is the effect of an apply on an entry.
type Change string

// The changes.
const (
	Added     Change = "added"
	Changed   Change = "changed"
	Unchanged Change = "unchanged"
	Removed   Change = "removed"
	// Kept is the effect on an entry of the same origin that no file names, and nobody prunes.
	Kept Change = "kept"
)

// A Step is the part of an apply that concerns one entry.
type Step struct {
	Change      Change
	Is, Was     Entry    // of a removed entry only Was is set, of an added one only Is
	Differences []string // key: old → new
	Origin      string   // from now on; empty: none
	Moved       bool     // the origin is another one than before
}

// Entry returns the entry of a step.
func (s Step) Entry() Entry {
	if s.Is.Kind == "" {
		return s.Was
	}
	return s.Is
}

// Does reports whether a step writes anything.
func (s Step) Does() bool { return s.Change != Kept && (s.Change != Unchanged || s.Moved) }

// Manner says how people apply.
type Manner struct {
	Origin string // the place from which the entries come; empty: none
	From   string // the origin from which this one takes entries over; empty: none
	Prune  bool   // remove entries of the origin that no file names
}

// Plan returns the steps that make the entries of files come into force. there are the entries in
// force, and origins the origin of each by its ID. The error reports all that forbids it.
func (m Manner) Plan(want, there []Entry, origins map[string]string) ([]Step, error) {
	var steps []Step
	var wrong []error
	was, named := map[string]Entry{}, map[string]bool{}
	for _, e := range there {
		was[e.ID()] = e
	}
	for _, e := range want {
		named[e.ID()] = true
		old, found := was[e.ID()]
		s := Step{Change: Added, Is: e, Was: old, Origin: m.Origin, Moved: origins[e.ID()] != m.Origin}
		if found {
			if err := m.mayChange(e, old, origins[e.ID()]); err != nil {
				wrong = append(wrong, err)
				continue
			}
			k, _ := kindOf(e.Kind)
			s.Change, s.Differences = Changed, k.differences(e, old)
			if len(s.Differences) == 0 {
				s.Change = Unchanged
			}
			if err := m.mayOverrule(s); err != nil {
				wrong = append(wrong, err)
				continue
			}
			s.Moved = s.Moved && old.File == ""
		}
		steps = append(steps, s)
	}
	for _, e := range there {
		if named[e.ID()] || e.File != "" || m.Origin == "" || origins[e.ID()] != m.Origin {
			continue
		}
		s := Step{Change: Kept, Was: e, Origin: m.Origin}
		if m.Prune {
			s.Change, s.Origin, s.Moved = Removed, "", true
		}
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Entry().Name, b.Entry().Name))
	})
	return steps, inOrder(wrong)
}

// rank returns the place of the kind of a step among all kinds.
func rank(s Step) int {
	return slices.IndexFunc(kinds, func(k kind) bool { return k.word == s.Entry().Kind })
}

// mayChange returns the reason why an entry in force must not be replaced.
func (m Manner) mayChange(e, old Entry, origin string) error {
	switch {
	case old.File == "" && origin != "" && origin != m.Origin && origin != m.From:
		return fmt.Errorf("%s: %s", e.Place, Elsewhere(e.Kind, e.Name, origin))
	case old.Customer != "" && old.Customer != e.Customer:
		return fmt.Errorf("%s: %s %s is there already, and belongs to customer %s: names are unique",
			e.Place, e.Kind, e.Name, old.Customer)
	}
	return nil
}

// mayOverrule returns the reason why an entry that stands in a file of a server must not be
// changed, or come from an origin.
func (m Manner) mayOverrule(s Step) error {
	if s.Was.File == "" || s.Change == Unchanged && m.Origin == "" {
		return nil
	}
	if s.Was.File == BuiltIn {
		return fmt.Errorf("%s: %s %s is built in: choose another name", s.Is.Place, s.Is.Kind, s.Is.Name)
	}
	return fmt.Errorf("%s: %s %s stands in %s, which servers read by themselves: change it there, or "+
		"take it out of there before you apply it", s.Is.Place, s.Is.Kind, s.Is.Name, s.Was.File)
}

// Elsewhere says where people change an entry that has an origin.
func Elsewhere(kind, name, origin string) string {
	return fmt.Sprintf("%s %s comes from %s: change it there, or take it over with "+
		"`muster apply FILE --take-from %s`", kind, name, origin, origin)
}

const originMax = 200 // bytes

// CheckOrigin returns what is wrong with the name of an origin; nil: nothing is.
func CheckOrigin(name string) error {
	ok := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune(".-_:/@+~", r)
	}
	if name == "" || len(name) > originMax || name[0] == '-' ||
		strings.ContainsFunc(name, func(r rune) bool { return !ok(r) }) {
		return fmt.Errorf("origin %q: want a name such as git:rules, of at most %d letters, digits "+
			"and . - _ : / @ + ~", clip(name), originMax)
	}
	return nil
}

func clip(text string) string {
	if len(text) > originMax {
		return text[:originMax] + "…"
	}
	return text
}
