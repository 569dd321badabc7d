package access_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster/access"
	"muster/fleet"
)

// inventory is a small fleet of two customers.
func inventory(t testing.TB) *fleet.Inventory {
	t.Helper()
	inv, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: []byte(`
defaults: {known_hosts: /k}
hosts:
  - {name: fw001, address: a, customer: acme, labels: {role: fw}}
  - {name: fw002, address: b, customer: acme, labels: {role: fw}}
  - {name: fw003, address: c, customer: globex, labels: {role: fw}}
  - {name: ns1, address: d, customer: acme, labels: {role: dns}}
`)})
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func policy(t testing.TB, text string) *access.Policy {
	t.Helper()
	p, err := access.Parse(fleet.Source{Name: "access.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const house = `
roles:
  acme-operator:
    - verbs: [see, plan, run, order]
      runbooks: [firewall, firmware]
      hosts: customer=acme
  reader: [see]
who:
  - principal: os:alice
    roles: [admin]
  - group: os-group:ops
    roles: [operator]
    hosts: customer=acme
    runbooks: ["dns*"]
  - principal: user:ci
    grants: [{verbs: [run], runbooks: firewall, hosts: "fw001,gone7"}]
  - principal: os:dora
    roles: [acme-operator, reader]
    hosts: role=fw
  - {principal: os:erin, roles: author, runbooks: "dns*"}
  - {principal: os:fred, roles: [author], hosts: customer=acme}
  - {principal: os:gina, roles: [auditor], hosts: all, runbooks: "*"}
  - {principal: os:hugo, grants: [{verbs: order}, {verbs: [order, run], runbooks: dns-roll}]}
`

var ops = []string{"os-group:ops"}

// may has questions and the answers to them.
var may = []struct {
	who    string
	groups []string
	act    string // verb and runbook
	host   string
	want   bool
}{
	{"os:alice", nil, "run firewall", "fw001", true},
	{"os:alice", nil, "admin", "", true},
	{"os:alice", nil, "audit", "", true},
	{"os:alice", nil, "run firewall", "gone7", true}, // no limit: nothing depends on the inventory
	{"os:Alice", nil, "see", "fw001", false},
	{"os:mallory", nil, "see", "fw001", false},
	{"", nil, "see", "fw001", false},
	{"os-group:ops", nil, "see", "fw001", false}, // a group is no principal
	{"os:mallory", []string{"os:alice"}, "see", "fw001", false},

	{"os:bob", ops, "run dns-roll", "fw001", true},
	{"os:bob", ops, "run dns", "ns1", true},
	{"os:bob", ops, "run firewall", "fw001", false},
	{"os:bob", ops, "run dns-roll", "fw003", false},
	{"os:bob", ops, "approve dns-roll", "fw001", false},
	{"os:bob", []string{"os-group:opsy"}, "run dns-roll", "fw001", false},
	{"os:bob", ops, "run dns-roll", "", false}, // whole house
	{"os:bob", ops, "order", "fw001", false},   // a drain concerns no runbook
	{"os:bob", ops, "see", "fw001", true},      // see is the exception
	{"os:bob", ops, "see", "fw003", false},
	{"os:bob", ops, "see", "", false},
	{"os:bob", ops, "see firewall", "fw001", false},
	{"os:bob", ops, "plan", "fw001", false},

	{"user:ci", nil, "run firewall", "fw001", true},
	{"user:ci", nil, "run firewall", "gone7", false}, // named, but not in the inventory
	{"user:ci", nil, "run firewall", "fw002", false},
	{"user:ci", nil, "see firewall", "fw001", false},

	{"os:dora", nil, "run firmware", "fw002", true}, // role and line both narrow
	{"os:dora", nil, "run firmware", "ns1", false},
	{"os:dora", nil, "run firmware", "fw003", false},
	{"os:dora", nil, "see", "fw003", true}, // by reader
	{"os:dora", nil, "see", "ns1", false},

	{"os:erin", nil, "author dns-roll", "", true},
	{"os:erin", nil, "author dns-roll", "fw003", true}, // the host does not matter
	{"os:erin", nil, "author firewall", "", false},
	{"os:erin", nil, "author", "", false},
	{"os:fred", nil, "author firewall", "", false},
	{"os:fred", nil, "author firewall", "fw001", false},
	{"os:fred", nil, "plan firewall", "fw001", true},
	{"os:gina", nil, "audit", "", true}, // all and * are no limits
	{"os:gina", nil, "audit", "fw001", true},
	{"os:gina", nil, "run firewall", "fw001", false},

	{"os:hugo", nil, "order", "", true},
	{"os:hugo", nil, "order", "ns1", true},
	{"os:hugo", nil, "run dns-roll", "", true},
	{"os:hugo", nil, "run", "", false},
	{"os:hugo", nil, "dance", "", false},
}

func act(text string) access.Act {
	verb, runbook, _ := strings.Cut(text, " ")
	return access.Act{Verb: access.Verb(verb), Runbook: runbook}
}

func TestGrantsAllowWhatTheySayAndNothingElse(t *testing.T) {
	t.Parallel()
	r := policy(t, house).Over(inventory(t))
	for _, c := range may {
		who := access.Who{Principal: c.who, Groups: c.groups}
		if got := r.Allows(who, act(c.act), c.host); got != c.want {
			t.Errorf("%s %v %s on %q: %v, want %v", c.who, c.groups, c.act, c.host, got, c.want)
		}
		if got := r.Explain(who, act(c.act), c.host); got.Allowed != c.want || (got.By != "") != c.want {
			t.Errorf("%s %v %s on %q: %+v, want %v", c.who, c.groups, c.act, c.host, got, c.want)
		}
		if got := r.Hosts(who, act(c.act)).Has(c.host); c.host != "" && got != c.want {
			t.Errorf("the hosts of %s %v for %s have %q: %v, want %v", c.who, c.groups, c.act, c.host, got, c.want)
		}
	}
}

func TestBuiltInRolesHaveTheirVerbs(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{
		"viewer":   "see plan",
		"operator": "see plan run order",
		"approver": "see plan approve",
		"author":   "see plan author",
		"auditor":  "see audit",
		"admin":    "see plan run approve order author admin audit",
		"nobody":   "",
	} {
		var got []string
		for _, v := range access.RoleVerbs(role) {
			got = append(got, string(v))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %v, want %s", role, got, want)
		}
		if known := slices.Contains(access.Roles(), role); known != (want != "") {
			t.Errorf("%s is a role: %v", role, known)
		}
	}
}

func TestWithoutAFileRootAndTheUserOfTheServerAreAdmins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, admins string }{
		{"muster", "os:muster,os:root"},
		{"root", "os:root"},
		{"", "os:root"},
		{"two words", "os:root"},
	} {
		p := access.Default(c.server)
		if got := strings.Join(p.Admins(), ","); got != c.admins {
			t.Errorf("%q: admins are %s, want %s", c.server, got, c.admins)
		}
		r := p.Over(inventory(t))
		for _, who := range []string{"os:root", "os:" + c.server, "user:root", "os:alice"} {
			want := slices.Contains(strings.Split(c.admins, ","), who)
			for _, v := range access.Verbs() {
				may := want && v != access.BreakGlass // that is a grant of its own
				if got := r.Allows(access.Who{Principal: who}, access.Act{Verb: v}, ""); got != may {
					t.Errorf("%q: %s may %s: %v, want %v", c.server, who, v, got, may)
				}
			}
		}
	}
	if got := access.Default("muster").Over(inventory(t)).
		Explain(access.Who{Principal: "os:root"}, access.Act{Verb: access.Admin}, ""); got.By != "the default" {
		t.Errorf("%+v", got)
	}
}

func TestVerbsAreThoseThatCountForSomething(t *testing.T) {
	t.Parallel()
	p := policy(t, house)
	for who, want := range map[string]string{
		"os:alice":   "see plan run approve order author admin audit",
		"user:ci":    "run",
		"os:dora":    "see plan run order",
		"os:fred":    "see plan", // author is lost to the limit of hosts
		"os:gina":    "see audit",
		"os:mallory": "",
	} {
		var got []string
		for _, v := range p.Verbs(access.Who{Principal: who}) {
			got = append(got, string(v))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %v, want %s", who, got, want)
		}
		if got := p.Anything(access.Who{Principal: who}); got != (want != "") {
			t.Errorf("%s has anything: %v", who, got)
		}
	}
	if !p.Anything(access.Who{Principal: "os:bob", Groups: ops}) {
		t.Error("a member of the group has nothing")
	}
}

func TestAScopeIsWithinTheRightsOfItsOwner(t *testing.T) {
	t.Parallel()
	r := policy(t, house).Over(inventory(t))
	scope, err := access.NewScope(access.Grant{Verbs: []access.Verb{access.Run, access.See}, Runbooks: []string{"dns*",
		"firewall"}, Hosts: "fw001,fw003"}, access.Grant{Verbs: []access.Verb{access.Audit}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who    string
		groups []string
		act    string
		host   string
		want   bool
	}{
		{"os:alice", nil, "run firewall", "fw001", true},
		{"os:alice", nil, "run firewall", "fw002", false},
		{"os:alice", nil, "run firewall", "", false},
		{"os:alice", nil, "run firmware", "fw001", false},
		{"os:alice", nil, "order firewall", "fw001", false},
		{"os:alice", nil, "audit", "", true},
		{"os:bob", ops, "run dns-roll", "fw001", true},
		{"os:bob", ops, "run dns-roll", "fw003", false}, // the owner may not
		{"os:bob", ops, "run firewall", "fw001", false}, // the owner may not
		{"os:bob", ops, "audit", "", false},
	} {
		who := access.Who{Principal: c.who, Groups: c.groups, Scope: scope}
		if got := r.Allows(who, act(c.act), c.host); got != c.want {
			t.Errorf("%s %s on %q: %v, want %v", c.who, c.act, c.host, got, c.want)
		}
		if got := r.Explain(who, act(c.act), c.host); got.Allowed != c.want {
			t.Errorf("%s %s on %q: %+v, want %v", c.who, c.act, c.host, got, c.want)
		}
		if got := r.Hosts(who, act(c.act)).Has(c.host); c.host != "" && got != c.want {
			t.Errorf("hosts of %s for %s have %q: %v, want %v", c.who, c.act, c.host, got, c.want)
		}
	}
	none := access.Who{Principal: "os:alice", Scope: &access.Scope{}}
	if got := r.Policy().Verbs(none); len(got) > 0 || r.Hosts(none, act("see")).Len() > 0 {
		t.Errorf("an empty scope leaves %v", got)
	}
	if got := r.Policy().Verbs(access.Who{Principal: "os:alice", Scope: scope}); len(got) != 3 {
		t.Errorf("the scope leaves %v, want see, run and audit", got)
	}
}

func TestMistakesInAScopeAreNamedTogether(t *testing.T) {
	t.Parallel()
	_, err := access.NewScope(access.Grant{Verbs: []access.Verb{"rum"}, Runbooks: []string{"A"}, Hosts: "fw["},
		access.Grant{}, access.Grant{Verbs: []access.Verb{access.Admin}, Hosts: "fw001"})
	want := []string{`unknown verb "rum": did you mean "run"?`, `runbook "A": use lower-case letters`,
		`hosts: selector "fw[", column 3`, "a grant without verbs", "verbs admin, hosts fw001: it allows nothing"}
	if err == nil {
		t.Fatal("no mistake")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q lacks %q", err, w)
		}
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != len(want) {
		t.Errorf("%d mistakes, want %d:\n%v", got, len(want), err)
	}
	if _, err := access.NewScope(); err == nil {
		t.Error("a scope without grants is no mistake")
	}
}

func TestHostsAreAFilter(t *testing.T) {
	t.Parallel()
	r := policy(t, house).Over(inventory(t))
	for _, c := range []struct {
		who  access.Who
		act  string
		want string
		all  bool
	}{
		{access.Who{Principal: "os:alice"}, "run firewall", "fw001 fw002 fw003 ns1", true},
		{access.Who{Principal: "os:bob", Groups: ops}, "see", "fw001 fw002 ns1", false},
		{access.Who{Principal: "user:ci"}, "run firewall", "fw001", false},
		{access.Who{Principal: "user:ci"}, "see", "", false},
		{access.Who{Principal: "os:dora"}, "run firewall", "fw001 fw002", false},
		{access.Who{Principal: "os:dora", Groups: ops}, "see", "fw001 fw002 fw003 ns1", false},
	} {
		h := r.Hosts(c.who, act(c.act))
		if got := strings.Join(slices.Collect(h.Names()), " "); got != c.want || h.All() != c.all ||
			h.Len() != len(strings.Fields(c.want)) {
			t.Errorf("%v %s: %s (%d), all %v; want %s, %v", c.who, c.act, got, h.Len(), h.All(), c.want, c.all)
		}
	}
	for range r.Hosts(access.Who{Principal: "os:alice"}, act("see")).Names() {
		break // a reader may stop
	}
	if h := (access.Hosts{}); h.Has("fw001") || h.Len() != 0 || len(slices.Collect(h.Names())) != 0 {
		t.Error("the zero set has hosts")
	}
}

func TestARefusalNamesTheNumberAndThreeHosts(t *testing.T) {
	t.Parallel()
	r := policy(t, house).Over(inventory(t))
	who, a := access.Who{Principal: "user:ci"}, act("run firewall")
	for _, c := range []struct{ hosts, want string }{
		{"fw001", ""},
		{"fw002", "user:ci may not run firewall on fw002"},
		{"fw001 fw003", "user:ci may not run firewall on 1 of 2 hosts: fw003"},
		{"fw003 fw001 fw002 ns1", "user:ci may not run firewall on 3 of 4 hosts: fw003, fw002, ns1"},
		{"fw001 fw002 fw003 ns1 x y", "user:ci may not run firewall on 5 of 6 hosts: fw002, fw003, ns1 and 2 more"},
	} {
		asked := strings.Fields(c.hosts)
		refused, got := r.Refused(who, a, asked), ""
		if len(refused) > 0 {
			got = access.Refusal(who, a, refused, len(asked)).Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.hosts, got, c.want)
		}
	}
}

func TestManyMayAskAtOnce(t *testing.T) {
	t.Parallel()
	r := policy(t, house).Over(inventory(t))
	var wait sync.WaitGroup
	for n := range 8 {
		wait.Go(func() {
			scope, err := access.NewScope(access.Grant{Verbs: access.Verbs(), Hosts: []string{"role=fw", "fw*"}[n%2]})
			if err != nil {
				t.Error(err)
				return
			}
			for _, c := range may {
				who := access.Who{Principal: c.who, Groups: c.groups}
				if got := r.Allows(who, act(c.act), c.host); got != c.want {
					t.Errorf("%s %s on %q: %v, want %v", c.who, c.act, c.host, got, c.want)
				}
				who.Scope = scope
				limited := c.want && strings.HasPrefix(c.host, "fw") && !strings.HasPrefix(c.act, "aud") &&
					!strings.HasPrefix(c.act, "aut")
				if got := r.Allows(who, act(c.act), c.host); got != limited {
					t.Errorf("%s %s on %q with a scope: %v, want %v", c.who, c.act, c.host, got, limited)
				}
			}
		})
	}
	wait.Wait()
}

func TestRightsOutliveManyScopes(t *testing.T) {
	t.Parallel()
	r := policy(t, house).Over(inventory(t))
	for i := range 5000 {
		scope, err := access.NewScope(access.Grant{Verbs: []access.Verb{access.See},
			Hosts: fmt.Sprintf("fw001,gone%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		who := access.Who{Principal: "os:alice", Scope: scope}
		if !r.Allows(who, act("see"), "fw001") || r.Allows(who, act("see"), "fw002") {
			t.Fatalf("scope %d is not kept", i)
		}
	}
}
