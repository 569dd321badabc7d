package scripts_test

import (
	"strings"
	"testing"

	"muster/scripts"
)

const dry = `
name: dry
disruptive: true
window: required
steps:
  - name: look
    check: ls
    on_fail: [{name: sorry, run: ls}]
  - {name: bring, upload: {content: x, to: /tmp/x}, preflight: true}
  - {name: show, run: diff -u /tmp/x /etc/x, expect: {exit: [0, 1]}, diff: true}
  - name: use
    run: mv /tmp/x /etc/x
    on_fail: [{name: undo, run: ls}, {name: proof, check: ls}]
  - {name: well, check: ls}
  - {name: late, check: ls, diff: true}
`

func TestDryRunsChangeNothing(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"":      "look bring use well | sorry undo proof",
		"check": "look bring |",
		"diff":  "look bring show |",
	} {
		f, err := frozen(t, dry, nil).Only(what)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for i, s := range f.Steps {
			if i == f.MainSteps() {
				words = append(words, "|")
			}
			words = append(words, s.Name)
			if b := s.OnFail; b != nil && b.First+b.Count > len(f.Steps) {
				t.Errorf("%q: on_fail of %s = %+v of %d", what, s.Name, b, len(f.Steps))
			}
		}
		if got := strings.Join(words, " "); got != strings.TrimSuffix(want, " |") {
			t.Errorf("%q: %s, want %s", what, got, want)
		}
		if what == "" {
			if b := f.Steps[2].OnFail; f.Steps[b.First].Name != "undo" || !f.Disruptive || !f.Window {
				t.Errorf("%+v, disruptive %t", b, f.Disruptive)
			}
		} else if f.Disruptive || f.Window || f.Runbook != "dry ("+what+")" {
			t.Errorf("%q: %+v", what, f)
		}
	}
}

func TestARunbookMayHaveNothingForADryRun(t *testing.T) {
	t.Parallel()
	const preflight = "steps: [{name: b, upload: {content: x, to: /x}, preflight: true}]\n"
	for text, want := range map[string]string{
		"name: a\nsteps: [{name: b, run: ls}, {name: c, check: ls}]\n": "check:no step of kind check or ansible comes",
		"name: a\nsteps: [{name: b, check: ls}]\n":                     "diff:no step before its first change is marked diff",
		"name: a\nsteps: [{name: b, check: ls, diff: true}]\n":         ":does nothing but show",
		"name: a\n" + preflight:                                        "check:no step of kind check or ansible comes",
	} {
		what, words, _ := strings.Cut(want, ":")
		if _, err := frozen(t, text, nil).Only(what); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The steps of each built-in runbook in a dry run. Runbooks that are not listed have none.
func TestDryRunsOfTheBuiltInOnes(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"dnssec check":        "look",
		"dnssec-status check": "status",
		"firewall check":      "prepare bring rehearse",
		"firewall diff":       "prepare bring rehearse kept",
		"firewall-back check": "look",
		"firmware check":      "preflight",
	}
	for _, r := range scripts.Builtins() {
		for _, what := range []string{scripts.OnlyCheck, scripts.OnlyDiff} {
			f, err := r.Freeze(scripts.Values{}).Only(what)
			var names []string
			for _, s := range f.Steps {
				names = append(names, s.Name)
			}
			name := r.Name + " " + what
			if got := strings.Join(names, " "); err == nil && got != want[name] || err != nil && want[name] != "" {
				t.Errorf("%s: %s, %v; want %q", name, got, err, want[name])
			}
		}
	}
}
