package verdict

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// This file decides about jobs that an operator cancelled. Such a job is never tried again. A step
// that ended by itself before it could be stopped keeps its own end.

// NoteMax bounds the operator's note in the error of a result, in bytes, because the words about
// the job follow it.
const NoteMax = 150

// cancelled returns the end of a job that went wrong after it was cancelled. e is the error of
// connecting or of the step; nil if the error is not one of package remote.
func (f Evidence) cancelled(e *remote.Error) jobs.Result {
	if e == nil {
		e = &remote.Error{Kind: remote.KindLost, Sent: f.Action.Kind != "", Err: f.Err}
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

// cancelledUnsent returns the end of a cancelled job whose step was not sent. If a person must
// look at the host, the result says so all the same.
func (f Evidence) cancelledUnsent(k remote.Kind) jobs.Result {
	switch k {
	case remote.KindHostKey, remote.KindAuth, remote.KindKey, remote.KindRefused, remote.KindFailed,
		remote.KindInvalid:
		return f.hindered(k, 0)
	case remote.KindNever:
		return f.EndOf(jobs.Cancelled, jobs.ClassNone, fmt.Sprintf("%s; %s never began", f.note(),
			f.StepWords()))
	}
	return f.NotStarted(Hindrance{})
}

// stoppedOnHost returns the end of a cancelled job whose step was stopped: nothing of it is left
// on the host.
func (f Evidence) stoppedOnHost() jobs.Result {
	text := f.note() + "; stopped on the host"
	if f.Steps > 1 || f.Step >= f.Steps && f.Steps > 0 {
		text += " in " + f.StepWords()
	}
	r := f.EndOf(jobs.Cancelled, jobs.ClassNone, text)
	if code := f.Result.ExitCode; code >= 0 && f.Action.Kind != scripts.KindUpload {
		r.ExitCode = &code
	}
	return r
}

// goesOn returns the end of a cancelled job whose step may still act on the host.
func (f Evidence) goesOn(how string) jobs.Result {
	why := Reason(remote.Cause(f.Err)) // the text begins with how already
	if f.Cause != nil {
		why = f.StopWords()
	}
	r := f.EndOf(jobs.Unknown, jobs.ClassOperator,
		fmt.Sprintf("cancel requested, %s: %s; %s%s", how, f.note(), f.Place(), why))
	r.KeepLock = true
	return r
}

// note returns who cancelled the job, and why.
func (f Evidence) note() string {
	return Shortened(cmp.Or(f.Order.Note, "cancelled"), NoteMax)
}

// A StopOrder is the cause that stops an attempt at a cancelled job. Its note says who cancelled
// the job, and why.
type StopOrder struct{ Note string }

// Error returns who cancelled, and why.
func (o *StopOrder) Error() string { return "cancelled: " + o.Note }

// StoppedBy returns the order that ended ctx; nil if none did.
func StoppedBy(ctx context.Context) *StopOrder {
	var o *StopOrder
	if errors.As(context.Cause(ctx), &o) {
		return o
	}
	return nil
}
