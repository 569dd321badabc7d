package scripts_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/scripts"
)

const gated = `
name: gated
arguments:
  limit: {type: duration, default: 4h}
  ds: {type: enum, values: [look, person], default: person}
timeout: 1m
steps:
  - name: look
    check: cat ds
    save: {ds: {lines: true}}
    on_fail: [{name: sorry, gate: {question: 'Undo it?'}}]
  - name: person
    when: ["{{ds}} == person"]
    gate:
      question: |
        Publish {{saved.ds}} for {{host.name}}
        and '{{{{' it.
      timeout: "{{limit}}"
      release: true
    on_fail: [{name: undo, run: undo}]
  - {name: again, gate: {question: 'Sure?'}}
`

func TestAGateAsksAPerson(t *testing.T) {
	t.Parallel()
	f := frozen(t, gated, nil)
	if err := f.Check(fleet.Host{Name: "h"}); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var read scripts.Frozen
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	saved := scripts.Context{Saved: map[string]string{"ds": "a $(b)\n'c'"}}
	for i, want := range map[int]scripts.Gate{
		1: {Question: "Publish \n> a $(b)\n> 'c'\n for h\nand '{{' it.", Timeout: 4 * time.Hour, Release: true},
		2: {Question: "Sure?", Timeout: 30 * 24 * time.Hour},
		3: {Question: "Undo it?", Timeout: 30 * 24 * time.Hour},
	} {
		a, err := read.Step(i, fleet.Host{Name: "h"}, saved)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, a.Gate()); diff != "" || a.Kind != scripts.KindGate {
			t.Errorf("step %d, a %s: -want +got:\n%s", i, a.Kind, diff)
		}
		if !a.Repeatable || a.Disruptive || a.Shell != "" {
			t.Errorf("%+v", a)
		}
	}
}

// The person who is asked sees that the question was cut.
func TestAnEndlessQuestionIsCut(t *testing.T) {
	t.Parallel()
	f := frozen(t, gated, nil)
	saved := scripts.Context{Saved: map[string]string{"ds": strings.Repeat("é\xff", 4000)}}
	a, err := f.Step(1, fleet.Host{Name: "h"}, saved)
	if err != nil {
		t.Fatal(err)
	}
	if q := a.Gate().Question; len(q) > 4200 || !strings.HasSuffix(q, " bytes more)") || strings.Contains(q, "\xff") {
		t.Errorf("%d bytes, ending %q", len(q), q[len(q)-40:])
	}
}

func TestParseRefusesGates(t *testing.T) {
	t.Parallel()
	step := func(text string) string {
		return "name: a\narguments: {n: {type: int}, f: {type: file}}\nsteps: [{name: s, " + text + "}]\n"
	}
	refuses(t, []refusal{
		{"nothing", step("gate: {}"), "x:3:25: gate has no question: say what the person"},
		{"a text", step("gate: Go on"), "x:3:25: gate: want a mapping"},
		{"nothing asked", step("gate: {question: ''}"), "x:3:36: question is empty: say what the person"},
		{"only blanks", step(`gate: {question: " \n"}`), "x:3:36: question is empty"},
		{"no text", step("gate: {question: [a]}"), "x:3:36: question: want a text"},
		{"a novel", step("gate: {question: " + strings.Repeat("a", 1001) + "}"), "question"},
		{"no time", step("gate: {question: a, timeout: 0s}"), "x:3:48: timeout is 0s: want 1s to 8784h0m0s"},
		{"a number", step("gate: {question: a, timeout: 90}"), "x:3:48: timeout: want a duration in whole seconds"},
		{"an int", step("gate: {question: a, timeout: '{{n}}'}"),
			"timeout: {{n}} is no argument of type duration, and no saved value"},
		{"another key", step("gate: {question: a, limit: 1h}"),
			`x:3:39: unknown key "limit": known: question, timeout, release`},
		{"no argument", step("gate: {question: 'a {{m}}'}"), "unknown placeholder {{m}}"},
		{"a file", step("gate: {question: 'a {{f}}'}"), "{{f}} is a file"},
		{"not saved", step("gate: {question: '{{saved.ds}}'}"), `no step saves a value "ds"`},
		{"a timeout outside", step("gate: {question: a}, timeout: 1m"), "timeout means nothing for a step of kind gate"},
		{"a saver", step("gate: {question: a}, save: {x: {lines: true}}"), "save means nothing for a step of kind gate"},
		{"two kinds", step("gate: {question: a}, run: ls"), `the step is "run" already: make "gate" a step of its own`},
	})
}

// A dry run ends at the first gate: what comes behind it may need what the person does.
func TestADryRunSaysWhatAGateWouldAsk(t *testing.T) {
	t.Parallel()
	const text = "name: a\nsteps: [{name: b, check: ls}, {name: c, gate: {question: 'Well?'}}, {name: d, check: ls}]\n"
	whole := frozen(t, text, nil)
	f, err := whole.Only(scripts.OnlyCheck)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Steps) != 2 || !f.Steps[1].Spec.(*scripts.GateSpec).Dry || f.Steps[0].Name != "b" {
		t.Errorf("%+v", f.Steps)
	}
	if whole.Steps[1].Spec.(*scripts.GateSpec).Dry {
		t.Error("the dry run changed the runbook itself")
	}
	a, err := f.Step(1, fleet.Host{Name: "h"}, scripts.Context{})
	if err != nil || !a.Gate().Dry {
		t.Errorf("%+v, %v", a.Gate(), err)
	}
	if all, err := whole.Only(""); err != nil || len(all.Steps) != 3 || all.Steps[1].Spec.(*scripts.GateSpec).Dry {
		t.Errorf("%+v, %v", all.Steps, err)
	}
}
