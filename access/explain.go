package access

import (
	"fmt"
	"slices"
	"strings"

	"muster/fleet"
	"muster/internal/wording"
)

// Answer says whether somebody may do something, and why.
type Answer struct {
	Allowed bool   `json:"allowed"`
	By      string `json:"by,omitempty"`   // file and line of the grant that allows it
	Role    string `json:"role,omitempty"` // of that grant; empty: it has none
	Words   string `json:"words"`          // a sentence: the grant, or what is missing
	// Ask are the principals and groups that may grant it, of a refusal; not of one for which the
	// scope of a token is to blame.
	Ask []string `json:"ask,omitempty"`
}

// Explain answers as Allows does, and gives the reason.
func (r *Rights) Explain(who Who, act Act, host string) Answer {
	g := r.grantFor(who, act, host)
	switch {
	case g == nil:
		a := Answer{Ask: r.policy.Admins()}
		a.Words = fmt.Sprintf("%s: %s; %s", question(who, act, host, false), r.missing(who, act, host),
			askWhom(a.Ask))
		return a
	case !r.inScope(who.Scope, act, host):
		return Answer{Words: fmt.Sprintf("%s: the owner of the token may, by %s, but the scope of the "+
			"token does not have it: %s", question(who, act, host, false), r.shown(g),
			who.Scope.rules.some(who.Scope.rules.all()))}
	}
	return Answer{Allowed: true, By: placeOf(r.policy.file, g), Role: g.role,
		Words: question(who, act, host, true) + ": " + r.shown(g)}
}

// question returns the beginning of an answer, as in: os:alice may run firewall on fw001.
func question(who Who, act Act, host string, allowed bool) string {
	text := who.Principal + " may not " + act.String()
	if allowed {
		text = who.Principal + " may " + act.String()
	}
	switch {
	case host != "":
		text += " on " + host
	case !act.Verb.ofHouse():
		text += " in the whole house"
	}
	return text
}

// shown describes a grant with its place, as in: access.yaml:12 gives role operator (see, plan).
func (r *Rights) shown(g *grant) string {
	return placeOf(r.policy.file, g) + " gives " + r.policy.rules.words(g)
}

// missing returns the reason why no grant allows an act: the grants that come closest to it, and
// what they lack.
func (r *Rights) missing(who Who, act Act, host string) string {
	mine := slices.Collect(r.policy.of(who))
	if len(mine) == 0 {
		return "no grant is for it" + ofGroups(who.Groups)
	}
	verb := setOf(act.Verb)
	var have verbSet
	var withVerb, covering []*grant
	for _, g := range mine {
		have |= g.verbs
		if g.verbs&verb != 0 {
			withVerb = append(withVerb, g)
		}
		if g.covers(act, verb) {
			covering = append(covering, g)
		}
	}
	rules := &r.policy.rules
	switch {
	case len(withVerb) == 0:
		return fmt.Sprintf("it has the verbs %s only", have)
	case len(covering) == 0:
		return r.uncovered(act) + ": " + rules.some(withVerb)
	case host == "":
		return "its grants are for some hosts only: " + rules.some(covering)
	case !r.known(host):
		return fmt.Sprintf("the inventory has no host %s, and its grants are for some hosts only: %s",
			host, rules.some(covering))
	}
	return fmt.Sprintf("its grants are for other hosts than %s: %s", host, rules.some(covering))
}

// uncovered returns what the limits of all grants with the verb lack.
func (r *Rights) uncovered(act Act) string {
	switch {
	case act.Verb == Admin || act.Verb == Audit:
		return fmt.Sprintf("%s concerns the whole house, and its grants are limited", act.Verb)
	case act.Runbook == "" && act.Verb == Author:
		return "its grants are limited to some runbooks, or to hosts, which do not count for author"
	case act.Verb == Author:
		return fmt.Sprintf("its grants are for other runbooks than %s, or for some hosts only, which do "+
			"not count for author", act.Runbook)
	case act.Runbook == "":
		return "this is about no runbook, and its grants are for some runbooks only"
	}
	return "its grants are for other runbooks than " + act.Runbook
}

func (r *Rights) known(host string) bool { return r.at(host) >= 0 }

func ofGroups(groups []string) string {
	if len(groups) == 0 {
		return ", and it came without groups"
	}
	return ", nor for its groups " + wording.ClipList(strings.Join(groups, ","))
}

func askWhom(admins []string) string {
	if len(admins) == 0 {
		return "nobody may grant it, because nobody has admin for the whole house"
	}
	return "who may grant it: " + wording.ClipList(strings.Join(admins, ", "))
}

func (r *rules) all() []*grant {
	var list []*grant
	for i := range r.grants {
		list = append(list, &r.grants[i])
	}
	return list
}

// some describes up to three grants.
func (r *rules) some(grants []*grant) string {
	var list []string
	for _, g := range grants[:min(examplesMax, len(grants))] {
		text := r.words(g)
		if g.line > 0 {
			text = fmt.Sprintf("line %d: %s", g.line, text)
		}
		list = append(list, text)
	}
	if more := len(grants) - examplesMax; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}

// Doubts returns what in the limits of hosts fits the inventory badly, with its place: names that
// no host has, and selectors that pick none. Names behind '!' matter most, because a mistyped
// exception excepts nothing.
func (r *Rights) Doubts() fleet.Mistakes {
	var list fleet.Mistakes
	for i, sel := range r.policy.rules.selectors {
		set := r.ofPolicy(i)
		at := fleet.Mistake{File: r.policy.file, Line: sel.line}
		switch {
		case set.err != nil:
			at.Text = fmt.Sprintf("hosts %s picks nothing here: %v", wording.Quote(sel.String()), set.err)
		case len(set.lost) > 0:
			at.Text = fmt.Sprintf("hosts %s: no host has the name %s", wording.Quote(sel.String()),
				wording.ClipList(fleet.Fold(set.lost)))
		case !slices.ContainsFunc(set.words, func(word uint64) bool { return word != 0 }):
			at.Text = fmt.Sprintf("hosts %s picks no host", wording.Quote(sel.String()))
		default:
			continue
		}
		list = append(list, at)
	}
	list.Sort([]string{r.policy.file})
	return list
}
