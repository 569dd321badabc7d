package verdict

import (
	"errors"

	"muster/fleet/remote"
	"muster/jobs"
)

// Rescues reports whether the on_fail of a step must run: the step was started, and it has
// certainly failed or been stopped at its bound.
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

// Concluded returns the end of a job whose on_fail ended with r: the end of the failed step, or
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
		// Nobody planned this state of the host, so no job may disturb another one of its group.
		r.Outcome, r.Class, r.ExitCode = first.Outcome, jobs.ClassOperator, first.Exit
		r.KeepLock = r.KeepLock || f.halfWay()
		undone = "its on_fail failed: " + undone
	}
	r.KeepLock = r.KeepLock || first.Keep
	r.Error = OneLine(Shortened(first.Error, NoteMax) + "; " + undone)
	return r
}

// LeftHalfWay reports whether a job that has disturbed its host ends with r, and the host did not
// say how the last command ended. Then no job may disturb another host of the group before a person
// has looked. answered: the host said how the command ended, be it well or not.
func LeftHalfWay(f Evidence, r jobs.Result, answered bool) bool {
	if r.Kind != jobs.KindEnd || answered || !f.halfWay() {
		return false
	}
	return r.Outcome == jobs.Failed || r.Outcome == jobs.Timeout || r.Outcome == jobs.Unreachable
}
