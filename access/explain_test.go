package access_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/access"
	"muster/fleet"
)

func TestAnAnswerNamesTheGrantOrWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := policy(t, house).Over(inventory(t))
	const ask = "; who may grant it: os:alice"
	for _, c := range []struct {
		who    string
		groups []string
		act    string
		host   string
		want   string
	}{
		{"os:alice", nil, "run firewall", "fw001", "os:alice may run firewall on fw001: access.yaml:9 gives role admin " +
			"(see, plan, run, approve, order, author, admin, audit)"},
		{"os:alice", nil, "audit", "", "os:alice may audit: access.yaml:9 gives role admin " +
			"(see, plan, run, approve, order, author, admin, audit)"},
		{"os:bob", ops, "run dns-roll", "ns1", "os:bob may run dns-roll on ns1: access.yaml:11 gives role operator " +
			"(see, plan, run, order), runbooks dns*, hosts customer=acme"},
		{"user:ci", nil, "run firewall", "fw001", "user:ci may run firewall on fw001: access.yaml:16 gives verbs run, " +
			"runbooks firewall, hosts fw001,gone7"},
		{"os:dora", nil, "run firmware", "fw001", "os:dora may run firmware on fw001: access.yaml:17 gives role " +
			"acme-operator (see, plan, run, order), runbooks firewall,firmware, hosts customer=acme, hosts role=fw"},

		{"os:eve", nil, "see", "fw001", "os:eve may not see on fw001: no grant is for it, and it came without groups" + ask},
		{"os:eve", []string{"os-group:web", "group:x"}, "see", "", "os:eve may not see in the whole house: no grant is " +
			"for it, nor for its groups os-group:web,group:x" + ask},
		{"user:ci", nil, "see", "fw001", "user:ci may not see on fw001: it has the verbs run only" + ask},
		{"user:ci", nil, "run dns-roll", "fw001", "user:ci may not run dns-roll on fw001: its grants are for other " +
			"runbooks than dns-roll: line 16: verbs run, runbooks firewall, hosts fw001,gone7" + ask},
		{"user:ci", nil, "run firewall", "fw003", "user:ci may not run firewall on fw003: its grants are for other " +
			"hosts than fw003: line 16: verbs run, runbooks firewall, hosts fw001,gone7" + ask},
		{"user:ci", nil, "run firewall", "fw9", "user:ci may not run firewall on fw9: the inventory has no host fw9, and " +
			"its grants are for some hosts only: line 16: verbs run, runbooks firewall, hosts fw001,gone7" + ask},
		{"user:ci", nil, "run firewall", "", "user:ci may not run firewall in the whole house: its grants are for some " +
			"hosts only: line 16: verbs run, runbooks firewall, hosts fw001,gone7" + ask},
		{"os:bob", ops, "order", "fw001", "os:bob may not order on fw001: this is about no runbook, and its grants are " +
			"for some runbooks only: line 11: role operator (see, plan, run, order), runbooks dns*, hosts customer=acme" + ask},
		{"os:erin", nil, "author", "", "os:erin may not author: its grants are limited to some runbooks, or to hosts, " +
			"which do not count for author: line 20: role author (see, plan, author), runbooks dns*" + ask},
		{"os:fred", nil, "author dns", "", "os:fred may not author dns: its grants are for other runbooks than dns, or " +
			"for some hosts only, which do not count for author: line 21: role author (see, plan, author), hosts " +
			"customer=acme" + ask},
	} {
		a := r.Explain(access.Who{Principal: c.who, Groups: c.groups}, act(c.act), c.host)
		if diff := cmp.Diff(c.want, a.Words); diff != "" {
			t.Errorf("%s %s on %q (-want +got):\n%s", c.who, c.act, c.host, diff)
		}
	}
}

func TestALimitedAdminIsToldThatItIsLimited(t *testing.T) {
	t.Parallel()
	r := policy(t, "who:\n"+strings.Repeat("  - {principal: os:a, roles: [admin], hosts: fw001}\n", 5)).Over(inventory(t))
	a := r.Explain(access.Who{Principal: "os:a"}, act("admin"), "")
	const one = ": role admin (see, plan, run, approve, order, author, admin, audit), hosts fw001; "
	want := "os:a may not admin: admin concerns the whole house, and its grants are limited: line 2" + one +
		"line 3" + one + "line 4" + one + "and 2 more; nobody may grant it, because nobody has admin for the whole house"
	if diff := cmp.Diff(want, a.Words); diff != "" || len(a.Ask) != 0 {
		t.Errorf("%v (-want +got):\n%s", a.Ask, diff)
	}
}

