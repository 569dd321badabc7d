package verdict

import (
	"errors"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// Looks reports whether steps of that kind change nothing.
func Looks(k scripts.Kind) bool {
	return k.Looks()
}

// Rescues reports whether the on_fail of a step is to run: the step was started, and is known to
// have failed or to have been stopped at its bound.
func Rescues(f Evidence, r jobs.Result) bool {
	var e *remote.Error
	started := f.Err == nil || errors.As(f.Err, &e) && e.Sent
	return f.Action.OnFail != nil && f.Memory.Failed == nil && started && f.Order == nil &&
		r.Kind == jobs.KindEnd && (r.Outcome == jobs.Failed || r.Outcome == jobs.Timeout)
}

// Failure holds the end that the job would have had if its step had no on_fail.
type Failure struct {
	Step    int          `json:"step"`
	Outcome jobs.Outcome `json:"outcome"`
	Class   jobs.Class   `json:"class,omitempty"`
	Exit    *int         `json:"exit,omitempty"`
	Error   string       `json:"error,omitempty"`
	Keep    bool         `json:"keep,omitempty"` // something may still act on the host
}

// Concluded returns how a job ended whose on_fail ended as r: as the step that failed did, or
// rolled back if the last step of on_fail says so.
func Concluded(f Evidence, r jobs.Result, rolledBack bool) jobs.Result {
	first := f.Memory.Failed
	undone := r.Error
	switch r.Outcome {
	case jobs.Succeeded:
		r.Outcome, r.Class, r.ExitCode = first.Outcome, first.Class, first.Exit
		r.Error, r.KeepLock = first.Error, first.Keep
		if rolledBack {
			r.Outcome, r.KeepLock = jobs.RolledBack, false
			r.Error = OneLine(Shortened(first.Error, NoteMax) + "; its on_fail rolled it back")
		}
		return r
	case jobs.Cancelled: // half way back
		r.KeepLock = r.KeepLock || f.halfWay()
	case jobs.Failed, jobs.Timeout, jobs.Unreachable:
		// The host is left in a state that nobody wanted: nobody else of its group may be next.
		r.Outcome, r.Class, r.ExitCode = first.Outcome, jobs.ClassOperator, first.Exit
		r.KeepLock = r.KeepLock || f.halfWay()
		undone = "its on_fail failed: " + undone
	}
	r.KeepLock = r.KeepLock || first.Keep
	r.Error = OneLine(Shortened(first.Error, NoteMax) + "; " + undone)
	return r
}

// LeftHalfWay reports whether a job that has disturbed its host ends with r without a word of
// the host about it: nobody else of its group may be next before somebody has looked. A step
// that said no is such a word; answered reports whether there was one.
func LeftHalfWay(f Evidence, r jobs.Result, answered bool) bool {
	if r.Kind != jobs.KindEnd || answered || !f.halfWay() {
		return false
	}
	return r.Outcome == jobs.Failed || r.Outcome == jobs.Timeout || r.Outcome == jobs.Unreachable
}
