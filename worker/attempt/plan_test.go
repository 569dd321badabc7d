package attempt

import (
	"testing"

	"muster/scripts"
	"muster/worker/verdict"
)

// planOf returns a plan of steps whose last one belongs to the on_fail of the first.
func planOf(steps ...scripts.Step) Plan {
	n := len(steps) - 1
	steps[0].OnFail = &scripts.Block{First: n, Count: 1}
	return Plan{Book: scripts.Frozen{Steps: steps, Main: n}}
}

func TestAnOnFailEndsAtItsOwnLastStep(t *testing.T) {
	t.Parallel()
	p := planOf(scripts.Step{}, scripts.Step{}, scripts.Step{})
	for want, m := range map[int]verdict.Memory{
		2: {},
		3: {Failed: &verdict.Failure{Step: 0}},
	} {
		if got := p.until(m); got != want {
			t.Errorf("%+v: until %d, want %d", m, got, want)
		}
	}
	for _, strange := range []int{-1, 1, 3} { // steps without an on_fail
		if got := p.until(verdict.Memory{Failed: &verdict.Failure{Step: strange}}); got != 2 {
			t.Errorf("after a failure of step %d: until %d, want the end of the main steps", strange, got)
		}
	}
}

func TestOnlyStepsThatLookOrFindOutMayRunTwice(t *testing.T) {
	t.Parallel()
	p := Plan{Book: scripts.Frozen{Steps: []scripts.Step{{Kind: scripts.KindRun}, {Kind: scripts.KindUpload},
		{Kind: scripts.KindCheck}, {Kind: scripts.KindReboot}}}}
	for step, want := range map[int]bool{-1: false, 0: false, 1: false, 2: true, 3: true, 4: false} {
		if got := p.safe(step); got != want {
			t.Errorf("step %d: safe %t, want %t", step, got, want)
		}
	}
}

func TestAStepDisturbsIfItOrNoStepIsMarkedAsDisruptive(t *testing.T) {
	t.Parallel()
	run, check := scripts.Action{Kind: scripts.KindRun}, scripts.Action{Kind: scripts.KindCheck}
	marked := scripts.Action{Kind: scripts.KindRun, Disruptive: true}
	none, one := planOf(scripts.Step{}, scripts.Step{}), planOf(scripts.Step{Disruptive: true}, scripts.Step{})
	for _, test := range []struct {
		name   string
		plan   Plan
		action scripts.Action
		want   bool
	}{
		{"no step is marked", none, run, true},
		{"another step is marked", one, run, false},
		{"the step is marked", one, marked, true},
		{"a check", none, check, false},
	} {
		if got := test.plan.disturbs(test.action); got != test.want {
			t.Errorf("%s: disturbs %t, want %t", test.name, got, test.want)
		}
	}
}
