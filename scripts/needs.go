package scripts

import (
	"fmt"
	"slices"
	"strings"

	"muster/fleet"
)

// A FactNeed is a fact that every host must have before a task of a runbook is accepted.
type FactNeed struct {
	Name  string // one of fleet.FactNames
	Value string // required value; empty: any
}

// Limits returns the names of the limits that a task needs.
func (f Frozen) Limits() []string { return slices.DeleteFunc(slices.Clone(f.Needs), isFact) }

// Facts returns the facts that a task needs.
func (f Frozen) Facts() []FactNeed {
	var list []FactNeed
	for _, text := range f.Needs {
		if name, ok := strings.CutPrefix(text, fleet.FactPrefix); ok {
			name, value, _ := strings.Cut(name, "=")
			list = append(list, FactNeed{name, value})
		}
	}
	return list
}

func isFact(need string) bool { return strings.HasPrefix(need, fleet.FactPrefix) }

// needs reads names of limits, and facts. The submit checks whether they exist.
func (p *parser) needs(v value) []string {
	items := p.items(v)
	if len(items) > needsMax {
		p.add(at(v.Node), "%d limits and facts: a runbook needs at most %d", len(items), needsMax)
		return nil
	}
	var names []string
	for _, item := range items {
		name, ok := p.text(item, wordMax)
		if !ok {
			continue
		}
		err := checkNeed(name)
		switch {
		case err != nil:
			p.add(at(item.Node), "needs: %s", err)
		case slices.Contains(names, name):
			p.add(at(item.Node), "%s is there twice", brief(name))
		}
		names = append(names, name)
	}
	return names
}

func checkNeed(text string) error {
	fact, ok := strings.CutPrefix(text, fleet.FactPrefix)
	if !ok {
		return fleet.CheckLimitName(text)
	}
	name, value, valued := strings.Cut(fact, "=")
	switch {
	case !slices.Contains(fleet.FactNames(), name):
		return fmt.Errorf("there is no fact %s: there are %s", brief(name),
			strings.Join(fleet.FactNames(), ", "))
	case valued && strings.TrimSpace(value) == "":
		return fmt.Errorf("fact %s: want a value behind =, or nothing: then any will do", name)
	}
	return nil
}
