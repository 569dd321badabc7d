package access_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/access"
	"muster/fleet"
)

// holder is a line of a file: somebody with a grant.
type holder struct {
	name  string
	group bool
	grant access.Grant
}

var (
	people    = []string{"os:alice", "os:bob", "user:ci"}
	circles   = []string{"os-group:ops", "group:net"}
	books     = []string{"", "firewall", "firmware", "dns-roll"}
	hostNames = []string{"", "fw001", "fw002", "fw003", "ns1", "gone7"}
)

func drawGrant(t *rapid.T) access.Grant {
	return access.Grant{
		Verbs: rapid.SliceOfNDistinct(rapid.SampledFrom(access.Verbs()), 1, 3, rapid.ID).Draw(t, "verbs"),
		Runbooks: rapid.SliceOfN(rapid.SampledFrom([]string{"*", "fir*", "firewall", "dns?roll", "*r*"}), 0, 2).
			Draw(t, "runbooks"),
		Hosts: rapid.SampledFrom([]string{"", "all", "customer=acme", "role=fw", "fw00[1-2]", "fw001,gone7", "gone*",
			"all!fw003"}).Draw(t, "hosts"),
	}
}

// idle reports whether a grant could do nothing, which the parser refuses.
func idle(g access.Grant) bool {
	return !slices.ContainsFunc(g.Verbs, func(v access.Verb) bool { return counts(g, v) })
}

// counts is the rule for verbs that concern the whole house.
func counts(g access.Grant, v access.Verb) bool {
	someHosts := g.Hosts != "" && g.Hosts != "all"
	someBooks := len(g.Runbooks) > 0 && !slices.Contains(g.Runbooks, "*")
	switch v {
	case access.Admin, access.Audit:
		return !someHosts && !someBooks
	case access.Author:
		return !someHosts
	}
	return true
}

func drawHolders(t *rapid.T) []holder {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) holder {
		h := holder{name: rapid.SampledFrom(slices.Concat(people, circles)).Draw(t, "name"), grant: drawGrant(t)}
		h.group = slices.Contains(circles, h.name)
		return h
	}).Filter(func(h holder) bool { return !idle(h.grant) }), 0, 6).Draw(t, "holders")
}

// written returns a file with these lines.
func written(holders []holder) string {
	var b strings.Builder
	b.WriteString("who:\n  - {principal: os:root, roles: [admin]}\n")
	for _, h := range holders {
		key := "principal"
		if h.group {
			key = "group"
		}
		fmt.Fprintf(&b, "  - %s: %s\n    grants:\n      - verbs: [", key, h.name)
		for i, v := range h.grant.Verbs {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(string(v))
		}
		b.WriteString("]\n")
		if len(h.grant.Runbooks) > 0 {
			fmt.Fprintf(&b, "        runbooks: ['%s']\n", strings.Join(h.grant.Runbooks, "', '"))
		}
		if h.grant.Hosts != "" {
			fmt.Fprintf(&b, "        hosts: '%s'\n", h.grant.Hosts)
		}
	}
	return b.String()
}

// naive answers a question by the definition, without sets and indexes.
func naive(inv *fleet.Inventory, grants []access.Grant, a access.Act, host string) bool {
	return slices.ContainsFunc(grants, func(g access.Grant) bool {
		if !slices.Contains(g.Verbs, a.Verb) || !counts(g, a.Verb) {
			return false
		}
		if a.Verb != access.Admin && a.Verb != access.Audit && !naiveBook(g, a) {
			return false
		}
		return g.Hosts == "" || g.Hosts == "all" || naiveHost(inv, g.Hosts, host)
	})
}

func naiveBook(g access.Grant, a access.Act) bool {
	if len(g.Runbooks) == 0 || slices.Contains(g.Runbooks, "*") {
		return true
	}
	if a.Runbook == "" {
		return a.Verb == access.See
	}
	return slices.ContainsFunc(g.Runbooks, func(text string) bool {
		pattern := strings.NewReplacer("*", ".*", "?", ".").Replace(text)
		return regexp.MustCompile("^" + pattern + "$").MatchString(a.Runbook)
	})
}

