package scripts_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/fleet"
	"muster/scripts"
)

// stepOf makes a runbook of one shell text with an argument v.
func stepOf(shell string) string {
	var b strings.Builder
	b.WriteString("name: a\narguments:\n  v: {type: string}\n  n: {type: int, default: 1}\n")
	b.WriteString("steps:\n- name: b\n  run: |\n")
	for line := range strings.Lines(shell) {
		b.WriteString("    " + line)
	}
	return b.String() + "\n"
}

func TestPlaceholdersStandWhereAWordCan(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, shell string }{
		{"a word", `echo {{v}}`},
		{"the command", `{{v}} -h`},
		{"part of a word", `echo a{{v}}b{{n}}`},
		{"beside quotes", `echo "a "{{v}}' b'`},
		{"an assignment", `x={{v}} && echo "$x"`},
		{"after export", `export x={{v}}`},
		{"a redirect", `echo a > {{v}}`},
		{"a list", `for i in {{v}} {{n}}; do echo "$i"; done`},
		{"a case", `case {{v}} in a{{n}}) echo b;; esac`},
		{"a subshell", `(cd {{v}}; ls)`},
		{"a command in $( )", `x=$(cat {{v}})`},
		{"a command in $( ) in quotes", `echo "x $(cat {{v}}) y"`},
		{"a function", `f() { echo {{v}}; }`},
		{"a pipe", `echo {{v}} | tr a b`},
		{"after a here-document's start", "cat <<E {{v}}\nx\nE"},
		{"after the process id", `echo $${{v}}`},
		{"after a continued line", "echo \\\n{{v}}"},
		{"two braces that are meant", `docker ps --format '{{{{.Names}}'`},
		{"four and a placeholder", `echo {{{{{{v}}`},
	}
	for _, test := range tests {
		if _, err := scripts.Parse("x", []byte(stepOf(test.shell))); err != nil {
			t.Errorf("%s: %s\ngot %v\nwant no mistake", test.name, test.shell, err)
		}
	}
}

func TestPlaceholdersStandOnlyWhereQuotesHold(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, shell, want string }{
		{"single quotes", `echo '{{v}}'`, "1:7: {{v}} stands in quotes"},
		{"double quotes", `echo "a {{v}}"`, "1:9: {{v}} stands in quotes"},
		{"a here-document", "cat <<E\nx {{v}}\nE", "2:3: {{v}} stands in a here-document"},
		{"a quoted here-document", "cat <<'E'\n{{v}}\nE", "2:1: {{v}} stands in a here-document"},
		{"$( ) in a here-document", "cat <<E\n$(cat {{v}})\nE", "2:7: {{v}} stands in a here-document"},
		{"the mark of a here-document", "cat <<{{v}}\n{{v}}", "1:7: {{v}} stands in the end mark"},
		{"a comment", "ls # {{v}}", "1:6: {{v}} stands in a comment"},
		{"a comment of its own", "ls\n# {{v}}", "2:3: {{v}} stands in a comment"},
		{"only a comment", "# {{v}}", "1:3: {{v}} stands in a comment"},
		{"backquotes", "echo `cat {{v}}`", "1:11: {{v}} stands in backquotes"},
		{"$( ) in backquotes", "echo `echo $(cat {{v}})`", "{{v}} stands in backquotes"},
		{"arithmetic", "echo $(({{n}} + 1))", "1:9: {{n}} stands in arithmetic"},
		{"$( ) in arithmetic", "echo $(($(cat {{v}}) + 1))", "{{v}} stands in arithmetic"},
		{"a parameter's word", "echo ${x:-{{v}}}", "1:11: {{v}} stands in ${ }"},
		{"a parameter's word in quotes", `echo "${x:-{{v}}}"`, "{{v}} stands in ${ }"},
		{"a dollar", `echo ${{v}}`, "1:7: {{v}} stands where the shell wants a name"},
		{"a dollar on the line before", "echo $\\\n{{v}}", "{{v}} stands where"},
		{"a variable's name", `{{v}}=1`, "1:1: {{v}} stands where the shell wants a name"},
		{"a loop's name", `for {{v}} in a; do ls; done`, "1:5: {{v}} stands where the shell wants a name"},
		{"a function's name", `{{v}}() { ls; }`, "1:1: {{v}} stands where the shell wants a name"},
		{"a backslash", `echo \{{v}}`, `1:7: {{v}} follows a backslash`},
		{"two backslashes", `echo \\{{v}}`, `1:8: {{v}} follows a backslash`},
		{"quotes in $( ) in quotes", `echo "$(echo "{{v}}")"`, "{{v}} stands in quotes"},
		{"one that is unknown", `echo '{{w}}'`, "{{w}} stands in quotes"},
		{"both of two", "echo '{{v}}'\necho \"{{n}}\"", "2:7: {{n}} stands in quotes"},
		{"blanks in the braces", `echo {{ v }}`, `1:6: no placeholder follows "{{"`},
		{"an expression", `echo {{v|raw}}`, `1:6: no placeholder follows "{{"`},
		{"a template of Go", `docker ps --format '{{.Names}}'`, `{{{{ for two braces`},
		{"open braces", `echo {{v`, `1:6: no placeholder follows "{{"`},
		{"an unknown host word", `echo {{host.nam}}`, `did you mean "host.name"?`},
		{"a label without key", `echo {{host.label.}}`, `unknown placeholder {{host.label.}}`},
		{"an open quote", `echo "a`, "1:6: not shell: reached EOF without closing quote"},
		{"an open if", "ls\nif true; then", "2:10: not shell: `then` must be followed"},
		{"an array", "x=(a b)", "1:3: not shell: the POSIX shell of the hosts has no arrays"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := scripts.Parse("x", []byte(stepOf(test.shell)))
			if err == nil || !strings.Contains(place(err), test.want) {
				t.Errorf("%s\ngot  %v\nwant %s", test.shell, err, test.want)
			}
		})
	}
}

