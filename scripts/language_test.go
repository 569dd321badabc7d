package scripts_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/scripts"
)

// language uses what steps have beside a kind.
const language = `
name: language
arguments:
  want: {type: string, default: "1.10"}
disruptive: true
timeout: 2m
library: |
  say() { printf '%s\n' "$*"; }
steps:
  - name: look
    check: say look
    expect: {exit: [0, 3], match: '^state=', no_match: error, json: ['a.b == {{want}}']}
    save:
      state: {match: '^state=(\S+)'}
      more: {json: 'a."b.c"', default: none}
  - name: change
    when: ["{{saved.state}} == active", "{{want}} !~ ^2"]
    run: say {{saved.state}}
    retry: {tries: 3, delay: 2s}
    classes:
      - {exit: 75, class: transient}
      - {match: 'No space', class: operator, say: the disk is full}
    on_fail:
      - name: back
        run: say back {{saved.state}}
        save: {how: {lines: true}}
      - name: proof
        check: say {{saved.how}}
        outcome: rolled_back
  - name: last
    upload: {content: x, to: /tmp/x}
`

func frozen(t testing.TB, text string, args map[string]string) scripts.Frozen {
	t.Helper()
	r := mustParse(t, text)
	v, err := r.Bind(args, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r.Freeze(v))
	if err != nil {
		t.Fatal(err)
	}
	var f scripts.Frozen
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestStepsOfOnFailStandBehindTheOthers(t *testing.T) {
	t.Parallel()
	f := frozen(t, language, nil)
	var names []string
	for _, s := range f.Steps {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "look change last back proof" || f.MainSteps() != 3 {
		t.Errorf("%s, %d main ones", got, f.MainSteps())
	}
	if diff := cmp.Diff(&scripts.Block{First: 3, Count: 2}, f.Steps[1].OnFail); diff != "" {
		t.Error(diff)
	}
	if err := f.Check(fleet.Host{Name: "fw1"}); err != nil {
		t.Errorf("before anything is saved: %v", err)
	}
}

func TestSavedValuesAreWordsLikeArguments(t *testing.T) {
	t.Parallel()
	f := frozen(t, language, nil)
	in := scripts.Context{Saved: map[string]string{"state": "active"}}
	a, err := f.Step(1, fleet.Host{Name: "fw1"}, in)
	const want = "say() { printf '%s\\n' \"$*\"; }\nsay 'active'"
	if err != nil || a.Skip != "" || a.Shell != want {
		t.Errorf("%+v, %v", a, err)
	}
	in.Saved["state"] = "$(reboot)'"
	a, err = f.Step(3, fleet.Host{Name: "fw1"}, in)
	if err != nil || !strings.HasSuffix(a.Shell, `say back '$(reboot)'\'''`) {
		t.Errorf("%+v, %v", a, err)
	}
	if !a.Disruptive || a.OnFail != nil {
		t.Errorf("%+v", a)
	}
}

func TestAStepIsSkippedUnlessAllHolds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ want, state, skip string }{
		{"1.10", "active", ""},
		{"1.10", "idle", `{{saved.state}} == active is not so: "idle"`},
		{"2.0", "active", `{{want}} !~ ^2 is not so: "2.0"`},
		{"2.0", "", `{{saved.state}} == active is not so: ""`}, // the step that saves it was skipped
	} {
		f := frozen(t, language, map[string]string{"want": tt.want})
		in := scripts.Context{Saved: map[string]string{"state": tt.state}}
		if tt.state == "" {
			in.Saved = nil
		}
		a, err := f.Step(1, fleet.Host{Name: "fw1"}, in)
		if tt.skip == "" && err == nil && a.Skip == "" {
			continue
		}
		if err != nil || a.Skip != tt.skip {
			t.Errorf("%+v: skip = %q, %v", tt, a.Skip, err)
		}
	}
	_, err := frozen(t, language, nil).Step(3, fleet.Host{Name: "fw1"}, scripts.Context{})
	if err == nil || !strings.Contains(err.Error(), "{{saved.state}}: it was not saved") {
		t.Errorf("a text without its value: %v", err)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, v string
		holds   bool
	}{
		{"{{v}} == a", "a", true}, {"{{v}} == a", "A", false}, {"{{v}} != a", "A", true},
		{"{{v}} == 8", "08", true}, {"{{v}} == 1.10", "1.1", false}, {"{{v}} == -0", "0", true},
		{"{{v}} == 'a b'", "a b", true}, {`{{v}} == "a'b"`, "a'b", true}, {"{{v}} == ''", "", true},
		{"{{v}} < 10", "9", true}, {"{{v}} < 10", "10", false}, {"{{v}} <= 10", "10.0", true},
		{"{{v}} > 9.5", "9.50001", true}, {"{{v}} >= -1", "-1", true}, {"3 < {{v}}", "4", true},
		{"{{v}} > 1", strings.Repeat("9", 60), true},
		{"{{v}} =~ ^ab?$", "a", true}, {"{{v}} !~ ^ab?$", "b", true}, {"{{v}} =~ '^a b'", "a bc", true},
		{"{{v}} == '{{v}}'", "{{v}}", true},
	} {
		f := frozen(t, when(tt.text), map[string]string{"v": tt.v})
		a, err := f.Step(0, fleet.Host{Name: "h"}, scripts.Context{})
		if err != nil || (a.Skip == "") != tt.holds {
			t.Errorf("%s with %q: skip %q, %v", tt.text, tt.v, a.Skip, err)
		}
	}
	for _, v := range []string{"", "x", "0x10", "1e3", " 1", "1.", strings.Repeat("9", 99)} {
		f := frozen(t, when("{{v}} < 10"), map[string]string{"v": v})
		if _, err := f.Step(0, fleet.Host{Name: "h"}, scripts.Context{}); err == nil ||
			!strings.Contains(err.Error(), "want numbers on both sides") {
			t.Errorf("%q < 10: %v", v, err)
		}
	}
}

