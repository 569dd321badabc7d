package rehearse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"muster/jobs"
	"muster/scripts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const book = `
name: play
arguments:
  pw: {type: secret}
  pause: {type: duration, default: 48h}
disruptive: true
timeout: 1m
steps:
  - name: look
    check: look {{host.label.site}}
    save: {state: {match: 'state=(\S+)'}}
  - name: bring
    upload: {content: x, to: /tmp/x}
  - name: use
    when: ["{{saved.state}} != done"]
    run: printf %s {{pw}} | tee /dev/null
    retry: {tries: 3, delay: 10m}
    classes: [{exit: 7, class: transient}]
    on_fail:
      - {name: back, run: back, outcome: rolled_back}
  - name: soak
    wait: {for: "{{pause}}", release: true}
  - name: boot
    reboot: {ready: "test -e /ready || exit 75"}
  - name: change
    confirm: {apply: apply, prove: prove, rollback: rollback}
  - name: again
    reboot: {}
  - name: well
    verify: {check: well}
`

const head = "cases:\n- name: c\n  secrets: {pw: swordfish-1932}\n  host: {labels: {site: zrh}}\n"

// play does the one case of a text.
func play(t *testing.T, text string) Result {
	t.Helper()
	r, err := scripts.Parse("play.yaml", []byte(book))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("play.test.yaml", []byte(head+text))
	if err == nil {
		err = s.Check(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Run(t.Context(), r, s.Cases[0])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEveryKindOfStepIsRehearsed(t *testing.T) {
	t.Parallel()
	all := []string{"look", "bring", "use", "boot", "change", "again", "well"}
	for _, c := range []struct {
		name, answers string
		outcome       jobs.Outcome
		class         jobs.Class
		steps         []string
	}{
		{"all is well", "{look: state=old}", jobs.Succeeded, "", all},
		{"a step is skipped", "{look: state=done}", jobs.Succeeded, "",
			[]string{"look", "bring", "boot", "change", "again", "well"}},
		{"nothing is saved", "{}", jobs.Failed, "user", []string{"look"}},
		{"rolled back", "{look: state=old, use: {exit: 1}}", jobs.RolledBack, "user",
			[]string{"look", "bring", "use", "back"}},
		{"a third try", "{look: state=old, use: [{exit: 7}, {exit: 7}, {exit: 0}]}", jobs.Succeeded, "", all},
		{"no fourth", "{look: state=old, use: {exit: 7}}", jobs.RolledBack, "transient",
			[]string{"look", "bring", "use", "back"}},
		{"ready late", "{look: state=old, boot: [{unreachable: true}, {exit: 75}, {exit: 0}]}", jobs.Succeeded, "", all},
		{"never ready", "{look: state=old, boot: {exit: 75}}", jobs.Failed, "transient", all[:4]},
		{"unproven", "{look: state=old, change: {exit: 1, output: no route}}", jobs.RolledBack, "user", all[:5]},
		{"never there", "{look: {unreachable: true}}", jobs.Unreachable, "transient", []string{}},
		{"cut off", "{look: state=old, use: {unreachable: true}}", jobs.Unknown, "operator", all[:3]},
	} {
		got := play(t, "  answers: "+c.answers+"\n")
		if got.Outcome != c.outcome || c.class != "" && got.Class != c.class || !cmp.Equal(got.Steps, c.steps) {
			t.Errorf("%s: %s %s %v, %s; want %s %s %v", c.name, got.Outcome, got.Class, got.Steps, got.Error,
				c.outcome, c.class, c.steps)
		}
	}
}

func TestWaitsTakePretendedTime(t *testing.T) {
	t.Parallel()
	got := play(t, "  args: {pause: 600h}\n  answers: {look: state=old}\n")
	if got.Took < 600*3600 || got.Took > 601*3600 {
		t.Errorf("it took %g s: want 600 h and some minutes", got.Took)
	}
}

func TestWhatIsNotAsWantedIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ want, wrong string }{
		{"{outcome: failed}", "outcome\n  - failed\n  + succeeded: "},
		{"{class: user}", "class\n  - user\n  + "},
		{"{error: x}", "error\n  - something that matches x\n  + "},
		{"{steps: [look]}", "steps\n  - look\n  + look, bring, use, boot, change, again, well"},
		{"{saved: {state: new}}", "saved.state\n  - \"new\"\n  + \"old\""},
		{"{saved: {other: x}}", "saved.other\n  - \"x\"\n  + \"\""},
		{"{runs: {look: look nyc}}", "runs.look\n  - something that matches look nyc\n  + look 'zrh'"},
		{"{refused: x}", "refused\n  - something that matches x\n  + "},
		{"{}", ""}, {"{outcome: succeeded, runs: {look: zrh}, saved: {state: old}}", ""},
	} {
		got := play(t, "  answers: {look: state=old}\n  want: "+c.want+"\n")
		if text := strings.Join(got.Wrong, "\n"); text != c.wrong || got.OK != (c.wrong == "") {
			t.Errorf("%s: %t\n%q\nwant\n%q", c.want, got.OK, text, c.wrong)
		}
	}
	refused := play(t, "  args: {none: x}\n")
	if refused.OK || len(refused.Wrong) != 1 || !strings.Contains(refused.Wrong[0], `no argument "none"`) {
		t.Errorf("%+v", refused)
	}
}

func TestMistakesOfAFileHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", "f:1:1: the file is empty: want a mapping with cases"},
		{"[]", "f:1:1: want a mapping with cases"},
		{"cases:\n\t- {name: a}\n", "f:2:1: a tab in the indentation: use blanks"},
		{"cases: []\n---\ncases: []\n", "f:2:1: a second document"},
		{"cases: [{name: \xff}]", "f:1:16: not UTF-8 from here on"},
		{strings.Repeat("a: b\n", 2<<20), "f:1:1: the file has more than 1048576 bytes"},
		{"case: []", `f:1:1: unknown key "case": known: runbook, cases`},
		{"cases: []", "f:1:8: cases: want a list"},
		{"cases: [x]", "f:1:9: a case: want a mapping"},
		{"cases: [{}]", "f:1:9: the case has no name"},
		{"cases: [{name: a, awnsers: {}}]", `f:1:19: unknown key "awnsers"`},
		{"cases:\n- name: a\n  want: {outcome: good}", `f:3:19: outcome is "good": want one of`},
		{"cases:\n- name: a\n  want: {error: '('}", `f:3:17: pattern "(":`},
		{"cases:\n- name: a\n  only: x", `f:3:9: only is "x": want check or diff`},
		{"cases:\n- name: a\n  answers: {b: {exti: 1}}", `f:3:17: unknown key "exti"`},
		{"cases:\n- name: a\n  answers: {b: {exit: x}}", "f:3:16: cannot unmarshal"},
		{"cases:\n- name: a\n  answers: {b: {exit: 300}}", "f:3:16: exit is 300: want 0 to 255"},
		{"cases:\n- name: a\n  name: b", `f:3:3: key "name" is there twice`},
		{"cases: [{name: a", "f:1:1: not YAML"},
	} {
		_, err := Parse("f", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	r, err := scripts.Parse("play.yaml", []byte(book))
	if err != nil {
		t.Fatal(err)
	}
	// Mistakes in the file itself and mistakes against the runbook are reported together.
	s, err := Parse("f", []byte("cases:\n- name: a\n  only: x\n  answers: {lok: x}\n  want: {steps: [us]}\n"))
	if s == nil || err == nil {
		t.Fatal(s, err)
	}
	if err := s.Check(r); err == nil ||
		!strings.Contains(err.Error(), `f:4:13: case "a": runbook play has no step "lok": did you mean "look"?`) ||
		!strings.Contains(err.Error(), `f:5:18: case "a": runbook play has no step "us": did you mean "use"?`) {
		t.Errorf("Check: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte("cases:\n- name: a\n  answers: {b: [x, {exit: 3}]}\n  want: {runs: {b: x}}\n"))
	f.Add([]byte("cases: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f", data)
		if err == nil && len(s.Cases) == 0 {
			t.Error("no case and no mistake")
		}
	})
}