// place rewrites the places of mistakes in the file of stepOf as places in its
// shell text.
func place(err error) string {
	var lines []string
	for _, m := range err.(scripts.Mistakes) {
		m.Line, m.Col = m.Line-7, m.Col-4
		lines = append(lines, m.Error())
	}
	return strings.Join(lines, "\n")
}

func TestMistakesInShellTextHaveTheirPlaceInTheFile(t *testing.T) {
	t.Parallel()
	const head = "name: a\nsteps:\n"
	tests := []struct{ name, step, want string }{
		{"plain", "- {name: b, run: echo {{v}}}\n", "x:3:1: not YAML"},
		{"plain, of its own", "- name: b\n  run: é {{v}}\n", "x:4:10: unknown"},
		{"single quotes", "- name: b\n  run: 'é {{v}}'\n", "x:4:11: unknown"},
		{"double quotes", "- name: b\n  run: \"é {{v}}\"\n", "x:4:11: unknown"},
		{"escaped", "- name: b\n  run: \"\\x41 {{v}}\"\n", "x:4:8: unknown"},
		{"folded", "- name: b\n  run: >\n    a\n    {{v}}\n", "x:4:8: unknown"},
		{"over two lines", "- name: b\n  run: a\n    {{v}}\n", "x:4:8: unknown"},
		{"a block", "- name: b\n  run: |\n    é\n      ü {{v}}\n", "x:6:9: unknown"},
		{"a block with a remark", "- name: b\n  run: |- # why\n\n    {{v}}\n", "x:6:5: unknown"},
		{"a block with its indent", "- name: b\n  run: |2\n      {{v}}\n", "x:5:7: unknown"},
	}
	for _, test := range tests {
		_, err := scripts.Parse("x", []byte(head+test.step))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
}

// shellOf renders the one step of a runbook.
func shellOf(t rapid.TB, r *scripts.Runbook, args map[string]string) string {
	t.Helper()
	v, err := r.Bind(args, nil)
	if err != nil {
		t.Fatalf("bind %q: %v", args, err)
	}
	a, err := r.Freeze(v).Step(0, fleet.Host{}, scripts.Context{})
	if err != nil {
		t.Fatalf("step: %v", err)
	}
	return a.Shell
}

// sh runs a text in the shell of this machine, as an argument and as its input.
func sh(t rapid.TB, text string) string {
	t.Helper()
	byArgument := exec.Command("/bin/sh", "-c", "--", text)
	byInput := exec.Command("/bin/sh")
	byInput.Stdin = strings.NewReader(text)
	var outputs []string
	for _, c := range []*exec.Cmd{byArgument, byInput} {
		c.Env = []string{"PATH=/nowhere", "LC_ALL=C.UTF-8"} // builtins only: nothing can run
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil || stderr.Len() > 0 {
			t.Fatalf("sh: %v\n%s\nran:\n%s", err, stderr.String(), text)
		}
		outputs = append(outputs, string(out))
	}
	if outputs[0] != outputs[1] {
		t.Fatalf("argument gave %q, input %q, of:\n%s", outputs[0], outputs[1], text)
	}
	return outputs[0]
}

// places holds shell texts that print the value of v, each from another place
// of the shell's grammar.
var places = []string{
	`printf '%s' {{v}}`,
	`printf '%s' ""{{v}}""`,
	`x={{v}} && printf '%s' "$x"`,
	`export x={{v}}; printf '%s' "$x"`,
	`printf '%s' "$(printf '%s.' {{v}})" | { read -r _ || :; printf '%s' {{v}}; }`,
	`for x in {{v}}; do printf '%s' "$x"; done`,
	`case {{v}} in {{v}}) printf '%s' {{v}};; *) printf other;; esac`,
	`f() { printf '%s' "$1"; }; f {{v}}`,
	`(set -- {{v}}; printf '%s' "$1")`,
	"printf '%s' {{v}} <<E\nx\nE",
	`if [ x{{v}} = x{{v}} ]; then printf '%s' {{v}}; fi`,
	`x=$(printf '%s.' {{v}}); printf '%s' "${x%.}"`,
}

func anyValue() *rapid.Generator[string] {
	nasty := []string{
		"'", `"`, `\`, "$", "`", "$(", ")", "{{v}}", "}}", "\n", "\r\n", "\t", " ", "-", "--", "~", "#", "!",
		";", "&", "|", "<", ">", "*", "?", "[", "=", "\x01", "\x7f", "\u0081", "é", "漢", "🦊", "\u2028",
		"\ufeff", "$((1))", "${HOME}", "<<E", "E\n", "if", "'\\''", "''", "a",
	}
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(nasty), 0, 12), func(l []string) string {
			return strings.Join(l, "")
		}),
		rapid.Map(rapid.String(), func(s string) string { return strings.ReplaceAll(s, "\x00", "") }),
	)
}