func when(text string) string {
	quoted, _ := json.Marshal(text)
	return "name: a\narguments: {v: {type: string}}\nsteps: [{name: s, run: ls, when: [" + string(quoted) + "]}]\n"
}

func TestParseRefusesRules(t *testing.T) {
	t.Parallel()
	step := func(more string) string { return "name: a\nsteps: [{name: s, run: ls, " + more + "}]\n" }
	refuses(t, []refusal{
		{"no operator", when("{{v}}"), `want VALUE OP VALUE`},
		{"one equals sign", when("{{v}} = 1"), `want VALUE OP VALUE`},
		{"no blanks", when("{{v}}==1"), `want VALUE OP VALUE`},
		{"an operator in quotes", when("{{v}} '==' 1"), `want VALUE OP VALUE`},
		{"four words", when("{{v}} == a b"), `want VALUE OP VALUE`},
		{"a quote without end", when("{{v}} == 'a"), "a quote has no end"},
		{"more than a placeholder", when("x{{v}} == {{v}}y"), "want one placeholder alone"},
		{"two texts", when("a == b"), "compares two texts, which is the same always"},
		{"a pattern from data", when("a =~ {{v}}"), "a pattern stands in the runbook, values are data"},
		{"a broken pattern", when("{{v}} =~ ("), "missing closing )"},
		{"an unknown value", when("{{w}} == 1"), `x:3:35: unknown placeholder {{w}}: did you mean "v"?`},
		{"an expression", step("when: 'a'"), "x:2:34: when: want a list"},
		{"empty when", step("when: []"), "x:2:34: when is empty"},
		{"an empty expect", step("expect: {}"), "x:2:36: expect is empty: give it one of exit, match"},
		{"an exit code that is none", step("expect: {exit: [256]}"), "exit[1] is 256: want 0 to 255"},
		{"an empty pattern", step("expect: {match: ''}"), "match is empty: it would match all"},
		{"a path with a hole", step("expect: {json: ['a..b == 1']}"), "want keys and places in lists"},
		{"a path of a placeholder", step("expect: {json: ['{{host.name}} == 1']}"), "path"},
		{"a rule for all", step("classes: [{class: operator, say: x}]"), "the rule fits every failure"},
		{"a rule without class", step("classes: [{exit: 1}]"), "the rule has no class"},
		{"a class of our own", step("classes: [{exit: 1, class: transiet}]"), `did you mean "transient"?`},
		{"a retry that never comes", step("retry: {tries: 2}"), "no rule of classes says which those are"},
		{"a retry without tries", step("retry: {delay: 2s}, classes: [{exit: 1, class: transient}]"), "retry has no tries"},
		{"one try", step("retry: {tries: 1}, classes: [{exit: 1, class: transient}]"), "tries is 1: want 2 to 100"},
		{"two sources", step("save: {a: {match: x, lines: true}}"), `save "a": want one of match, json and lines, got 2`},
		{"no source", step("save: {a: {default: x}}"), `want one of match, json and lines, got 0`},
		{"a bad name", step("save: {A: {lines: true}}"), `save "A": use lower-case`},
		{"the same twice", step("save: {a: {lines: true}, a: {lines: true}}"), `save "a" is there twice`},
		{"on_fail for nothing", step("on_fail: []"), "on_fail is empty"},
		{"on_fail of on_fail", step("on_fail: [{name: b, run: ls, on_fail: [{name: c, run: ls}]}]"),
			"on_fail within on_fail"},
		{"an outcome of a main step", step("outcome: rolled_back"), "outcome is for the last step of on_fail"},
		{"an outcome too early", step("on_fail: [{name: b, run: ls, outcome: rolled_back}, {name: c, run: ls}]"),
			"outcome is for the last step of on_fail"},
		{"another outcome", step("on_fail: [{name: b, run: ls, outcome: succeeded}]"), "the only one that a step can give"},
		{"a name of another step", step("on_fail: [{name: s, run: ls}]"), `a second step "s", first on line 2`},
		{"a disruptive step", step("disruptive: true"), "say disruptive: true for the runbook"},
		{"a proof of groups", "name: a\nprove_group: true\nsteps: [{name: s, run: ls}]\n",
			"prove_group is for hosts that are disturbed one after the other: say disruptive: true as well"},
		{"a disruptive check", "name: a\ndisruptive: true\nsteps: [{name: s, check: ls, disruptive: true}]\n",
			"disruptive means nothing for a step of kind check"},
		{"expect of an upload", "name: a\nsteps: [{name: s, upload: {content: x, to: /x}, expect: {exit: [1]}}]\n",
			"expect means nothing for a step of kind upload"},
		{"a library with an error", "name: a\nlibrary: 'f() {'\n" + steps, "x:2:"},
		{"a library that uses what is saved", "name: a\nlibrary: 'echo {{saved.x}}'\n" + steps, "no step saves a value"},
	})
}

