package worker

import (
	"cmp"
	"fmt"
	"slices"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
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

// safe tells whether it is no matter if the step in hand ran: it changes nothing, or it
// finds out itself.
func (a *attempt) safe() bool {
	steps := a.plan.book.Steps
	if a.step < 0 || a.step >= len(steps) {
		return false
	}
	k := steps[a.step].Kind
	return verdict.Looks(k) || verdict.Patient(k)
}

// goOn leaves a step behind, with what it saved.
func (a *attempt) goOn(saved map[string]string) {
	a.memory.Keep(saved)
	a.memory.Next()
	a.step++
}

// remark names the step in hand in the transcript.
func (a *attempt) remark(name, more string) {
	main := a.plan.book.MainSteps()
	if f := a.memory.Failed; f != nil {
		a.said.Remark(fmt.Sprintf("on_fail of step %d: %s%s", f.Step+1, name, more))
		return
	}
	a.said.Remark(fmt.Sprintf("step %d of %d: %s%s", a.step+1, main, name, more))
}

// rescue goes to the on_fail of a step that failed.
func (a *attempt) rescue(action scripts.Action, r jobs.Result) {
	a.noteDisturbed(action) // it was started
	a.memory.Next()
	a.memory.Failed = &verdict.Failure{Step: a.step, Outcome: r.Outcome, Class: r.Class,
		Exit:  r.ExitCode,
		Error: r.Error, Keep: r.KeepLock}
	a.step = action.OnFail.First
}

// conclude returns how a job ended whose on_fail is over.
func (a *attempt) conclude(r jobs.Result) jobs.Result {
	if a.memory.Failed == nil || r.Kind != jobs.KindEnd {
		return r
	}
	return verdict.Concluded(a.facts(), r, r.Outcome == jobs.Succeeded && a.rolledBack())
}

// hasAnswered notes whether the host said how a command ended, or that it did not.
func (a *attempt) hasAnswered(err error) {
	switch verdict.SentKind(err) {
	case remote.KindTimeout, remote.KindFailed, remote.KindInvalid:
		a.answered = true
	default:
		a.answered = err == nil
	}
}

// rolledBack tells whether the last step of the on_fail in hand ran, and says that it
// brings back what was.
func (a *attempt) rolledBack() bool {
	last := a.until() - 1
	action, err := a.plan.book.Step(last, *a.grant.Host, a.context())
	return err == nil && action.Skip == "" && action.Outcome == scripts.RolledBack
}

// now is the time of Redis, as far as it is known here: a token is the instant of its take.
func (a *attempt) now() jobs.Micros {
	return jobs.Micros(a.grant.Token).Add(a.worker.Clock() - a.timed.sent)
}

// probed is what is kept of the step in hand.
func (a *attempt) probed() verdict.Probing { return a.facts().Probed() }

// hears takes what a step said, and what is to be told of that beside the outcome of the job.
func (a *attempt) hears(r *remote.Result) {
	a.said.Add(r.Output)
	if r.Lost != "" {
		a.said.Remark("what it said from here on is lost: " + r.Lost)
		a.memory.Lost = r.Lost
	}
	a.attached = a.attached || r.Attached
	r.Attached = a.attached
}

// begin notes that a step is begun.
func (a *attempt) begin() {
	a.begun, a.group.unused = true, false
	a.timed.stepped = cmp.Or(a.timed.stepped, a.worker.Clock())
}

// disturbs tells whether a step must not start outside of the window: it is disruptive,
// or none of its runbook is, which asked for the window all the same.
func (a *attempt) disturbs(action scripts.Action) bool {
	if verdict.Looks(action.Kind) {
		return false
	}
	book := a.plan.book
	said := book.Main == 0 && book.Disruptive ||
		slices.ContainsFunc(book.Steps, func(s scripts.Step) bool { return s.Disruptive })
	return action.Disruptive || !said
}

// disturbed tells whether the job is half way: a step that disturbs was done, or what one
// did is being undone.
func (a *attempt) disturbed() bool { return a.memory.Unfinished() }

// noteDisturbed remembers that a step which disturbs was begun.
func (a *attempt) noteDisturbed(action scripts.Action) {
	spec := a.plan.spec
	a.memory.Disturbed = a.memory.Disturbed || (spec.Window || spec.Disruptive) && a.disturbs(action)
}

// mayHaveBegun reports whether an earlier attempt may have started the step in hand.
func (a *attempt) mayHaveBegun() bool { return a.facts().MayHaveBegun() }

// records returns what makes the records of this attempt.
func (a *attempt) records() records { return records{a} }

// queue returns what asks the queue for this attempt.
func (a *attempt) queue() clearance { return clearance{a} }

// stepKind returns what does the step in hand. A kind that the language does not know cannot
// come here; it would be run like a command.
func (a *attempt) stepKind(k scripts.Kind) stepKind {
	if make := stepKinds[k]; make != nil {
		return make(a)
	}
	return newRunStep(a)
}
