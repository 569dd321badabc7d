package scripts_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/scripts"
)

// good uses every key of the language.
const good = `
name: push-config
version: 1.2
description: Brings a file to the host and takes it into use.
arguments:
  config: {type: file, description: the new configuration}
  service: {type: string, default: httpd, pattern: "[a-z]+", max_length: 20}
  tries: {type: int, min: 1, max: 9, default: 3}
  force: {type: bool, default: false}
  pause: {type: duration, min: 1s, max: 5m, default: 1m30s}
  how: {type: enum, values: [reload, restart], required: true}
disruptive: true
needs: [mirror/fw-images, site/zrh1]
repeatable: true
timeout: 2m
expect: 20s
window: required
reserve: 1m
retry: {submit: 5, delay: 10s}
steps:
  - name: bring
    upload: {from: config, to: "/etc/{{service}}/new.conf", mode: "0600"}
  - name: use
    timeout: 30s
    repeatable: false
    run: |
      mv /etc/{{service}}/new.conf /etc/{{service}}/main.conf
      systemctl {{how}} {{service}}
  - name: note
    upload:
      content: "made by hand\n"
      to: /etc/motd
`

func mustParse(t testing.TB, text string) *scripts.Runbook {
	t.Helper()
	r, err := scripts.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("parse:\n%v", err)
	}
	return r
}

func TestParseReadsEveryKey(t *testing.T) {
	t.Parallel()
	one, nine, seconds, minutes := int64(1), int64(9), int64(1), int64(300)
	want := &scripts.Runbook{
		Name:        "push-config",
		Version:     "1.2",
		Description: "Brings a file to the host and takes it into use.",
		Arguments: []scripts.Argument{
			{Name: "config", Type: "file", Required: true, Description: "the new configuration"},
			{Name: "service", Type: "string", Default: "httpd", Pattern: "[a-z]+", MaxLength: 20},
			{Name: "tries", Type: "int", Default: "3", Min: &one, Max: &nine},
			{Name: "force", Type: "bool", Default: "false"},
			{Name: "pause", Type: "duration", Default: "90", Min: &seconds, Max: &minutes},
			{Name: "how", Type: "enum", Required: true, Values: []string{"reload", "restart"}},
		},
		Disturbance: scripts.Disturbance{Disruptive: true},
		Needs:       []string{"mirror/fw-images", "site/zrh1"},
		Repeatable:  false, // one step is not
		Timeout:     2 * time.Minute,
		Timing:      scripts.Timing{Window: true, Expect: 20 * time.Second, Reserve: time.Minute},
		Retry:       scripts.Retry{Submit: 5, Delay: 10 * time.Second},
		Steps: []scripts.Step{{
			Name: "bring", Kind: scripts.KindUpload, Timeout: 2 * time.Minute, Repeatable: true,
			Disruptive: true,
			Upload:     &scripts.UploadSpec{From: "config", To: "/etc/{{service}}/new.conf", Mode: 0o600},
		}, {
			Name: "use", Kind: scripts.KindRun, Timeout: 30 * time.Second, Disruptive: true,
			Run: "mv /etc/{{service}}/new.conf /etc/{{service}}/main.conf\n" +
				"systemctl {{how}} {{service}}\n",
		}, {
			Name: "note", Kind: scripts.KindUpload, Timeout: 2 * time.Minute, Repeatable: true,
			Disruptive: true,
			Upload:     &scripts.UploadSpec{Content: "made by hand\n", To: "/etc/motd", Mode: 0o644},
		}},
		Main: 3,
	}
	got := mustParse(t, good)
	if len(got.Hash) != 64 {
		t.Errorf("hash = %q: want a SHA-256 in hex", got.Hash)
	}
	want.Hash = got.Hash
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if other := mustParse(t, good+"\n# changed"); other.Hash == got.Hash {
		t.Error("two texts have the same hash")
	}
}