func TestSavedValuesMustBeThereBeforeTheyAreUsed(t *testing.T) {
	t.Parallel()
	refuses(t, []refusal{
		{"never", "name: a\nsteps: [{name: b, run: 'echo {{saved.x}}'}]\n",
			`x:2:30: {{saved.x}}: no step saves a value "x": there is none`},
		{"misspelt", "name: a\nsteps:\n- {name: b, run: ls, save: {state: {lines: true}}}\n" +
			"- {name: c, run: 'echo {{saved.sate}}'}\n",
			`did you mean "state"?`},
		{"later", "name: a\nsteps:\n- {name: b, run: 'echo {{saved.x}}'}\n" +
			"- {name: c, run: ls, save: {x: {lines: true}}}\n",
			"x:3:24: {{saved.x}} is used before a step has saved it"},
		{"in the step itself", "name: a\nsteps:\n- {name: b, run: 'echo {{saved.x}}', save: {x: {lines: true}}}\n",
			"is used before a step has saved it"},
		{"by on_fail", "name: a\nsteps:\n- {name: b, run: ls, on_fail: [{name: c, run: ls, save: {x: {lines: true}}}]}\n" +
			"- {name: d, run: ls, when: ['{{saved.x}} == 1']}\n", "outside of the on_fail that saves it"},
	})
}