func TestAnAnswerBlamesTheScope(t *testing.T) {
	t.Parallel()
	scope, err := access.NewScope(access.Grant{Verbs: []access.Verb{access.See}, Hosts: "role=fw"})
	if err != nil {
		t.Fatal(err)
	}
	r := policy(t, house).Over(inventory(t))
	got := r.Explain(access.Who{Principal: "user:ci", Scope: scope}, act("run firewall"), "fw001")
	want := access.Answer{Words: "user:ci may not run firewall on fw001: the owner of the token may, by access.yaml:16 " +
		"gives verbs run, runbooks firewall, hosts fw001,gone7, but the scope of the token does not have it: verbs see, " +
		"hosts role=fw"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExpectationsThatDoNotHoldAreNamed(t *testing.T) {
	t.Parallel()
	list, err := access.ParseExpectations(fleet.Source{Name: "want.yaml", Data: []byte(`
- {who: os:alice, verb: run, runbook: firewall, host: fw001, want: allow}
- {who: os:bob, groups: [os-group:ops], verb: run, runbook: dns-roll, host: fw001, want: allow}
- {who: os:bob, groups: os-group:ops, verb: run, runbook: dns-roll, host: fw003, want: refuse}
- {who: os:bob, verb: admin, want: allow}
- {who: os:alice, verb: admin, want: refuse}
- {who: user:ci, verb: run, runbook: firewall, host: fw01, want: refuse}
`)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	failures := access.Test(policy(t, house).Over(inventory(t)), list)
	for _, f := range failures {
		got = append(got, f.String())
	}
	want := []string{"os:bob admin", "os:alice admin", "user:ci run firewall on fw01"}
	if !slices.Equal(got, want) {
		t.Fatalf("%q failed, want %q", got, want)
	}
	if f := failures[0]; f.File != "want.yaml" || f.Line != 5 || f.Index != 3 ||
		!strings.HasPrefix(f.Words, "os:bob may not admin: no grant") {
		t.Errorf("%+v", f)
	}
	if w := failures[1].Words; !strings.HasPrefix(w, "os:alice may admin: access.yaml:9") {
		t.Errorf("%q", w)
	}
	if w := failures[2].Words; w != "the inventory has no host fw01" {
		t.Errorf("%q: a host that is not there must not make a refusal look right", w)
	}
}

func TestMistakesInExpectationsAreNamedTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"all", "- {who: alice, groups: [ops], verb: rnu, runbook: 'dns*', host: 'fw*', want: deny, hots: x}\n- {}\n",
			`f:1: unknown key "hots" of an expectation: did you mean "host"?` + "\n" +
				`f:1: principal "alice" has no kind: want os:alice or user:ci` + "\n" +
				`f:1: group "ops" has no kind: want os-group:ops or group:network` + "\n" +
				`f:1: unknown verb "rnu": did you mean "run"?` + "\n" +
				`f:1: runbook "dns*" is a glob: want the name of one runbook` + "\n" +
				`f:1: name "fw*" has '*': use letters, digits, '.', '-' and '_'` + "\n" +
				`f:1: want "deny": known: allow, refuse` + "\n" +
				"f:2: who is missing: every expectation needs who, verb and want\n" +
				"f:2: verb is missing: every expectation needs who, verb and want\n" +
				"f:2: want is missing: every expectation needs who, verb and want"},
		{"a mapping", "who: []\n", "f:1: this is no file of expectations: want a list of mappings with who, verb and want"},
		{"none", "[]\n", "f:1: the file is empty: want expectations"},
		{"an item", "- a\n", "f:1: an expectation is a single value: want a mapping with who, " +
			"groups, verb, runbook, host, want"},
		{"empty", "", "f:1: the file is empty: want a list of expectations"},
	} {
		list, err := access.ParseExpectations(fleet.Source{Name: "f", Data: []byte(c.text)})
		if err == nil || list != nil {
			t.Errorf("%s: no mistake", c.name)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
