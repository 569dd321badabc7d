package access

import (
	"slices"
	"strings"

	"muster/fleet"
)

// AllowsCustomer reports whether somebody may do something to all hosts of a customer, also to
// those that it will have: a grant covers them by the label of the customer, or has no limit of
// hosts. A standing order of somebody who may do it today on each single host would go on tomorrow,
// on hosts that nobody has granted.
func (r *Rights) AllowsCustomer(who Who, act Act, customer string) bool {
	verb := setOf(act.Verb)
	for g := range r.policy.of(who) {
		if g.covers(act, verb) && r.policy.rules.covers(g, customer) {
			return who.Scope == nil || who.Scope.rules.allow(act, customer)
		}
	}
	return false
}

func (r *rules) allow(act Act, customer string) bool {
	return slices.ContainsFunc(r.grants, func(g grant) bool {
		return g.covers(act, setOf(act.Verb)) && r.covers(&g, customer)
	})
}

// covers reports whether a grant has all hosts of a customer. It is careful: only the label of the
// customer alone counts.
func (r *rules) covers(g *grant, customer string) bool {
	return !slices.ContainsFunc(g.hosts, func(i int) bool {
		text := r.selectors[i].String()
		return text != "customer="+customer && text != "{customer="+customer+"}"
	})
}

// PicksOnly reports whether a selector can pick no host but those of one customer, whatever is in
// the inventory. It is careful: the text must begin with the label of the customer, as in
// customer=acme,role=fw and in {customer=acme}&(fw[1-3],vpn1)!fw2, and what follows must narrow it.
func PicksOnly(selector, customer string) bool {
	sel, err := fleet.ParseSelector(selector)
	if err != nil || customer == "" {
		return false
	}
	label := "customer=" + customer
	if rest, is := strings.CutPrefix(sel.String(), label); is {
		// An operand of a host set has no label outside of braces: all of these are label terms, and
		// each of them must hold.
		return rest == "" || rest[0] == ','
	}
	rest, is := strings.CutPrefix(sel.String(), "{"+label)
	return is && (rest[0] == '}' || rest[0] == ',') && narrows(rest)
}

// narrows reports whether only '&' and '!' join the operands of a selector, whose first brace was
// opened before the text. They are applied from left to right, so each leaves a part of the first.
func narrows(text string) bool {
	depth := 1
	for _, c := range text {
		switch c {
		case '{', '(', '[':
			depth++
		case '}', ')', ']':
			depth--
		case ',', '^':
			if depth == 0 {
				return false
			}
		}
	}
	return true
}
