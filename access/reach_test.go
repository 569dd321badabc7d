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

// A right for all hosts of a customer holds for those of tomorrow, too: single hosts are not enough.
func TestARightForACustomerCoversItsHostsOfTomorrow(t *testing.T) {
	t.Parallel()
	p, err := access.Parse(fleet.Source{Name: "access.yaml", Data: []byte(`who:
  - {principal: user:label, roles: [operator], hosts: customer=acme}
  - {principal: user:host, roles: [operator], hosts: "fw001"}
  - {principal: user:fw, roles: [operator], hosts: "customer=acme,role=fw"}
  - {principal: user:all, roles: [operator]}
  - {principal: user:book, roles: [operator], hosts: customer=acme, runbooks: ["dns*"]}
`)})
	if err != nil {
		t.Fatal(err)
	}
	r := p.Over(inventory(t))
	scope, err := access.NewScope(access.Grant{Verbs: []access.Verb{access.Run}, Hosts: "customer=bolt"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who     access.Who
		runbook string
		want    bool
	}{
		{access.Who{Principal: "user:label"}, "exec", true}, {access.Who{Principal: "user:host"}, "exec", false},
		{access.Who{Principal: "user:fw"}, "exec", false}, {access.Who{Principal: "user:all"}, "exec", true},
		{access.Who{Principal: "user:book"}, "exec", false}, {access.Who{Principal: "user:book"}, "dns-roll", true},
		{access.Who{Principal: "user:book"}, "", false}, {access.Who{Principal: "user:nobody"}, "exec", false},
		{access.Who{Principal: "user:label", Scope: scope}, "exec", false},
		{access.Who{Principal: "user:all", Scope: scope}, "exec", false},
	} {
		act := access.Act{Verb: access.Run, Runbook: c.runbook}
		if got := r.AllowsCustomer(c.who, act, "acme"); got != c.want {
			t.Errorf("%s %s: %v", c.who.Principal, act, got)
		}
	}
}

func TestASelectorIsHeldAgainstACustomer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"customer=acme": true, "{customer=acme}": true, "customer=acme,role=fw": true, " customer=acme ": true,
		"customer=acme,role in (fw,vpn)": true, "{customer=acme,role in (fw,vpn)}": true,
		"{customer=acme}&fw[1-3]": true, "{customer=acme}&(fw1,fw[2-3,7])!fw2": true, "{customer=acme}!fw1": true,
		"{customer=acme}&(fw1^fw2)": true, "customer=acme2": false, "{customer=acme2}": false, "customer!=bolt": false,
		"customer in (acme,bolt)": false, "customer=bolt": false, "all": false, "fw1": false, "role=fw": false,
		"{customer=acme},fw1": false, "{customer=acme}^fw1": false, "fw1,{customer=acme}": false,
		"{customer=acme}&fw1,fw2": false, "{customer=acme}&(fw1),{role=fw}": false, "all!{customer=acme}": false,
		"({customer=acme},fw1)": false, "{customer=acme}&fw1,!fw2": false, "": false, "customer=acme,": false,
	} {
		if got := access.PicksOnly(text, "acme"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if access.PicksOnly("customer=", "") {
		t.Error("no customer at all")
	}
	// A selector that is said to pick hosts of a customer only picks no others.
	inv := inventory(t)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"{customer=acme}", "customer=acme", "fw001",
			"fw[002-003]", "fw003", "all", ",", "&", "!", "^", "(", ")", "{customer}", "customer", "{role=fw}",
			"customer!=acme", "name=fw003", "name in (fw002,fw003)"}), 1, 8).Draw(t, "parts"), "")
		sel, err := fleet.ParseSelector(text)
		if err != nil || !access.PicksOnly(text, "acme") {
			return
		}
		list, _ := inv.Select(sel) // an error: it picks none
		for _, h := range list {
			if h.Customer != "acme" {
				t.Errorf("%s picks %s", text, h.Name)
			}
		}
	})
}
