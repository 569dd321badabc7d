package worker

import (
	"errors"
	"fmt"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// This file leads an attempt from step to step: on to the next one, past those that are
// skipped, and into the on_fail of one that failed.

// until is the index behind the last step of those in hand: the main ones, or an on_fail.
func (a *attempt) until() int {
	book := a.plan.book
	if f := a.memory.Failed; f != nil && f.Step >= 0 && f.Step < len(book.Steps) {
		if b := book.Steps[f.Step].OnFail; b != nil {
			return b.First + b.Count
		}
	}
	return book.MainSteps()
}

// looks tells whether a step of that kind changes nothing.
func looks(k scripts.Kind) bool {
	return k == scripts.KindCheck || k == scripts.KindWait || k == scripts.KindVerify ||
		k == scripts.KindGate
}

// safe tells whether it is no matter if the step in hand ran: it changes nothing, or it
// finds out itself.
func (a *attempt) safe() bool {
	steps := a.plan.book.Steps
	if a.step < 0 || a.step >= len(steps) {
		return false
	}
	k := steps[a.step].Kind
	return looks(k) || patient(k)
}

// goOn leaves a step behind, with what it saved.
func (a *attempt) goOn(saved map[string]string) {
	a.memory.keep(saved)
	a.memory.next()
	a.step++
}

// remark names the step in hand in the transcript.
func (a *attempt) remark(name, more string) {
	main := a.plan.book.MainSteps()
	if f := a.memory.Failed; f != nil {
		a.said.remark(fmt.Sprintf("on_fail of step %d: %s%s", f.Step+1, name, more))
		return
	}
	a.said.remark(fmt.Sprintf("step %d of %d: %s%s", a.step+1, main, name, more))
}

// tellAgain puts a line between two runs of a step that has no title, being alone: now, or by the
// function that it returns, where the host says whether it starts anything.
func (a *attempt) tellAgain(r *remote.Record) (began func()) {
	if len(a.plan.book.Steps) > 1 || !a.mayHaveBegun() && a.memory.Again == 0 {
		return nil
	}
	tell := func() {
		a.said.again(fmt.Sprintf("attempt %d: the step runs once more", a.grant.Attempt))
	}
	if r != nil {
		return tell
	}
	tell()
	return nil
}

// rescues tells whether the on_fail of a step is to run: the step was started, and is
// known to have failed or to have been stopped at its bound.
func (f facts) rescues(r jobs.Result) bool {
	var e *remote.Error
	started := f.err == nil || errors.As(f.err, &e) && e.Sent
	return f.action.OnFail != nil && f.mind().Failed == nil && started && f.order == nil &&
		r.Kind == jobs.KindEnd && (r.Outcome == jobs.Failed || r.Outcome == jobs.Timeout)
}

// rescue goes to the on_fail of a step that failed.
func (a *attempt) rescue(action scripts.Action, r jobs.Result) {
	a.noteDisturbed(action) // it was started
	a.memory.next()
	a.memory.Failed = &failure{Step: a.step, Outcome: r.Outcome, Class: r.Class, Exit: r.ExitCode,
		Error: r.Error, Keep: r.KeepLock}
	a.step = action.OnFail.First
}

// conclude says of a job whose on_fail is over how it ended: as the step that failed did,
// or rolled back if the last of those steps says that it is.
func (a *attempt) conclude(r jobs.Result) jobs.Result {
	first := a.memory.Failed
	if first == nil || r.Kind != jobs.KindEnd {
		return r
	}
	undone := r.Error
	switch r.Outcome {
	case jobs.Succeeded:
		r.Outcome, r.Class, r.ExitCode = first.Outcome, first.Class, first.Exit
		r.Error, r.KeepLock = first.Error, first.Keep
		if a.rolledBack() {
			r.Outcome, r.KeepLock = jobs.RolledBack, false
			r.Error = oneLine(shortened(first.Error, noteMax) + "; its on_fail rolled it back")
		}
		return r
	case jobs.Cancelled: // half way back
		r.KeepLock = r.KeepLock || a.facts().halfWay()
	case jobs.Failed, jobs.Timeout, jobs.Unreachable:
		// The host is left as nobody wanted it, and nobody else of its group shall be next.
		r.Outcome, r.Class, r.ExitCode = first.Outcome, jobs.ClassOperator, first.Exit
		r.KeepLock = r.KeepLock || a.plan.spec.Disruptive && a.memory.Disturbed
		undone = "its on_fail failed: " + undone
	}
	r.KeepLock = r.KeepLock || first.Keep
	r.Error = oneLine(shortened(first.Error, noteMax) + "; " + undone)
	return r
}

// hasAnswered notes whether the host said how a command ended, or that it did not.
func (a *attempt) hasAnswered(err error) {
	switch sentKind(err) {
	case remote.KindTimeout, remote.KindFailed, remote.KindInvalid:
		a.answered = true
	default:
		a.answered = err == nil
	}
}

// leftHalfWay tells whether a job that has disturbed its host ends there without a word of
// the host about it: nobody else of its group shall be next before somebody has looked. A
// step that said no is such a word.
func (a *attempt) leftHalfWay(r jobs.Result) bool {
	if r.Kind != jobs.KindEnd || a.answered || !a.facts().halfWay() {
		return false
	}
	return r.Outcome == jobs.Failed || r.Outcome == jobs.Timeout || r.Outcome == jobs.Unreachable
}

// rolledBack tells whether the last step of the on_fail in hand ran, and says that it
// brings back what was.
func (a *attempt) rolledBack() bool {
	last := a.until() - 1
	action, err := a.plan.book.Step(last, *a.grant.Host, a.context())
	return err == nil && action.Skip == "" && action.Outcome == scripts.RolledBack
}
