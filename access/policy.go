package access

import (
	"iter"
	"slices"

	"muster/fleet"
	"muster/internal/strictyaml"
)

// Policy says which grants everybody has. Parse and Default create it; it never changes, and
// concurrent use is safe. The zero Policy allows nothing.
type Policy struct {
	file   string
	rules  rules
	byName map[string][]int // principal → indexes of grants
	groups map[string][]int // group → indexes of grants
	admins []string         // principals and groups that may grant
	doubts fleet.Mistakes
}

// Default returns the policy of a house without a file: the user of the machine that started the
// server, and root, are admins, and nobody else may do anything.
func Default(serverUser string) *Policy {
	p := &Policy{}
	for _, user := range []string{serverUser, "root"} {
		if name := "os:" + user; CheckPrincipal(name) == nil && p.byName[name] == nil {
			p.give("", name, grant{verbs: builtin["admin"], role: "admin"})
		}
	}
	return p
}

// give adds a grant of a group or of a principal.
func (p *Policy) give(group, principal string, g grant) {
	to, name := &p.byName, principal
	if group != "" {
		to, name = &p.groups, group
	}
	if *to == nil {
		*to = map[string][]int{}
	}
	(*to)[name] = append((*to)[name], len(p.rules.grants))
	p.rules.grants = append(p.rules.grants, g)
	if g.covers(Act{Verb: Admin}, setOf(Admin)) && !slices.Contains(p.admins, name) {
		p.admins = append(p.admins, name)
	}
}

// of yields the grants of somebody; the scope of a token does not matter here.
func (p *Policy) of(who Who) iter.Seq[*grant] {
	lists := [][]int{p.byName[who.Principal]}
	for _, group := range who.Groups {
		lists = append(lists, p.groups[group])
	}
	return func(yield func(*grant) bool) {
		for _, list := range lists {
			for _, i := range list {
				if !yield(&p.rules.grants[i]) {
					return
				}
			}
		}
	}
}

// Anything reports whether somebody has any grant that counts for something.
func (p *Policy) Anything(who Who) bool { return p.verbs(who) != 0 }

// Verbs returns every verb that some grant of the person gives, even for a single runbook on a
// single host, and that the scope of a token leaves. A client need not offer other verbs.
func (p *Policy) Verbs(who Who) []Verb { return p.verbs(who).list() }

func (p *Policy) verbs(who Who) verbSet {
	var all verbSet
	for g := range p.of(who) {
		all |= g.verbs &^ g.idle()
	}
	if who.Scope == nil {
		return all
	}
	var scope verbSet
	for i := range who.Scope.rules.grants {
		g := &who.Scope.rules.grants[i]
		scope |= g.verbs &^ g.idle()
	}
	return all & scope
}

// Admins returns the principals and groups that have the verb admin, in the order of the file:
// they can change who may do what.
func (p *Policy) Admins() []string { return slices.Clone(p.admins) }

// Doubts returns what is no mistake in the file but looks like one, with its place.
func (p *Policy) Doubts() fleet.Mistakes { return slices.Clone(p.doubts) }

// Grants returns how many grants the policy has: each role of a line counts its own.
func (p *Policy) Grants() int { return len(p.rules.grants) }

// Scope narrows what the owner of a token may do. A right must be in the owner's grants and in the
// scope, so a scope never adds anything. NewScope creates it; the zero Scope leaves nothing.
type Scope struct{ rules rules }

// NewScope reads the grants of a scope. The error joins all mistakes in them.
func NewScope(grants ...Grant) (*Scope, error) {
	s := &Scope{}
	r := reader{in: strictyaml.New(""), rules: &s.rules}
	for _, g := range grants {
		if read, ok := r.plain(g); ok {
			s.rules.grants = append(s.rules.grants, read)
		}
	}
	if len(grants) == 0 {
		r.in.Wrong(0, "the scope has no grants, so the token could do nothing: want at least one")
	}
	if err := r.in.Err(); err != nil {
		return nil, err
	}
	return s, nil
}
