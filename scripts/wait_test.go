package scripts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/scripts"
)

const patient = `
name: patient
arguments:
  limit: {type: duration, default: 1h30m}
disruptive: true
timeout: 1m
library: f() { :; }
steps:
  - name: look
    check: date +%s
    save: {at: {lines: true}}
  - name: rest
    wait: {for: 90s, release: true}
  - name: more
    wait: {for: "{{saved.at}}"}
  - name: until
    wait: {until: 'test -e {{saved.at}}', every: 5s, limit: "{{limit}}", on_late: unknown}
  - name: well
    verify: {check: 'f', unreachable: {probes: 20}, not_ready: {first: 1s, more: 0s}}
  - name: boot
    reboot: {ready: systemctl is-system-running}
  - name: again
    reboot: {command: 'request system reboot', unreachable: {every: 1m}}
`

func TestStepsThatGiveTheWorkerBack(t *testing.T) {
	t.Parallel()
	f := frozen(t, patient, nil)
	if err := f.Check(fleet.Host{Name: "h"}); err != nil {
		t.Fatal(err)
	}
	step := func(i int) scripts.Action {
		a, err := f.Step(i, fleet.Host{Name: "h"}, scripts.Context{Saved: map[string]string{"at": " 3600 "}})
		if err != nil {
			t.Fatal(err)
		}
		if !a.Repeatable || a.Disruptive != (a.Kind == scripts.KindReboot) {
			t.Errorf("%s: repeatable %t, disruptive %t", a.Name, a.Repeatable, a.Disruptive)
		}
		return a
	}
	for i, want := range map[int]scripts.Wait{
		1: {For: 90 * time.Second, Release: true},
		2: {For: time.Hour},
		3: {Every: 5 * time.Second, Limit: 90 * time.Minute, Unknown: true},
	} {
		if diff := cmp.Diff(&want, step(i).Wait()); diff != "" {
			t.Errorf("step %d: -want +got:\n%s", i, diff)
		}
	}
	if a := step(3); a.Shell != "f() { :; }\ntest -e ' 3600 '" {
		t.Errorf("until: %q", a.Shell)
	}
	numbers := scripts.Probes{
		Unreachable: scripts.AwayProbes{Every: 30 * time.Second, Probes: 6},
		NotReady:    scripts.ReadyProbes{First: 30 * time.Second, More: 10 * time.Second, Probes: 6},
	}
	if diff := cmp.Diff(&numbers, step(5).Probes); diff != "" {
		t.Errorf("the numbers of design §5: -want +got:\n%s", diff)
	}
	numbers.Unreachable.Every = time.Minute
	if diff := cmp.Diff(&numbers, step(6).Probes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	numbers.Unreachable = scripts.AwayProbes{Every: 30 * time.Second, Probes: 20}
	numbers.NotReady.First, numbers.NotReady.More = time.Second, 0
	if diff := cmp.Diff(&numbers, step(4).Probes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if a := step(5); !strings.Contains(a.Command, "systemd-run") || !strings.HasPrefix(a.Command, "f()") {
		t.Errorf("the default of a reboot: %q", a.Command)
	}
	if a := step(6); a.Command != "f() { :; }\nrequest system reboot" || a.Shell != "" {
		t.Errorf("%+v", a)
	}
}

func TestASavedTimeMustBeOne(t *testing.T) {
	t.Parallel()
	f := frozen(t, patient, nil)
	for text, want := range map[string]time.Duration{"0": 0, "7": 7 * time.Second, "2h5m": 125 * time.Minute,
		"-1": -1, "soon": -1, "": -1, "99999999": -1, "1e3": -1} {
		a, err := f.Step(2, fleet.Host{Name: "h"}, scripts.Context{Saved: map[string]string{"at": text}})
		switch {
		case want < 0 && (err == nil || !strings.Contains(err.Error(), "want seconds, or a duration")):
			t.Errorf("%q: %+v, %v", text, a.Wait(), err)
		case want >= 0 && (err != nil || a.Wait().For != want):
			t.Errorf("%q: %+v, %v", text, a.Wait(), err)
		}
	}
}

func TestParseRefusesWaits(t *testing.T) {
	t.Parallel()
	step := func(text string) string {
		return "name: a\ndisruptive: true\narguments: {n: {type: int}}\nsteps: [{name: s, " + text + "}]\n"
	}
	refuses(t, []refusal{
		{"nothing to wait for", step("wait: {}"), "x:4:25: wait: give it either for, a time, or until"},
		{"both", step("wait: {for: 1s, until: ls, limit: 1s}"), "wait: give it either for, a time, or until"},
		{"for ever", step("wait: {until: ls}"), "x:4:25: wait has no limit: say after what time it is too late"},
		{"a limit of a pause", step("wait: {for: 1s, limit: 2s}"), "x:4:35: limit is for a wait with until"},
		{"a number", step("wait: {for: 90}"), "x:4:31: for: want a duration in whole seconds"},
		{"an int", step("wait: {for: '{{n}}'}"), "for: {{n}} is no argument of type duration, and no saved value"},
		{"a saved one that is not", step("wait: {for: '{{saved.n}}'}"), `no step saves a value "n"`},
		{"too late for what", step("wait: {until: ls, limit: 1m, on_late: explode}"),
			"on_late \"explode\": want fail or unknown"},
		{"verify without a check", step("verify: {}"), "verify has no check: give it a shell text that exits with 0"},
		{"no probes", step("verify: {check: ls, unreachable: {probes: 0}}"), "probes is 0: want 1 to 1000"},
		{"a key of the other", step("verify: {check: ls, unreachable: {first: 1s}}"),
			`unknown key "first": known: every, probes`},
		{"a reboot in peace", "name: a\nsteps: [{name: s, reboot: {}}]\n",
			"x:2:19: a reboot disturbs its host: say disruptive: true"},
		{"a repeatable wait", step("wait: {for: 1s}, repeatable: true"), "repeatable means nothing for a step of kind wait"},
	})
}
