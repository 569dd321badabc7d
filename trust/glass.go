package trust

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"muster/internal/wording"
)

// glass reads the names of those who may run work alone that a level wants more people for.
func (r *policyReader) glass(n *yaml.Node, l Level) []string {
	switch {
	case n.Kind != yaml.SequenceNode || len(n.Content) == 0:
		r.mistake(n, "break_glass: want a list of names as allowed_signers has them, such as "+
			"[user:dora]")
		return nil
	case l.People == 0:
		r.mistake(n, "break_glass: nothing is to be broken where the rule does not say people: 2; "+
			"leave it out")
	}
	var names []string
	for _, one := range n.Content {
		if one.Kind != yaml.ScalarNode || one.Value == "" || isServer(one.Value) {
			r.mistake(one, "break_glass: %s: want the name of a person, such as user:dora",
				wording.Quote(one.Value))
			continue
		}
		names = append(names, one.Value)
	}
	return names
}

// breaks reports whether the one who ordered has signed that they break the glass, and a rule lets
// them.
func (s *Standing) breaks(r Rule) bool {
	if s.Order.BreakGlass == "" {
		return false
	}
	return slices.ContainsFunc(s.People, func(names []string) bool {
		return slices.Contains(names, s.Spec.Operator) &&
			slices.ContainsFunc(names, func(name string) bool { return slices.Contains(r.Glass, name) })
	})
}

// meets says what the signatures of an order lack for a rule; nil: nothing. broken: they are fewer
// than the rule wants, and it lets the one who ordered break the glass.
func (s *Standing) meets(r Rule) (broken bool, err error) {
	err = s.Meets(r.Level)
	if err == nil || s.breaks(r) {
		return err != nil, nil
	}
	if s.Order.BreakGlass != "" {
		err = fmt.Errorf("%w; and %s may not break the glass there (break_glass)", err, s.Spec.Operator)
	}
	return false, err
}
