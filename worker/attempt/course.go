package attempt

import (
	"cmp"
	"fmt"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// A course leads an attempt from step to step: to the next step, past skipped steps, and into the
// on_fail of a step that failed.
type course struct{ at *Attempt }

// Begin notes that the step in hand is begun on the host.
func (c course) Begin() {
	c.at.begun, c.at.group.unused = true, false
	c.at.timed.firstStep = cmp.Or(c.at.timed.firstStep, c.at.env.Clock())
}

// Disturb notes that a step began which may disturb the host.
func (c course) Disturb(action scripts.Action) {
	spec, m := c.at.plan.Spec, &c.at.memory
	m.Disturbed = m.Disturbed || (spec.Window || spec.Disruptive) && c.at.plan.disturbs(action)
}

// GoOn leaves the step in hand behind, with the values that it saved.
func (c course) GoOn(saved map[string]string) {
	c.at.memory.Keep(saved)
	c.at.memory.Next()
	c.at.step++
}

// Rescue leads to the on_fail of a step that failed with r.
func (c course) Rescue(action scripts.Action, r jobs.Result) {
	c.Disturb(action) // the step was started
	c.at.memory.Next()
	c.at.memory.Failed = &verdict.Failure{Step: c.at.step, Outcome: r.Outcome, Class: r.Class,
		Exit: r.ExitCode, Error: r.Error, Keep: r.KeepLock}
	c.at.step = action.OnFail.First
}

// over reports whether no step is left.
func (c course) over() bool { return c.at.step == c.at.plan.until(c.at.memory) }

// conclude returns the end of a job whose on_fail is over, and any other result unchanged.
func (c course) conclude(r jobs.Result) jobs.Result {
	if c.at.memory.Failed == nil || r.Kind != jobs.KindEnd {
		return r
	}
	return verdict.Concluded(c.at.evidence(), r, r.Outcome == jobs.Succeeded && c.rolledBack())
}

// rolledBack reports whether the last step of the on_fail in hand ran, and declares that it
// restores the state before.
func (c course) rolledBack() bool {
	action, err := c.at.action(c.at.plan.until(c.at.memory) - 1)
	return err == nil && action.Skip == "" && action.Outcome == scripts.RolledBack
}

// now returns the time of Redis, as far as this attempt knows it: the token of an attempt is the
// time of its take.
func (a *Attempt) now() jobs.Micros {
	return jobs.Micros(a.grant.Token).Add(a.env.Clock() - a.timed.sent)
}

// notes writes about the step in hand, to the transcript and to the memory of the job.
type notes struct{ at *Attempt }

// Remark puts a line about the step in hand into the transcript.
func (n notes) Remark(name, more string) {
	if f := n.at.memory.Failed; f != nil {
		n.at.transcript.Remark(fmt.Sprintf("on_fail of step %d: %s%s", f.Step+1, name, more))
		return
	}
	n.at.transcript.Remark(fmt.Sprintf("step %d of %d: %s%s", n.at.step+1,
		n.at.plan.Book.MainSteps(), name, more))
}

// Answered notes whether the host said how a command ended, by the error of the command.
func (n notes) Answered(err error) {
	switch verdict.SentKind(err) {
	case remote.KindTimeout, remote.KindFailed, remote.KindInvalid:
		n.at.answered = true
	default:
		n.at.answered = err == nil
	}
}

// Hear adds the output of a command to the transcript, and notes whether output was lost and
// whether the attempt is attached to a step that an earlier attempt began.
func (n notes) Hear(r *remote.Result) {
	n.at.transcript.Add(r.Output)
	if r.Lost != "" {
		n.at.transcript.Remark("the output from here on is lost: " + r.Lost)
		n.at.memory.Lost = r.Lost
	}
	n.at.attached = n.at.attached || r.Attached
	r.Attached = n.at.attached
}
