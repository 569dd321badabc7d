package scripts_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/internal/seal"
	"muster/scripts"
)

// plays makes a runbook with a playbook, in line 3.
func plays(text string) string {
	return "name: a\narguments: {token: {type: secret}, word: {type: string, default: x}}\n" +
		"steps: [{name: a, ansible: {" + text + "}}]\n"
}

func TestParseRefusesPlaybooks(t *testing.T) {
	t.Parallel()
	refuses(t, []refusal{
		{"none", plays("tags: [x]"), "x:3:28: ansible has no playbook"},
		{"outside", plays("playbook: ../a.yml"), "want a path within the folder of playbooks"},
		{"absolute", plays("playbook: /a.yml"), "want a path within the folder of playbooks"},
		{"of Ansible", plays("playbook: a.yml, vars: {ansible_host: x}"), "those of ansible_ lead the connection"},
		{"no name", plays("playbook: a.yml, vars: {a-b: x}"), "variable \"a-b\": use letters"},
		{"no value", plays("playbook: a.yml, vars: {a: '{{nothing}}'}"), "unknown placeholder {{nothing}}"},
		{"a secret as text", plays("playbook: a.yml, vars: {a: '{{token}}'}"), "token"},
		{"no secret", plays("playbook: a.yml, secrets: {a: word}"), "no argument \"word\" of type secret"},
		{"twice", plays("playbook: a.yml, vars: {a: x}, secrets: {a: token}"), "is in vars and in secrets"},
		{"an inventory outside", plays("playbook: a.yml, inventory: ../hosts"), "inventory \"../hosts\": want a path within"},
		{"the folder as inventory", plays("playbook: a.yml, inventory: ."), "want a path within the folder of playbooks"},
		{"a vault without a secret", plays("playbook: a.yml, vault: word"), "vault: no argument \"word\" of type secret"},
		{"an option as tag", plays("playbook: a.yml, tags: ['-x']"), "\"-x\": use letters"},
		{"repeatable", "name: a\nsteps: [{name: a, ansible: {playbook: a.yml}, repeatable: true}]\n",
			"repeatable means nothing for a step of kind ansible"},
	})
}

// A playbook gets its values unquoted, and a task keeps them through Redis. It may run twice.
func TestAPlaybookHasItsValues(t *testing.T) {
	t.Parallel()
	const text = "playbook: web/site.yml, groups: [web], vars: {v: \"{{word}} of {{host.name}}\"}, secrets: {s: token}, " +
		"inventory: web/hosts, vault: token"
	r, err := scripts.Parse("x", []byte(plays(text)))
	if err != nil {
		t.Fatal(err)
	}
	values, err := r.BindGiven(scripts.Given{Args: map[string]string{"word": "it's {{ 1 }}"},
		Secrets: map[string]seal.Text{"token": "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	frozen := r.Freeze(values)
	seals := func(string, seal.Text) (string, error) { return "sealed", nil }
	if err := frozen.Seal(seals); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(frozen)
	if err != nil {
		t.Fatal(err)
	}
	var again scripts.Frozen
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"", scripts.OnlyCheck, scripts.OnlyDiff} {
		only, err := again.Only(what)
		if err != nil {
			t.Fatal(err)
		}
		a, err := only.Step(0, fleet.Host{Name: "fw001"}, scripts.Context{})
		if err != nil {
			t.Fatal(err)
		}
		want := &scripts.PlaybookSpec{Playbook: "web/site.yml", Groups: []string{"web"}, Dry: what,
			Inventory: "web/hosts", Vault: "token",
			Vars: map[string]string{"v": "it's {{ 1 }} of fw001"}, Secrets: map[string]string{"s": "token"}}
		if diff := cmp.Diff(want, scripts.PlaybookOf(a)); diff != "" || !a.Repeatable {
			t.Errorf("%q: repeatable %v, -want +got:\n%s", what, a.Repeatable, diff)
		}
	}
}

// A dry run plays, and leaves out all that may need what a playbook would have changed.
func TestADryRunOfPlaybooks(t *testing.T) {
	t.Parallel()
	r, err := scripts.Parse("x", []byte("name: a\ndisruptive: true\nsteps:\n"+
		" - {name: look, check: ls}\n - {name: one, ansible: {playbook: a.yml}}\n"+
		" - {name: two, ansible: {playbook: b.yml}}\n - {name: well, check: ls}\n"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := r.Bind(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	only, err := r.Freeze(values).Only(scripts.OnlyCheck)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range only.Steps {
		names = append(names, s.Name)
		if s.Disruptive {
			t.Errorf("step %s is disruptive in a dry run", s.Name)
		}
	}
	if got := strings.Join(names, " "); got != "look one two" || only.Disruptive {
		t.Errorf("the dry run does %s, disruptive %v", got, only.Disruptive)
	}
}
