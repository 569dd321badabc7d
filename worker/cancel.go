package worker

import (
	"cmp"
	"fmt"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// This file decides about jobs that an operator cancelled. What was cancelled is
// never tried again, and what ended by itself before it could be stopped ends as
// it did.

// noteMax bounds who and why in the error of a result, in bytes: what became of the
// job comes behind it.
const noteMax = 150

// cancelled is about a job that went wrong after it was cancelled. e is the error
// of connecting or of the step; nil: it was none of package remote.
func (f facts) cancelled(e *remote.Error) jobs.Result {
	if e == nil {
		e = &remote.Error{Kind: remote.KindLost, Sent: f.action.Kind != "", Err: f.err}
	}
	if !e.Sent {
		return f.cancelledUnsent(e.Kind)
	}
	if e.Kind == remote.KindGone || e.Kind == remote.KindMute {
		r := f.goesOn("not known what it did")
		r.KeepLock = e.Kind == remote.KindMute // else nothing of it is alive
		return r
	}
	switch e.Kind {
	case remote.KindStopped:
		return f.stoppedOnHost()
	case remote.KindRunning:
		return f.goesOn("still running")
	case remote.KindTimeout, remote.KindFailed, remote.KindNode, remote.KindInvalid:
		return f.broken(e.Kind) // it had ended
	}
	return f.goesOn("not known whether it still runs")
}

// cancelledUnsent is about a step, or the connecting before it, that was not sent.
// Where somebody must look at the host, that is said all the same.
func (f facts) cancelledUnsent(k remote.Kind) jobs.Result {
	switch k {
	case remote.KindHostKey, remote.KindAuth, remote.KindKey, remote.KindRefused, remote.KindFailed,
		remote.KindInvalid:
		return f.hindered(k, 0)
	case remote.KindNever:
		return f.unbegun()
	}
	return notStarted(f)
}

// notStarted is about a cancelled job of which no step is under way.
func notStarted(f facts) jobs.Result {
	if k := f.action.Kind; k != scripts.KindWait && patient(k) && f.mind().Probe != nil {
		return f.leftAlone()
	}
	return f.doubt(f.endOf(jobs.Cancelled, jobs.ClassNone, f.note()+"; stopped before "+f.stepWords()))
}

// stoppedOnHost is about a step of which nothing is left on the host.
func (f facts) stoppedOnHost() jobs.Result {
	text := f.note() + "; stopped on the host"
	if f.steps > 1 || f.step >= f.steps && f.steps > 0 {
		text += " in " + f.stepWords()
	}
	r := f.endOf(jobs.Cancelled, jobs.ClassNone, text)
	if code := f.result.ExitCode; code >= 0 && f.action.Kind != scripts.KindUpload {
		r.ExitCode = &code
	}
	return r
}

// goesOn is about a step that may still act on the host.
func (f facts) goesOn(how string) jobs.Result {
	why := reason(remote.Cause(f.err)) // how has said already what is not known
	if f.cause != nil {
		why = f.stopWords()
	}
	r := f.endOf(jobs.Unknown, jobs.ClassOperator,
		fmt.Sprintf("cancel requested, %s: %s; %s%s", how, f.note(), f.place(), why))
	r.KeepLock = true
	return r
}

// note is who cancelled, and why.
func (f facts) note() string {
	return shortened(cmp.Or(f.order.note, "cancelled"), noteMax)
}
