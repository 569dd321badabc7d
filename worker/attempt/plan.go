package attempt

import (
	"slices"

	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// Plan is the work of a task, ready to be done.
type Plan struct {
	Spec jobs.Spec
	Book scripts.Frozen
	Err  error // why the runbook cannot be read

	// Proven: an order holds for the job, and so does the state that earlier attempts left.
	Proven bool
}

// until returns the index after the last of the steps in hand: the main steps, or an on_fail.
func (p Plan) until(m verdict.Memory) int {
	if f := m.Failed; f != nil && f.Step >= 0 && f.Step < len(p.Book.Steps) {
		if b := p.Book.Steps[f.Step].OnFail; b != nil {
			return b.First + b.Count
		}
	}
	return p.Book.MainSteps()
}

// safe reports whether a step may run twice without harm: it changes nothing, or it finds out
// itself whether it has run.
func (p Plan) safe(step int) bool {
	if step < 0 || step >= len(p.Book.Steps) {
		return false
	}
	k := p.Book.Steps[step].Kind
	return k.Looks() || k.Patient()
}

// disturbs reports whether a step must not start outside of the window: it is disruptive, or no
// step of the runbook is, although the runbook asks for a window.
func (p Plan) disturbs(action scripts.Action) bool {
	if action.Kind.Looks() {
		return false
	}
	marked := p.Book.Main == 0 && p.Book.Disruptive ||
		slices.ContainsFunc(p.Book.Steps, func(s scripts.Step) bool { return s.Disruptive })
	return action.Disruptive || !marked
}
