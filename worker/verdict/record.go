package verdict

import (
	"cmp"
	"errors"
	"strings"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// Recorded reports whether a host may keep a record of a step. Uploads need none: a file is there
// as a whole or not at all.
func Recorded(h *fleet.Host, action scripts.Action) bool {
	return KeepsRecords(h) && action.Kind == scripts.KindRun
}

// KeepsRecords reports whether a host may keep records of steps.
func KeepsRecords(h *fleet.Host) bool {
	return h != nil && h.Fence != fleet.FenceNone && h.Fence != ""
}

// Refuses reports whether a host may refuse a step to an attempt that was overtaken.
func Refuses(h *fleet.Host, action scripts.Action) bool {
	return Recorded(h, action) || KeepsRecords(h) && action.Kind == scripts.KindUpload
}

// MayHaveRun reports whether an earlier attempt may have started the step in hand.
func MayHaveRun(g jobs.Grant) bool { return g.Mode == jobs.ModeLost || Remembered(g.Saved) }

// beside returns the note of a result: whether the attempt was attached, had no fence, or lost
// output.
func (f Evidence) beside() string {
	r := f.Result
	var parts []string
	if r.Attached {
		parts = append(parts, "attached")
	}
	if r.Unfenced != "" {
		parts = append(parts, "unfenced: it lacks "+r.Unfenced)
	}
	if lost := cmp.Or(r.Lost, f.Memory.Lost); lost != "" {
		parts = append(parts, "output lost: "+lost)
	}
	return strings.Join(parts, ", ")
}

// canAsk reports whether the next attempt may learn from the host how the step ended.
func (f Evidence) canAsk(k remote.Kind) bool {
	if !Recorded(f.Grant.Host, f.Action) || f.Result.Unfenced != "" {
		return false
	}
	switch k {
	case remote.KindGone, remote.KindMute, remote.KindRunning:
		return false
	}
	return Recall(f.Grant.Saved).Asked+1 < max(f.Policy.Tries, askMin)
}

// askMin is the least number of times that a host is asked.
const askMin = 3

// askLater returns a wait after which the next attempt attaches to the step or takes its result.
// The job keeps its host until then.
func (f Evidence) askLater(text string) jobs.Result {
	r := f.say(jobs.KindWait, f.Place()+text+"; the host will be asked")
	r.Delay, r.Step = f.Policy.Delay, f.Step
	m := f.Memory
	m.MayHaveRun = true
	if f.Step == f.Grant.Step {
		m.Asked = Recall(f.Grant.Saved).Asked + 1
	}
	r.Saved = m.String()
	return r
}

// told returns the result of a step that the host refused to start. ok is false if the fence of
// the host did not refuse it.
func (f Evidence) told(e *remote.Error) (r jobs.Result, ok bool) {
	switch e.Kind {
	case remote.KindRecord, remote.KindStale:
		return f.Doubt(f.End(jobs.Failed, jobs.ClassOperator, Reason(e))), true
	case remote.KindBusy:
		return f.unreached(jobs.Failed, max(e.Wait, f.Policy.Delay)), true
	case remote.KindUntold:
		if f.Grant.Mode == jobs.ModeLost {
			f.Result.Output = remote.Output{}
			r = Lost(f)
			r.Error = OneLine(r.Error + ": " + Reason(e))
			return r, true
		}
		return f.Doubt(f.End(jobs.Failed, jobs.ClassOperator, Reason(e))), true
	case remote.KindNever:
		return f.NotStarted(Hindrance{}), true
	}
	return jobs.Result{}, false
}

// stoppedBefore returns the end of a job whose step was stopped on the host for an attempt before
// this one.
func (f Evidence) stoppedBefore() jobs.Result {
	f.Order = &StopOrder{"stopped for an earlier attempt"}
	return f.stoppedOnHost()
}

// Asked returns the kind of the error with which a question to a host ended. An error without a
// kind counts as a lost connection.
func Asked(err error) (k remote.Kind) {
	var e *remote.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return remote.KindLost
}
