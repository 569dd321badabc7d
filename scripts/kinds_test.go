package scripts_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/scripts"
)

// Tasks of muster 0.1.0 have this form in Redis.
const storedSteps = `{"runbook": "r", "hash": "x", "timeout_ns": 1, "retry": {"submit": 1, "delay_ns": 0},
"values": {}, "steps": [
 {"name": "w", "kind": "wait", "timeout_ns": 1, "wait": {"for": {"ns": 7}, "every": {"ref": "saved.a"}, "limit": {}}},
 {"name": "r", "kind": "run", "timeout_ns": 1, "run": "ls", "disruptive": true},
 {"name": "g", "kind": "gate", "timeout_ns": 1, "gate": {"question": "Well?", "timeout": {"ns": 9}, "release": true}}]}`

func TestASpecIsStoredUnderTheNameOfItsKind(t *testing.T) {
	t.Parallel()
	var got scripts.Frozen
	if err := json.Unmarshal([]byte(storedSteps), &got); err != nil {
		t.Fatal(err)
	}
	want := []scripts.Step{
		{Name: "w", Kind: scripts.KindWait, Timeout: 1,
			Spec: &scripts.WaitSpec{For: scripts.Span{Time: 7}, Every: scripts.Span{Ref: "saved.a"}}},
		{Name: "r", Kind: scripts.KindRun, Timeout: 1, Run: "ls", Disruptive: true},
		{Name: "g", Kind: scripts.KindGate, Timeout: 1,
			Spec: &scripts.GateSpec{Question: "Well?", Timeout: scripts.Span{Time: 9}, Release: true}},
	}
	if diff := cmp.Diff(want, got.Steps); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i, step := range got.Steps {
		data, err := json.Marshal(step)
		var fields map[string]any
		if err == nil {
			err = json.Unmarshal(data, &fields)
		}
		if _, has := fields[string(step.Kind)]; err != nil || !has || fields["kind"] != string(step.Kind) {
			t.Errorf("step %d: %s, %v", i, data, err)
		}
	}
}

func TestAStoredStepWithAStrangeFieldIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"in the spec":     {`"release": true`, `"release": true, "colour": "red"`},
		"in the step":     {`"run": "ls"`, `"run": "ls", "colour": "red"`},
		"of another kind": {`"run": "ls"`, `"run": "ls", "gate": {"question": "Well?"}`},
		"of a later kind": {`"run": "ls"`, `"note": "ls"`},
		"without a kind":  {`"kind": "run"`, `"colour": "red"`},
	} {
		text := strings.Replace(storedSteps, change[0], change[1], 1)
		var f scripts.Frozen
		err := json.Unmarshal([]byte(text), &f)
		if text == storedSteps || err == nil || !strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: %v, want a refusal that names the field", name, err)
		}
	}
}

func TestEachKindIsLookedUpByItsName(t *testing.T) {
	t.Parallel()
	for kind, want := range map[scripts.Kind][2]bool{ // changes nothing; releases its worker
		scripts.KindRun: {}, scripts.KindUpload: {}, scripts.KindCheck: {true, false},
		scripts.KindWait: {true, true}, scripts.KindVerify: {true, true}, scripts.KindReboot: {false, true},
		scripts.KindConfirm: {false, true}, scripts.KindGate: {true, false}, scripts.KindAnsible: {},
		"": {}, "later": {},
	} {
		if got := [2]bool{kind.Looks(), kind.Patient()}; got != want {
			t.Errorf("%q: got %v, want %v", kind, got, want)
		}
	}
}