// naiveHost knows the selectors of drawGrant by their meaning.
func naiveHost(inv *fleet.Inventory, selector, name string) bool {
	h, known := inv.Host(name)
	if !known {
		return false
	}
	switch selector {
	case "customer=acme":
		return h.Customer == "acme"
	case "role=fw":
		return h.Labels["role"] == "fw"
	case "fw00[1-2]":
		return name == "fw001" || name == "fw002"
	case "fw001,gone7":
		return name == "fw001"
	case "gone*":
		return false
	case "all!fw003":
		return name != "fw003"
	}
	panic(selector)
}

func drawAct(t *rapid.T) access.Act {
	return access.Act{Verb: rapid.SampledFrom(access.Verbs()).Draw(t, "verb"),
		Runbook: rapid.SampledFrom(books).Draw(t, "runbook")}
}

func drawWho(t *rapid.T) access.Who {
	return access.Who{Principal: rapid.SampledFrom(people).Draw(t, "who"),
		Groups: rapid.SliceOfDistinct(rapid.SampledFrom(circles), rapid.ID).Draw(t, "groups")}
}

func TestAnswersAreThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	inv := inventory(t)
	rapid.Check(t, func(t *rapid.T) {
		holders, who, a := drawHolders(t), drawWho(t), drawAct(t)
		p, err := access.Parse(fleet.Source{Name: "f", Data: []byte(written(holders))})
		if err != nil {
			t.Fatal(err)
		}
		var own, scope []access.Grant
		for _, h := range holders {
			if h.name == who.Principal || slices.Contains(who.Groups, h.name) {
				own = append(own, h.grant)
			}
		}
		if rapid.Bool().Draw(t, "scoped") {
			scope = rapid.SliceOfN(rapid.Custom(drawGrant).Filter(func(g access.Grant) bool { return !idle(g) }), 1, 3).
				Draw(t, "scope")
			if who.Scope, err = access.NewScope(scope...); err != nil {
				t.Fatal(err)
			}
		}
		r := p.Over(inv)
		hosts := r.Hosts(who, a)
		refused := r.Refused(who, a, hostNames[1:])
		for _, host := range hostNames {
			want := naive(inv, own, a, host) && (who.Scope == nil || naive(inv, scope, a, host))
			if got := r.Allows(who, a, host); got != want {
				t.Errorf("%v %v on %q: %v, want %v, by\n%s", who, a, host, got, want, written(holders))
			}
			if got := r.Explain(who, a, host); got.Allowed != want || got.Words == "" {
				t.Errorf("%v %v on %q: %+v, want %v", who, a, host, got, want)
			}
			if host == "" {
				continue
			}
			if hosts.Has(host) != want || slices.Contains(refused, host) == want {
				t.Errorf("%v %v: the filter has %q: %v, want %v", who, a, host, hosts.Has(host), want)
			}
			if want && !slices.Contains(p.Verbs(who), a.Verb) {
				t.Errorf("%v may %v and has the verbs %v", who, a, p.Verbs(who))
			}
		}
	})
}

func TestAGrantTakesNothingAwayAndAScopeAddsNothing(t *testing.T) {
	t.Parallel()
	inv := inventory(t)
	rapid.Check(t, func(t *rapid.T) {
		holders, who, a := drawHolders(t), drawWho(t), drawAct(t)
		more := append(slices.Clone(holders), drawHolders(t)...)
		// The order of lines does not matter, so the new ones may come first.
		if rapid.Bool().Draw(t, "first") {
			slices.Reverse(more)
		}
		over := func(list []holder) *access.Rights {
			p, err := access.Parse(fleet.Source{Name: "f", Data: []byte(written(list))})
			if err != nil {
				t.Fatal(err)
			}
			return p.Over(inv)
		}
		few, many := over(holders), over(more)
		scope, err := access.NewScope(rapid.Custom(drawGrant).Filter(func(g access.Grant) bool { return !idle(g) }).
			Draw(t, "scope"))
		if err != nil {
			t.Fatal(err)
		}
		scoped := who
		scoped.Scope = scope
		for _, host := range hostNames {
			if few.Allows(who, a, host) && !many.Allows(who, a, host) {
				t.Errorf("%v may no longer %v on %q", who, a, host)
			}
			if many.Allows(scoped, a, host) && !many.Allows(who, a, host) {
				t.Errorf("%v may %v on %q by a scope only", who, a, host)
			}
			if few.Allows(access.Who{Principal: "os:stranger"}, a, host) {
				t.Errorf("a stranger may %v on %q", a, host)
			}
		}
	})
}
