package access_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/access"
	"muster/fleet"
)

// The parts of what somebody may see say the same as Allows, for each runbook and each host.
func TestReachesAgreeWithAllows(t *testing.T) {
	t.Parallel()
	inv := inventory(t)
	rapid.Check(t, func(t *rapid.T) {
		holders, who := drawHolders(t), drawWho(t)
		p, err := access.Parse(fleet.Source{Name: "f", Data: []byte(written(holders))})
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "scoped") {
			scope := rapid.Custom(drawGrant).Filter(func(g access.Grant) bool { return !idle(g) }).Draw(t, "scope")
			if who.Scope, err = access.NewScope(scope); err != nil {
				t.Fatal(err)
			}
		}
		r := p.Over(inv)
		for _, verb := range []access.Verb{access.See, access.Run} {
			parts := r.Reaches(who, verb)
			for _, book := range books[1:] {
				for _, host := range hostNames[1:] {
					got := slices.ContainsFunc(parts, func(one access.Reach) bool {
						return one.Hosts.Has(host) && !slices.ContainsFunc(one.Runbooks, func(list []string) bool {
							return !naiveBook(access.Grant{Runbooks: list}, access.Act{Runbook: book})
						})
					})
					if want := r.Allows(who, access.Act{Verb: verb, Runbook: book}, host); got != want {
						t.Errorf("%v %s %s on %q: %v, want %v, by %v and\n%s", who, verb, book, host, got, want, parts,
							written(holders))
					}
				}
			}
		}
	})
}

// A thousand grants of the same form are one part, also under a scope: the database gets one list.
func TestReachesOfOneFormAreOne(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("who:\n")
	for _, host := range []string{"fw001", "fw002", "ns1"} {
		text.WriteString("  - {principal: 'os:alice', roles: [viewer], hosts: " + host + "}\n")
	}
	scope, err := access.NewScope(access.Grant{Verbs: []access.Verb{access.See}, Hosts: "fw*"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := access.Parse(fleet.Source{Name: "f", Data: []byte(text.String())})
	if err != nil {
		t.Fatal(err)
	}
	r := p.Over(inventory(t))
	all := r.Reaches(access.Who{Principal: "os:alice"}, access.See)
	if len(all) != 1 || all[0].Hosts.Len() != 3 {
		t.Errorf("without a scope: %+v", all)
	}
	some := r.Reaches(access.Who{Principal: "os:alice", Scope: scope}, access.See)
	if len(some) != 1 || strings.Join(slices.Collect(some[0].Hosts.Names()), " ") != "fw001 fw002" {
		t.Errorf("with a scope: %+v", some)
	}
	if all[0].Hosts.Len() != 3 {
		t.Error("the scope has changed what the policy gives")
	}
}
