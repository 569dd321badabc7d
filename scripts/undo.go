package scripts

import (
	"fmt"
	"slices"
)

// This file handles runbooks that go out in stages: first they only prepare, then they act,
// and another runbook reverts them if too many fail.

// undoOf is the argument of a reverting runbook that names the task to revert.
const undoOf = "of"

// staging reads the name of the argument that makes a runbook only prepare.
func (p *parser) staging(v value) string {
	name, ok := p.text(v, nameMax)
	a := p.argument(name)
	if ok && (a == nil || a.Type != TypeBool || a.Required || a.Default != "false") {
		p.add(at(v.Node), "staging: want an argument of type bool with the default false, which %s "+
			"is not", brief(name))
	}
	return name
}

// checkUndos reports mistakes in runbooks that revert others. It ignores runbooks that have
// mistakes themselves, because a mistake may hide their name.
func (c *Catalog) checkUndos(read []reading) {
	unsure := map[string]bool{}
	nameless := false
	for _, one := range read {
		nameless = nameless || one.Runbook == nil || one.Name == ""
		if one.Runbook != nil && len(one.mistakes) > 0 {
			unsure[one.Name] = true
		}
	}
	for _, one := range read {
		if one.Runbook == nil || unsure[one.Undo] {
			continue
		}
		_, missing := c.Lookup(one.Undo)
		if err := c.checkUndo(one.Runbook); err != nil && (missing == nil || !nameless) {
			one.add(one.undo, "%s", err)
		}
	}
}

// checkUndo returns the mistake in the runbook that reverts r.
func (c *Catalog) checkUndo(r *Runbook) error {
	if r.Undo == "" {
		return nil
	}
	undo, err := c.Lookup(r.Undo)
	if err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	i := slices.IndexFunc(undo.Arguments, func(a Argument) bool { return a.Name == undoOf })
	if i < 0 || undo.Arguments[i].Type != TypeString {
		return fmt.Errorf("undo: runbook %s has no argument %s of type string, which is the task "+
			"that it is to take back", undo.Name, undoOf)
	}
	for _, a := range undo.Arguments {
		if a.Required && a.Name != undoOf {
			return fmt.Errorf("undo: runbook %s needs the argument %s, and nobody is there to give "+
				"it", undo.Name, brief(a.Name))
		}
	}
	return nil
}

// Takeback returns the runbook that reverts r, with the values for a task, or nil.
func (c *Catalog) Takeback(r *Runbook, task string) (*Frozen, error) {
	if r.Undo == "" {
		return nil, nil
	}
	undo, err := c.Lookup(r.Undo)
	if err != nil {
		return nil, err
	}
	values, err := undo.Bind(map[string]string{undoOf: task}, nil)
	if err != nil {
		return nil, fmt.Errorf("undo: %w", err)
	}
	frozen, err := undo.Freeze(values).Only("")
	return &frozen, err
}