func TestParseFillsInDefaults(t *testing.T) {
	t.Parallel()
	r := mustParse(t, "name: a\nsteps: [{name: b, run: ls}]\n")
	if r.Timeout != 5*time.Minute || r.Steps[0].Timeout != 5*time.Minute {
		t.Errorf("timeouts = %s, %s: want 5m both", r.Timeout, r.Steps[0].Timeout)
	}
	if want := (scripts.Retry{Submit: 3, Delay: 5 * time.Second}); r.Retry != want {
		t.Errorf("retry = %v: want %v", r.Retry, want)
	}
	if r.Repeatable || r.Steps[0].Repeatable || r.Disruptive || r.Timing != (scripts.Timing{}) {
		t.Errorf("flags are set that nobody set: %+v", r)
	}
}

func TestArgumentsKeepTheirOrderInBothForms(t *testing.T) {
	t.Parallel()
	forms := []string{
		"arguments:\n  z: {type: int}\n  a: {type: bool}\n  m: {type: string}\n",
		"arguments:\n- {name: z, type: int}\n- {type: bool, name: a}\n- {name: m, type: string}\n",
	}
	for _, form := range forms {
		var names string
		for _, a := range mustParse(t, "name: x\n"+form+"steps: [{name: b, run: ls}]\n").Arguments {
			names += a.Name
		}
		if names != "zam" {
			t.Errorf("order = %s: want zam, from\n%s", names, form)
		}
	}
}

func TestRepeatableIsTheDefaultOfSteps(t *testing.T) {
	t.Parallel()
	r := mustParse(t, "name: x\nrepeatable: true\nsteps: [{name: a, run: ls}, {name: b, run: ls}]\n")
	if !r.Repeatable || !r.Steps[0].Repeatable {
		t.Errorf("want all repeatable, got %+v", r)
	}
	r = mustParse(t, "name: x\nsteps: [{name: a, run: ls, repeatable: true}]\n")
	if !r.Repeatable {
		t.Error("every step is repeatable, but not the runbook")
	}
}

// bad has a mistake in almost every line.
const bad = `name: Bad Name
disruptiv: true
timeout: soon
retry: {submit: 0, delay: 500ms, wait: 1s}
arguments:
  path: {type: strng}
  size: {type: int, min: 5, max: 2, values: [a]}
  mode: {type: enum}
  file: {type: file, default: x}
  level: {type: int, default: high}
  maybe: {type: string, required: false}
  no: {type: string, required: true, default: a}
  re: {type: string, pattern: "(", default: a}
steps:
  - name: one
    run: df {{pth}}
    upload: {to: etc/x, mode: "999"}
  - name: one
    run: "echo '{{path}}'"
    timeout: 10m
  - name: three
  - run: ls
    retry: 3
  - name: put
    upload: {from: fil, to: "/a/../b", content: "x"}
`

func TestParseReportsAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	want := []string{
		`1:7: name "Bad Name": use lower-case letters, digits, '-' and '_', ` +
			`and start with a letter or a digit`,
		`2:1: unknown key "disruptiv": did you mean "disruptive"?`,
		`3:10: timeout: want a duration in whole seconds such as 90s, 5m or 1h30m, got "soon"`,
		`4:17: submit is 0: want 1 to 100`,
		`4:27: delay: want a duration in whole seconds such as 90s, 5m or 1h30m, got "500ms"`,
		`4:34: unknown key "wait": known: submit, delay`,
		`6:16: unknown type "strng": did you mean "string"?`,
		`7:34: max is less than min: no value would do`,
		`7:37: values means nothing for type int`,
		`8:16: an enum needs values: the list of allowed texts`,
		`9:22: default means nothing for type file`,
		`10:31: default: "high": want a whole number`,
		`11:25: an argument that is not required needs a default`,
		`12:22: required: an argument with a default is not: drop one of them`,
		"13:31: pattern \"(\": error parsing regexp: missing closing ): `\\A(?:()\\z`",
		`16:13: unknown placeholder {{pth}}: did you mean "path"?`,
		`17:5: the step is "run" already: make "upload" a step of its own`,
		`18:11: a second step "one", first on line 15`,
		`19:17: {{path}} stands in quotes, but a value brings its own: take it out of them`,
		`20:14: timeout is 10m0s, but the runbook ends after 5m0s: raise the runbook's timeout`,
		`21:5: the step does nothing: give it one of run, upload, check, wait, verify, reboot, confirm, gate, ansible`,
		`22:5: the step has no name`,
		`23:12: retry: want a mapping (key: value), got "3"`,
		`25:20: from: no argument "fil" of type file: did you mean "file"?`,
		`25:29: to: path "/a/../b": want an absolute one to a file, without '.', '..', '//' ` +
			`and '/' at the end`,
		`25:40: content and from exclude each other: keep one`,
	}
	_, err := scripts.Parse("x", []byte(bad))
	if err == nil {
		t.Fatal("no mistake found")
	}
	got := strings.Split(strings.ReplaceAll(err.Error(), "x:", ""), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseAcceptsWindowsLineEnds(t *testing.T) {
	t.Parallel()
	r := mustParse(t, strings.ReplaceAll(good, "\n", "\r\n"))
	if strings.Contains(r.Steps[1].Run, "\r") {
		t.Errorf("the shell text has carriage returns: %q", r.Steps[1].Run)
	}
}

func TestModeIsOctalWithAndWithoutQuotes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"0640", "'0640'", "640", `"640"`} {
		r := mustParse(t, "name: a\nsteps: [{name: a, upload: {content: b, to: /c, mode: "+mode+"}}]\n")
		if got := r.Steps[0].Upload.Mode; got != 0o640 {
			t.Errorf("mode %s = %o: want 640", mode, got)
		}
	}
}

func TestMistakesAreBounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("name: a\n")
	for i := range 20_000 {
		text.WriteString("key-" + strings.Repeat("x", i%20) + string(rune('a'+i%26)) + ": 1\n")
	}
	_, err := scripts.Parse("x", []byte(text.String()))
	var mistakes scripts.Mistakes
	if !errors.As(err, &mistakes) {
		t.Fatalf("got %T: want Mistakes", err)
	}
	if len(mistakes) != 100 || !strings.HasSuffix(err.Error(), "(and more mistakes)") {
		t.Errorf("%d mistakes, the last %v: want 100 and a word on the rest",
			len(mistakes), mistakes[len(mistakes)-1])
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("name: a\nsteps:\n- name: b\n  run: |2\n     echo {{a}} {{{{ \"{{host.name}}\" #{{b}}\n"))
	f.Add([]byte("name: a\narguments: [{name: b, type: enum, values: [c]}]\n" +
		"steps: [{name: d, run: >-\n  x\n  {{b}}}]\n"))
	f.Add([]byte("!%0A"))
	f.Add([]byte("---"))
	f.Add([]byte("a: &a [*a, !!x {? [] : \t}]\n---\n"))
	f.Add([]byte("name: a\nsteps: [{name: b, run: \"cat <<E\\n{{task.id}}\\nE\\n`{{c}}` $(({{d}})) \\\\{{e}}\"}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := scripts.Parse("x", data)
		if (r == nil) == (err == nil) {
			t.Fatalf("runbook %v, error %v: want exactly one", r, err)
		}
		if r != nil {
			_ = r.Freeze(scripts.Values{}).Check(fleet.Host{}) // whatever it says, it must not panic
		}
		var mistakes scripts.Mistakes
		if err != nil && !errors.As(err, &mistakes) {
			t.Fatalf("got %T: want Mistakes", err)
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, m := range mistakes {
			if m.Line < 1 || m.Line > lines || m.Col < 1 || strings.Contains(m.Text, "\n") {
				t.Errorf("mistake at a place that is not there: %v", m)
			}
		}
	})
}
