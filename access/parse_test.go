package access_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/access"
	"muster/fleet"
)

const good = "who:\n  - {principal: os:alice, roles: [admin]}\n"

func TestMistakesInAFileAreNamedWithTheirLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "f:1: the file is empty: want a mapping with who, and perhaps roles"},
		{"a comment only", "# nothing\n", "f:1: the file is empty: want a mapping with who, and perhaps roles"},
		{"a list", "- a\n", "f:1: the file is a list: want a mapping with roles, who"},
		{"another file", "hosts: []\n", "f:1: this is no file of access: it has no known key: want roles and who"},
		{"a typo in a top key", good + "rolse: {}\n", `f:3: unknown key "rolse" of the file: did you mean "roles"?`},
		{"no who", "roles: {a: [see]}\n", "f:1: who is missing: nobody could do anything; want a list of principals " +
			"and groups"},
		{"who is no list", "who: {}\n", "f:1: who is a mapping: want a list"},
		{"who has no value", "who:\n", "f:1: who has no value: want a list"},
		{"a second document", good + "---\n" + good, "f:3: a second document: write one a file"},
		{"not YAML", "who: [\n", "f:2: not YAML: did not find expected node content, here or in the lines around"},
		{"a tab", "who:\n\t- a\n", "f:2: a tab in the indentation: use blanks"},
		{"an alias", "who: &a [*a]\n", `f:1: who has the anchor "&a": remove it`},
		{"an alias of nothing", "who: [*a]\n", "f:1: not YAML: unknown anchor 'a' referenced, here or in the lines around"},
		{"a tag", "who: !!seq []\n", `f:1: who has the tag "!!seq": remove it`},

		{"nobody", "who:\n  - {roles: [admin]}\n", "f:2: it names nobody: want principal or group"},
		{"two", "who:\n  - principal: os:a\n    group: os-group:b\n    roles: [admin]\n",
			"f:3: principal and group: give one a line"},
		{"a key twice", "who:\n  - principal: os:a\n    roles: [admin]\n    principal: os:b\n",
			`f:4: key "principal" is there already, at line 2: keep one of them`},
		{"nothing given", "who:\n  - {principal: os:a}\n", "f:2: it gives nothing: want roles or grants"},
		{"roles are empty", "who:\n  - {principal: os:a, roles: []}\n",
			"f:2: roles is empty: want at least one"},
		{"grants are empty", "who:\n  - {principal: os:a, grants: []}\n",
			"f:2: grants is empty: want grants"},
		{"a line is a word", "who: [os:a]\n", "f:1: a line of who is a single value: want a " +
			"mapping with principal, group, roles, grants, hosts, runbooks"},
		{"an unknown key of a line", "who:\n  - {principal: os:a, role: [admin]}\n",
			`f:2: unknown key "role" of a line of who: did you mean "roles"?` +
				"\nf:2: it gives nothing: want roles or grants"},
		{"no kind", "who:\n  - {principal: alice, roles: [admin]}\n",
			`f:2: principal "alice" has no kind: want os:alice or user:ci`},
		{"only a kind", "who:\n  - {principal: os, roles: [admin]}\n",
			`f:2: principal "os" has no name: want os:alice or user:ci`},
		{"an empty name", "who:\n  - {principal: 'user:', roles: [admin]}\n",
			`f:2: principal "user:" has no name: want os:alice or user:ci`},
		{"a typo in a kind", "who:\n  - {principal: usr:ci, roles: [admin]}\n",
			`f:2: principal "usr:ci" has an unknown kind: did you mean "user:ci"?`},
		{"another kind", "who:\n  - {principal: ldap:ci, roles: [admin]}\n",
			`f:2: principal "ldap:ci" has an unknown kind: want one of os, user, oidc, cert, trigger`},
		{"a group as a principal", "who:\n  - {principal: os-group:ops, roles: [admin]}\n",
			`f:2: principal "os-group:ops" is a group: write it as one`},
		{"a principal as a group", "who:\n  - {group: os:alice, roles: [admin]}\n",
			`f:2: group "os:alice" is a principal: write it as one`},
		{"a wildcard", "who:\n  - {principal: 'os:*', roles: [admin]}\n",
			`f:2: principal "os:*" has a wildcard, but names are compared exactly: name each, or a group`},
		{"a blank", "who:\n  - {principal: 'os:a b', roles: [admin]}\n",
			`f:2: principal "os:a b" has a blank or a control character: remove it`},
		{"a long name", "who:\n  - {principal: os:" + strings.Repeat("a", 600) + ", roles: [admin]}\n",
			`f:2: principal "os:` + strings.Repeat("a", 57) + `"… has 603 bytes: at most 512`},

		{"an unknown role", "who:\n  - principal: os:a\n    roles:\n      - operater\n",
			`f:4: unknown role "operater": did you mean "operator"?`},
		{"a built-in role", "roles:\n  viewer: [see]\n" + good,
			"f:2: role viewer is built in and stays as it is: choose another name"},
		{"a role twice", "roles:\n  a: [see]\n  a: [run]\n" + good,
			`f:3: key "a" is there already, at line 2: keep one of them`},
		{"a bad name of a role", "roles:\n  'a b': [see]\n" + good,
			`f:2: role "a b": use letters, digits, '.', '-' and '_'`},
		{"an empty role", "roles:\n  a: []\n" + good, "f:2: role a is empty: want grants or verbs"},
		{"a role without a value", "roles:\n  a:\n" + good, "f:2: role a has no value: want a list"},
		{"roles are a list", "roles: [a]\n" + good, "f:1: roles is a list: want a mapping"},
		{"an unknown verb", "roles:\n  a: [see, exec, pln]\n" + good,
			"f:2: unknown verb \"exec\": known: see, plan, run, approve, order, author, admin, audit, break-glass\n" +
				`f:2: unknown verb "pln": did you mean "plan"?`},
		{"a verb twice", "roles:\n  a: [see, see]\n" + good, "f:2: verb see is there twice"},
		{"no verbs", "roles:\n  a:\n    - {runbooks: [x]}\n" + good,
			"f:3: a grant without verbs allows nothing: want verbs, such as [see, plan]"},
		{"empty verbs", "roles:\n  a:\n    - {verbs: []}\n" + good,
			"f:3: verbs is empty: want at least one"},
		{"verbs without a value", "roles:\n  a:\n    - verbs:\n" + good, "f:3: verbs has no value: want a list"},
		{"an unknown key of a grant", "roles:\n  a:\n    - {verb: [see]}\n" + good,
			`f:3: unknown key "verb" of a grant: did you mean "verbs"?` + "\n" +
				"f:3: a grant without verbs allows nothing: want verbs, such as [see, plan]"},
		{"verbs and grants in a role", "roles:\n  a:\n    - {verbs: [see]}\n    - see\n" + good,
			"f:4: a grant is a single value: want a mapping with verbs, runbooks, hosts"},

		{"a bad glob", "who:\n  - {principal: os:a, roles: [viewer], runbooks: [fw, 'd[a]*', '']}\n",
			`f:2: runbook "d[a]*": use lower-case letters, digits, '-' and '_', '*' for any characters and '?' for one` +
				"\nf:2: a runbook is empty: want a name, or a glob as dns*"},
		{"a long glob", "who:\n  - {principal: os:a, roles: [viewer], runbooks: " + strings.Repeat("a", 64) + "}\n",
			`f:2: runbook "` + strings.Repeat("a", 60) + `"… has 64 bytes: at most 63`},
		{"empty runbooks", "who:\n  - {principal: os:a, roles: [viewer], runbooks: []}\n",
			"f:2: runbooks is empty: want at least one"},
		{"a bad selector", "who:\n  - principal: os:a\n    roles: [viewer]\n    hosts: fw[1-\n",
			`f:4: hosts: selector "fw[1-", column 3: '[' is not closed: want ']'`},
		{"empty hosts", "who:\n  - {principal: os:a, roles: [viewer], hosts: ' '}\n",
			"f:2: hosts is empty: want a selector, or leave it out for all hosts"},
		{"hosts are a list", "who:\n  - {principal: os:a, roles: [viewer], hosts: [a]}\n",
			"f:2: hosts is a list: want a text"},
		{"hosts of a task", "who:\n  - {principal: os:a, roles: [viewer], hosts: 'task:0wcy7y2fb2'}\n",
			`f:2: hosts: selector "task:0wcy7y2fb2" names a task: want hosts or labels of the inventory`},
		{"a label that orders change", "who:\n  - {principal: os:a, roles: [viewer], hosts: '!drained'}\n",
			`f:2: hosts: selector "!drained" has the label drained, which orders change: want hosts or labels of ` +
				`the inventory`},
		{"a fact", "who:\n  - {principal: os:a, roles: [viewer], hosts: 'fw*&{fact.os=debian}'}\n",
			`f:2: hosts: selector "fw*&{fact.os=debian}" has a fact, which the host itself reports: want hosts or ` +
				`labels of the inventory`},

		{"audit of some hosts", "who:\n  - {principal: os:a, grants: [{verbs: audit, hosts: fw1}]}\n",
			"f:2: verbs audit, hosts fw1: it allows nothing, because they concern the whole house: admin and audit " +
				"need a grant without hosts and runbooks, author one without hosts"},
		{"author on some hosts", "roles:\n  a: [author]\nwho:\n  - {principal: os:a, roles: a, hosts: fw1}\n",
			"f:4: role a (author), hosts fw1: it allows nothing, because a runbook can run on every host: author " +
				"needs a grant without hosts"},
		{"several at once", "who:\n  - {principal: alice, roles: [amdin], hosts: 'fw['}\n  - {group: x, foo: 1}\n",
			`f:2: principal "alice" has no kind: want os:alice or user:ci` + "\n" +
				`f:2: hosts: selector "fw[", column 3: '[' is not closed: want ']'` + "\n" +
				`f:2: unknown role "amdin": did you mean "admin"?` + "\n" +
				`f:3: unknown key "foo" of a line of who: known: principal, group, roles, grants, hosts, ` +
				"runbooks\n" +
				`f:3: group "x" has no kind: want os-group:ops or group:network` + "\n" +
				"f:3: it gives nothing: want roles or grants"},
	} {
		p, err := access.Parse(fleet.Source{Name: "f", Data: []byte(c.text)})
		var mistakes fleet.Mistakes
		if p != nil || !errors.As(err, &mistakes) {
			t.Errorf("%s: %v, %v; want mistakes", c.name, p, err)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestAFileIsBoundInItsGrants(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("roles:\n  many:\n")
	for range 300 {
		b.WriteString("    - {verbs: [see]}\n")
	}
	b.WriteString("who:\n")
	for i := range 67 {
		fmt.Fprintf(&b, "  - {principal: 'os:u%d', roles: [many]}\n", i)
	}
	_, err := access.Parse(fleet.Source{Name: "f", Data: []byte(b.String())})
	if want := "f:370: more than 20000 grants: give fewer roles of many grants"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestWhatLooksLikeAMistakeIsADoubt(t *testing.T) {
	t.Parallel()
	p := policy(t, `
roles:
  idle: [see]
who:
  - {principal: os:a, roles: [auditor, viewer], hosts: customer=acme}
  - {principal: os:b, roles: [admin], runbooks: [firewall]}
  - {principal: os:c, roles: [viewer], hosts: "fw001!fw07"}
  - {principal: os:d, roles: [viewer], hosts: "customer=umbrella"}
  - {principal: os:e, roles: [viewer], hosts: "customer=acme,!fw001"}
`)
	why := "they concern the whole house: admin and audit need a grant without hosts and runbooks, author one " +
		"without hosts"
	want := "access.yaml:2: nobody has the verb admin for the whole house, so nobody can make tokens, publish windows, " +
		"and so on\n" +
		"access.yaml:3: nobody has the role idle\n" +
		"access.yaml:5: role auditor (see, audit), hosts customer=acme: without effect here: audit, because " + why + "\n" +
		"access.yaml:6: role admin (see, plan, run, approve, order, author, admin, audit), runbooks firewall: " +
		"without effect here: admin, audit, because " + why
	if diff := cmp.Diff(want, p.Doubts().Error()); diff != "" {
		t.Errorf("doubts of the file (-want +got):\n%s", diff)
	}
	want = `access.yaml:7: hosts "fw001!fw07": no host has the name fw07` + "\n" +
		`access.yaml:8: hosts "customer=umbrella" picks no host` + "\n" +
		`access.yaml:9: hosts "customer=acme,!fw001" picks nothing here: "fw001" is a host name, not a label: beside ` +
		`host names, label terms stand in braces, as in {customer=acme}!fw001`
	r := p.Over(inventory(t))
	got := r.Doubts().Error()
	if !strings.HasPrefix(got, want[:strings.Index(want, "beside")]) {
		t.Errorf("doubts over the inventory (-want +got):\n%s", cmp.Diff(want, got))
	}
	for who, want := range map[string]int{"os:c": 1, "os:d": 0, "os:e": 0} {
		if n := r.Hosts(access.Who{Principal: who}, act("see")).Len(); n != want {
			t.Errorf("%s has %d hosts, want %d", who, n, want)
		}
	}
	if doubts := policy(t, house).Doubts(); len(doubts) != 1 || doubts[0].Line != 21 {
		t.Errorf("%v, want one of the author on some hosts", doubts)
	}
}

// The file and the table on the page are read as a person would copy them.
func TestTheFileOnThePageIsOne(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/ACCESS.md")
	if err != nil {
		t.Fatal(err)
	}
	between := func(begin string) string {
		_, rest, found := strings.Cut(string(page), begin)
		text, _, closed := strings.Cut(rest, "```")
		if !found || !closed {
			t.Fatalf("the page has no %q", begin)
		}
		return text
	}
	p := policy(t, between("```yaml\n"))
	list, err := access.ParseExpectations(fleet.Source{Name: "page", Data: []byte(between("CI\n\n```\n"))})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Doubts()) > 0 || len(list) < 3 {
		t.Errorf("doubts %v, %d expectations", p.Doubts(), len(list))
	}
	for _, f := range access.Test(p.Over(inventory(t)), list) {
		t.Errorf("%s: %s", f.Expectation, f.Words)
	}
	for _, role := range access.Roles() {
		want := fmt.Sprintf("| `%s` | %s |", role, strings.Join(words(access.RoleVerbs(role)), ", "))
		if role == "admin" {
			want = "| `admin` | all |"
		}
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func words(verbs []access.Verb) []string {
	var list []string
	for _, v := range verbs {
		list = append(list, string(v))
	}
	return list
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		house, good, "", "who: []", "who: [[]]", "roles: {a: [see]}\nwho: [{principal: os:a, roles: a}]", "who: &a [*a]",
		"roles: {? [a] : b}\nwho: null", "who: [{principal: os:a, grants: [{verbs: see, hosts: 'a,(b', runbooks: 1}]}]",
		"who: [{<<: {}, principal: os:a}]", "--- a\n--- b\n", "\xff", "who: [{group: 'group:é', roles: [viewer]}]", "{}",
		"roles:\n  a:\n    - {verbs: [see]}\n    - see\n", "who: |\n  x\n", "- {who: os:a, verb: see, want: allow}",
	} {
		f.Add([]byte(seed))
	}
	inv := inventory(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		src := fleet.Source{Name: "f", Data: data}
		p, err := access.Parse(src)
		if (p == nil) == (err == nil) {
			t.Fatalf("Parse = %v, %v", p, err)
		}
		sound(t, data, err)
		_, expected := access.ParseExpectations(src)
		sound(t, data, expected)
		if err != nil {
			return
		}
		r := p.Over(inv)
		r.Doubts()
		for _, name := range p.Admins() {
			who := access.Who{Principal: name, Groups: []string{name}}
			if !r.Allows(who, access.Act{Verb: access.Admin}, "") || !p.Anything(who) {
				t.Errorf("%s is an admin and may not administer", name)
			}
		}
	})
}

// sound checks that mistakes have a place and a text.
func sound(t *testing.T, data []byte, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var mistakes fleet.Mistakes
	if !errors.As(err, &mistakes) || len(mistakes) == 0 {
		t.Fatalf("an error without mistakes: %v", err)
	}
	for _, m := range mistakes {
		if m.File != "f" || m.Line < 1 || m.Line > 2+strings.Count(string(data), "\n")+strings.Count(string(data), "\r") ||
			strings.TrimSpace(m.Text) == "" || len(m.Text) > 4000 {
			t.Errorf("a mistake without a place or a text: %+v", m)
		}
	}
}

// The example that people copy has no mistake, and no doubt.
func TestTheExampleHolds(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../etc/examples/access.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := access.Parse(fleet.Source{Name: "access.yaml", Data: data})
	if err != nil || len(p.Doubts()) > 0 || !p.Anything(access.Who{Principal: "user:ci"}) {
		t.Errorf("%v, %v", err, p.Doubts())
	}
}