func TestAnyValueComesBackFromTheShellUnchanged(t *testing.T) {
	t.Parallel()
	runbook := mustParse(t, stepOf(strings.Join(places, "\nprintf '\\001'\n")))
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue().Draw(t, "v")
		got := sh(t, shellOf(t, runbook, map[string]string{"v": v}))
		if want := strings.Repeat(v+"\x01", len(places)-1) + v; got != want {
			t.Fatalf("value %q came back as\n%q", v, got)
		}
	})
}

func TestSomeValuesComeBackFromEveryPlace(t *testing.T) {
	t.Parallel()
	values := []string{
		"", "plain", "-n", "--help", "it's", `"`, `\`, `a\`, "$(echo run)", "`echo run`", "$HOME", "a b",
		"*", "\n", "a\n", "\na\n\n", "'; echo run; '", "''", "{{v}}", "{{{{", "Á\u0081", "E\nE", "&& echo run",
	}
	for _, place := range places {
		runbook := mustParse(t, stepOf(place))
		for _, v := range values {
			if got := sh(t, shellOf(t, runbook, map[string]string{"v": v})); got != v {
				t.Errorf("%s\nvalue %q came back as %q", place, v, got)
			}
		}
	}
}

func TestExecRunsTheCommandAsItStands(t *testing.T) {
	t.Parallel()
	runbook, ok := scripts.Builtin("exec")
	if !ok {
		t.Fatal("exec is not built in")
	}
	tests := []struct{ cmd, want string }{
		{`echo it\'s "$((1 + 1))" '$x'`, "it's 2 $x\n"},
		{"echo a\necho b; exit", "a\nb\n"},
		{"for i in 1 2; do echo $i; done", "1\n2\n"},
		{"cat() { echo mine; }; cat <<E\nx\nE", "mine\n"},
		{"  echo blanks  ", "blanks\n"},
		{"# nothing", ""},
	}
	for _, test := range tests {
		shell := shellOf(t, runbook, map[string]string{"cmd": test.cmd})
		out, err := exec.Command("/bin/sh", "-c", "--", shell).CombinedOutput()
		if err != nil || string(out) != test.want {
			t.Errorf("cmd %q: got %q, %v; want %q", test.cmd, out, err, test.want)
		}
	}

	shell := shellOf(t, runbook, map[string]string{"cmd": "-x-is-not-an-option; exit 7"})
	out, err := exec.Command("/bin/sh", "-c", "--", shell).CombinedOutput()
	if !strings.Contains(string(out), "-x-is-not-an-option") ||
		!strings.Contains(string(out), "not found") {
		t.Errorf("a command with a leading dash: got %q, %v; want it looked for", out, err)
	}
	if err == nil || err.Error() != "exit status 7" {
		t.Errorf("exit = %v: want the command's own, 7", err)
	}
}

func TestPlaceholdersOfHostTaskAndJob(t *testing.T) {
	t.Parallel()
	runbook := mustParse(t, stepOf("echo {{host.name}} {{host.address}} {{host.customer}} "+
		"{{host.label.role}} {{host.label.example.com/rack}} {{task.id}} {{job.attempt}} {{v}}"))
	values, err := runbook.Bind(map[string]string{"v": "a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	frozen := runbook.Freeze(values)
	host := fleet.Host{
		Name: "fw001", Address: "127.77.0.1", Customer: "acme",
		Labels: map[string]string{"role": "it's $fw", "example.com/rack": "R1"},
	}
	a, err := frozen.Step(0, host, scripts.Context{Task: "t1", Attempt: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := `echo 'fw001' '127.77.0.1' 'acme' 'it'\''s $fw' 'R1' 't1' '2' 'a'` + "\n"
	if diff := cmp.Diff(want, a.Shell); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	err = frozen.Check(fleet.Host{Name: "fw002", Labels: map[string]string{"role": "fw"}})
	const missing = `runbook a, step "b": {{host.customer}}: host fw002 has no customer: ` +
		"give it one in the inventory\n" +
		`{{host.label.example.com/rack}}: host fw002 has no label "example.com/rack": ` +
		"give it one in the inventory, or leave the host out"
	if err == nil || err.Error() != missing {
		t.Errorf("got  %v\nwant %s", err, missing)
	}
}
