package scripts_test

import (
	"strings"
	"testing"

	"muster/scripts"
)

// refusal is a runbook with a mistake, and a part of what is said of it.
type refusal struct{ name, text, want string }

func refuses(t *testing.T, tests []refusal) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, err := scripts.Parse("x", []byte(test.text))
			if r != nil {
				t.Errorf("a runbook came with the mistakes: %+v", r)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

const steps = "steps: [{name: a, run: ls}]\n"

// arg makes a runbook with arguments, from line 3 on.
func arg(text string) string { return "name: a\narguments:\n" + text + "\n" + steps }

// put makes a runbook that uploads, in line 2.
func put(text string) string { return "name: a\nsteps: [{name: a, upload: {" + text + "}}]\n" }

func TestParseRefusesWhatIsNotPlainYAML(t *testing.T) {
	t.Parallel()
	refuses(t, []refusal{
		{"nothing", "", "x:1:1: the file is empty: want a runbook: it has at least a name and steps"},
		{"only a comment", "# later\n", "x:1:1: the file is empty"},
		{"a list", "- a\n", "x:1:1: a runbook: want a mapping (key: value), got a list"},
		{"a null", "---\n", "want a mapping (key: value), got nothing"},
		{"too big", strings.Repeat("#", 1<<20+1), "x:1:1: the file has more than 1048576 bytes"},
		{"10 MB", strings.Repeat("a: b\n", 2<<20), "the file has more than 1048576 bytes"},
		{"two documents", "name: a\n" + steps + "---\nname: b\n", "x:3:1: a second document"},
		{"an alias", "name: &n a\nversion: *n\n" + steps, "x:2:10: an alias (*n): write it out"},
		{"an anchor", "name: &n a\n" + steps, "x:1:7: an anchor (&n): runbooks have no aliases"},
		{"an alias of nothing", "name: *n\n", "not YAML: unknown anchor 'n' referenced"},
		{"an alias of itself", "name: a\nsteps: &s [*s]\n", "x:2:12: an alias (*s)"},
		{"a merge", "name: a\n<<: {version: b}\n" + steps, `x:2:1: unknown key "<<"`},
		{"a runbook that becomes", "name: a\nbecome: true\n" + steps,
			`x:2:1: unknown key "become": whom commands run as is said of the host, with become: sudo in the inventory`},
		{"a step that becomes", "name: a\nsteps: [{name: b, run: id, become_user: root}]\n",
			`x:2:28: unknown key "become_user": whom commands run as is said of the host`},
		{"a tag", "name: !!binary YQ==\n" + steps, `x:1:7: a tag ("!!binary")`},
		{"a key twice", "name: a\nname: b\n" + steps, `x:2:1: key "name" is there twice, first on line 1`},
		{"a key that is a list", "name: a\n? [b]\n: c\n" + steps, "x:2:3: a key must be a single word"},
		{"a tab", "name: a\nretry:\n\tsubmit: 3\n\tdelay: 1s\n", "x:3:1: a tab in the indentation"},
		{"the next tab", "name: a\nretry:\n\tsubmit: 3\n\tdelay: 1s\n", "x:4:1: a tab in the indentation"},
		{"a tab after blanks", "name: a\nretry:\n  \tsubmit: 3\n  \tdelay: 1s\n", "x:3:3: a tab"},
		{"a tab in a block", "name: a\nsteps:\n- name: b\n  run: |\n\tls\n", "x:5:1: a tab"},
		{"broken YAML", "name: a\nversion: [1\n" + steps, "x:2:1: not YAML: did not find expected ',' or ']'"},
		{"a colon", "name: a\ndescription: b: c\n", "x:2:1: not YAML: mapping values are not allowed"},
		{"bare braces", "name: a\nsteps:\n- name: b\n  run: {{v}}\n",
			`x:4:8: run: want a text, got a mapping (a text that begins with "{{" needs quotes`},
		{"more after bare braces", "name: a\nsteps:\n- name: b\n  run: {{v}} -h\n",
			`x:4:3: not YAML: did not find expected key (a text that begins with "{{" needs quotes`},
		{"too deep", "name: " + strings.Repeat("[", 20_000), "exceeded max depth"},
		{"a control character", "name: a\nversion: \"a\x1bb\"\n", "x:2:12: a control character (U+001B)"},
		{"Latin-1", "name: a\nversion: caf\xe9\n", "x:2:13: not UTF-8 from here on"},
		{"NUL, escaped", "name: a\nversion: \"\\0\"\n" + steps, "x:2:10: version has a NUL character"},
	})
}

func TestParseRefusesRunbooks(t *testing.T) {
	t.Parallel()
	refuses(t, []refusal{
		{"no name", steps, "x:1:1: name is missing"},
		{"no steps", "name: a\n", "x:1:1: steps is missing"},
		{"empty steps", "name: a\nsteps: []\n", "x:2:8: steps is empty"},
		{"null steps", "name: a\nsteps:\n", "x:2:7: steps: want a list (lines that start with a dash), got nothing"},
		{"a step that is a text", "name: a\nsteps: [ls]\n", "x:2:9: steps[1]: want a mapping"},
		{"too many steps", "name: a\nsteps:\n" + strings.Repeat("- {name: a}\n", 101), "101 steps"},
		{"a bool in quotes", "name: a\ndisruptive: \"true\"\n" + steps,
			`x:2:13: disruptive: want true or false, got "true"`},
		{"needs a text", "name: a\nneeds: site/x\n" + steps, "x:2:8: needs: want a list"},
		{"needs no limit", "name: a\nneeds: [site, 'a b/c', group/g]\n" + steps,
			`x:2:9: needs: limit "site": want key/value, such as site/zrh1`},
		{"needs a group", "name: a\nneeds: [site/x, group/g]\n" + steps,
			`x:2:17: needs: limit "group/g": the key group is taken`},
		{"needs one twice", "name: a\nneeds: [a/b, c/d, a/b]\n" + steps, `x:2:19: "a/b" is there twice`},
		{"needs no fact", "name: a\nneeds: [fact.colour]\n" + steps,
			`x:2:9: needs: there is no fact "colour": there are os, os_version,`},
		{"needs a fact of no value", "name: a\nneeds: [fact.os, 'fact.model= ']\n" + steps,
			"x:2:18: needs: fact model: want a value behind ="},
		{"needs a fact twice", "name: a\nneeds: [fact.os, fact.os]\n" + steps, `x:2:18: "fact.os" is there twice`},
		{"needs many", "name: a\nneeds: [" + strings.Repeat("a/b, ", 17) + "]\n" + steps,
			"x:2:8: 17 limits and facts: a runbook needs at most 16"},
		{"a yes", "name: a\ndisruptive: yes\n" + steps, `disruptive: want true or false, got "yes"`},
		{"a timeout without unit", "name: a\ntimeout: 30\n" + steps, `x:2:10: timeout: want a duration`},
		{"no time at all", "name: a\ntimeout: 0s\n" + steps, `timeout is 0s: want 1s to 24h0m0s`},
		{"a window of its own", "name: a\nwindow: sunday\n" + steps, `x:2:9: window is "sunday": want required or none`},
		{"a window as a flag", "name: a\nwindow: true\n" + steps, `x:2:9: window is "true": want required or none`},
		{"a list of windows", "name: a\nwindow: [required]\n" + steps, `x:2:9: window: want a text, got a list`},
		{"a reserve of two days", "name: a\nreserve: 48h\n" + steps, `x:2:10: reserve is 48h0m0s: want 0s to 24h0m0s`},
		{"text instead of retry", "name: a\nretry: 3\n" + steps, `x:2:8: retry: want a mapping (key: value), got "3"`},
		{"nothing to run", "name: a\nsteps: [{name: b, run: ' '}]\n", "x:2:24: run is empty"},
		{"a step name in capitals", "name: a\nsteps: [{name: Install it, run: ls}]\n",
			`x:2:16: name "Install it": use lower-case`},
	})
}

func TestParseRefusesArguments(t *testing.T) {
	t.Parallel()
	refuses(t, []refusal{
		{"arguments as text", "name: a\narguments: b\n" + steps, "x:2:12: arguments: want a mapping"},
		{"an argument twice", arg("  b: {type: int}\n  b: {type: int}"),
			`x:4:3: a second argument "b", first on line 3`},
		{"an argument without type", arg("  b: {}"), "x:3:3: the argument has no type: give it one of string, int"},
		{"an argument without name", arg("- {type: int}"), "x:3:3: the argument has no name"},
		{"a name in a map", arg("  b: {type: int, name: c}"), `unknown key "name"`},
		{"unknown type", arg("  b: {type: password}"),
			`x:3:13: unknown type "password": known: string, int, bool, duration, enum, file, secret`},
		{"a default too large", arg("  b: {type: int, max: 3, default: 4}"), "default: 4 is too large: want at most 3"},
		{"a value twice", arg("  b: {type: enum, values: [c, c]}"), `x:3:31: value "c" is there twice`},
		{"no values", arg("  b: {type: enum, values: []}"), "x:3:27: values is empty"},
	})
}

func TestParseRefusesUploads(t *testing.T) {
	t.Parallel()
	refuses(t, []refusal{
		{"a file in shell text",
			"name: a\narguments: {f: {type: file}}\nsteps: [{name: a, run: 'cat {{f}}'}]\n",
			"x:3:29: {{f}} is a file: bring it to the host with a step of kind upload"},
		{"a file in a path", "arguments: {f: {type: file}}\n" + put("content: a, to: '/b/{{f}}'"),
			"{{f}} is a file: bring it"},
		{"a string to send", "arguments: {f: {type: string}}\n" + put("from: f, to: /b"),
			`argument "f" is of type string, want file`},
		{"nothing to send", put("to: /b"), "upload has nothing to send"},
		{"nowhere to", put("content: b"), "upload has no to"},
		{"a relative path", put("content: b, to: c"), `path "c": want an absolute one`},
		{"a value for a content", put("content: '{{host.name}}', to: /c"),
			"x:2:38: {{host.name}} would not be replaced"},
		{"setuid", put("content: b, to: /c, mode: '4755'"), `mode "4755": want permission bits`},
		{"a mode in words", put("content: b, to: /c, mode: rw"), `mode "rw": want permission bits`},
	})
}