// actions are the steps of a runbook of one step with these keys.
func action(t *testing.T, more string) scripts.Action {
	t.Helper()
	f := frozen(t, "name: a\nsteps:\n- name: s\n  run: ls\n"+more, nil)
	a, err := f.Step(0, fleet.Host{Name: "h"}, scripts.Context{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAStepIsJudgedByWhatItSaid(t *testing.T) {
	t.Parallel()
	const js = `{"a":{"b.c":[1.50,"x",null,{"k":true}]},"n":10}`
	for _, tt := range []struct {
		keys string
		e    scripts.Evidence
		want string // empty: it succeeded
	}{
		{"", scripts.Evidence{}, ""},
		{"", scripts.Evidence{Exit: 3}, "user: exit 3"},
		{"", scripts.Evidence{Exit: 137, Signal: "KILL"}, "user: ended by signal KILL"},
		{"  expect: {exit: [0, 3]}\n", scripts.Evidence{Exit: 3}, ""},
		{"  expect: {exit: [3]}\n", scripts.Evidence{}, "user: exit 0, want 3"},
		{"  expect: {match: '^ok$'}\n", scripts.Evidence{Output: []byte("x\nok\ny")}, ""},
		{"  expect: {match: '^ok$'}\n", scripts.Evidence{Output: []byte("not ok\n")},
			`user: exit 0, but nothing in the output matches "^ok$"`},
		{"  expect: {match: ok}\n", scripts.Evidence{Exit: 1, Output: []byte("ok\n")}, "user: exit 1"},
		{"  expect: {no_match: '(?i)error'}\n", scripts.Evidence{Output: []byte("Error: no matching key")},
			`user: exit 0, but the output matches "(?i)error"`},
		{"  expect: {no_match: error}\n", scripts.Evidence{Output: []byte("fine"), Cut: true},
			`user: exit 0, but the output is too long to say that nothing in it matches "error"`},
		{"  expect: {json: ['n == 10', 'a.\"b.c\".0 == 1.50', 'a.\"b.c\".3.k == true', 'a.\"b.c\".2 == null']}\n",
			scripts.Evidence{Output: []byte(js + "\n")}, ""},
		{"  expect: {json: ['a == 1']}\n", scripts.Evidence{Output: []byte(js)},
			"user: exit 0, but a is \"{\\\"b.c\\\":[1.50,\\\"x\\\",null,{\\\"k\\\":true}]}\", want == 1"},
		{"  expect: {json: ['n < 10']}\n", scripts.Evidence{Output: []byte(js)}, `user: exit 0, but n is "10", want < 10`},
		{"  expect: {json: ['a.b == 10']}\n", scripts.Evidence{Output: []byte(js)},
			"user: exit 0, but a.b == 10: the output has no a.b"},
		{"  expect: {json: ['n == 10']}\n", scripts.Evidence{Output: []byte(js + js)}, "not JSON alone"},
		{"  expect: {json: ['n == 10']}\n", scripts.Evidence{Output: []byte("warning\n" + js)}, "the output is not JSON: "},
		{"  expect: {json: ['n == 10']}\n", scripts.Evidence{Output: []byte(js), Cut: true}, "too long to be read as JSON"},
		{"  classes: [{exit: 4, class: operator}, {match: space, class: transient, say: full}]\n",
			scripts.Evidence{Exit: 1, Output: []byte("No space left")}, "transient: full (exit 1)"},
		{"  classes: [{exit: 4, match: x, class: operator}]\n", scripts.Evidence{Exit: 4}, "user: exit 4"},
		{"  save: {v: {match: 'v=(.*)'}}\n", scripts.Evidence{}, `user: save v: nothing in the output matches "v=(.*)"`},
		{"  save: {v: {lines: true}}\n", scripts.Evidence{Output: []byte(strings.Repeat("x", 4097))},
			"4097 bytes: at most 4096"},
		{"  save: {v: {lines: true}}\n", scripts.Evidence{Output: []byte("\xff")}, "is not UTF-8"},
		{"  save: {v: {lines: true}}\n", scripts.Evidence{Output: []byte("a\x00b")}, "NUL"},
		{"  save: {v: {lines: true}}\n", scripts.Evidence{Output: []byte("a"), Cut: true}, "too long"},
	} {
		f := action(t, tt.keys).Judge(tt.e, nil)
		got := f.Class + ": " + f.Text
		if f.OK != (tt.want == "") || !f.OK && !strings.Contains(got, tt.want) {
			t.Errorf("%s with %+v:\ngot  %t %s\nwant %s", tt.keys, tt.e, f.OK, got, tt.want)
		}
	}
}

func TestWhatAStepSaves(t *testing.T) {
	t.Parallel()
	a := action(t, `  save:
    last: {match: 'v=(\d+)'}
    whole: {match: 'v=\d+'}
    lines: {lines: true}
    missing: {match: nothing, default: none}
`)
	f := a.Judge(scripts.Evidence{Output: []byte("v=1\nv=22 \r\n")}, nil)
	want := map[string]string{"last": "22", "whole": "v=22", "lines": "v=1\nv=22 ", "missing": "none"}
	if diff := cmp.Diff(want, f.Saved); !f.OK || diff != "" {
		t.Errorf("%+v\n%s", f, diff)
	}
	had := map[string]string{"a": strings.Repeat("x", 16<<10), "last": "1"}
	if f := a.Judge(scripts.Evidence{Output: []byte("v=1")}, had); f.OK || !strings.Contains(f.Text, "at most 16384") {
		t.Errorf("more than all values may have: %+v", f)
	}
	delete(had, "a")
	had["last"] = strings.Repeat("x", 16<<10) // makes place for the new one
	if f := a.Judge(scripts.Evidence{Output: []byte("v=1")}, had); !f.OK {
		t.Errorf("%+v", f)
	}
}

// Whatever a host says, a value that is kept is within bounds and fits on one line of JSON.
func FuzzSave(f *testing.F) {
	f.Add("v=(.*)", "v=1\nv=2", "a.0")
	f.Add("", `{"a":["x"]}`, "a.0")
	f.Add("(", "", `"a.b`)
	f.Add("^$", "\xff\x00", "a..b")
	f.Fuzz(func(t *testing.T, pattern, output, path string) {
		a := scripts.Action{Rules: scripts.Rules{
			Save: []scripts.Save{{Name: "m", Match: pattern}, {Name: "j", JSON: path}},
			Expect: &scripts.Expect{Match: pattern, JSON: []scripts.JSONTest{
				{Path: path, Op: "<", Right: scripts.Operand{Text: output}}}}}}
		e := scripts.Evidence{Output: []byte(output)}
		got := a.Judge(e, nil)
		for k, v := range a.Keep(e, nil) {
			if len(v) > 4096 || strings.ContainsRune(v, 0) {
				t.Errorf("%s = %q", k, v)
			}
		}
		if got.OK == (got.Text != "") {
			t.Errorf("%+v", got)
		}
	})
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{"{{v}} == a", `{{v}} =~ "a b"`, "{{v}} < 'x", "'' == {{v}}", `a"b c".d == {{v}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := scripts.Parse("x", []byte(when(text)))
		if err != nil {
			return
		}
		c := r.Steps[0].When[0]
		if strings.ContainsAny(text, "\"'\\") {
			return // with both quotes it cannot be written again
		}
		if again, err := scripts.Parse("x", []byte(when(c.String()))); err != nil ||
			!cmp.Equal(again.Steps[0].When[0], c) {
			t.Errorf("%q reads as %s, and that as %v", text, c, err)
		}
	})
}
