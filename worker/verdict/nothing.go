package verdict

import (
	"errors"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// This file makes the results of jobs whose step in hand was not started. Whatever the reason,
// NotStarted makes the result, so that no reason loses the work of earlier steps and attempts.

const (
	// DoubtDelay is the time after which a deferred job is due again if this node does not know the
	// timetable, or the time. Another node may take it then.
	DoubtDelay = 15 * time.Second

	// ClosedDelay is the time after which a deferred job is due again if no opening is known.
	ClosedDelay = 5 * time.Minute

	// whyMax bounds the stored reason why a job did not begin, in bytes.
	whyMax = 400
)

// A Hindrance is the reason why a step is not started. Without a ruling, and if it is not late,
// the queue did not allow the step, the worker was stopped, or the job is cancelled.
type Hindrance struct {
	Why      string // for people; empty: the job stopped before the step
	Late     bool   // too little time is left for the step
	Ruled    *Ruled // the step must not start now
	Never    error  // the answer of the host to the question about an earlier attempt
	Disturbs bool   // the step may disturb its host
}

// A Ruled step must not start because of a window, a freeze, the group of its host, or a secret
// that cannot be had yet.
type Ruled struct {
	Until time.Time // when it may start; zero: nobody knows
	Soon  bool      // the job should be due again soon
	Group bool      // the group of the host is the reason
	Told  bool      // people see why
}

// NotStarted returns the result of a job whose step in hand was not started.
//
// A ruling comes before a cancel: a cancelled job that is deferred ends in the queue. A step
// without enough time counts as a failed try once this attempt has started a step before
// it, because the next attempt might have as little time.
func (f Evidence) NotStarted(h Hindrance) jobs.Result {
	switch {
	case h.Ruled != nil && Asked(h.Never) == remote.KindNever:
		r := f.deferred(h)
		f.Memory.Next() // the host has said that the step did not run
		r.Saved, r.Release = f.kept(), f.untouched()
		return r
	case h.Ruled != nil:
		return f.deferred(h)
	case h.Late && f.Begun:
		f.Err = errors.New("not started: " + h.Why)
		return f.unreached(jobs.Failed, f.Policy.Delay)
	case h.Late:
		return f.handBack(f.Place() + "not started: " + h.Why)
	case f.Order != nil:
		return f.cancelledBefore()
	case h.Why == "":
		return f.handBack("stopped before " + f.StepWords())
	}
	return f.handBack(h.Why)
}

// handBack returns a job that may continue at this step on any node. If this attempt has done a
// step, the job continues after that step and keeps its host until then. If the last checkpoint may
// have reached the queue, the result sends the state of the job once more, because the reply may
// have been lost.
func (f Evidence) handBack(text string) jobs.Result {
	if p := f.Memory.Probe; p != nil && f.Action.Kind.Patient() && f.Action.Kind != scripts.KindWait {
		// A cancel must not find the job untouched.
		return f.Appoint(jobs.KindVerify, *p, f.Policy.Delay, text)
	}
	told := f.Memory.Told
	if !f.Begun && !(told && f.Step > f.Grant.Step) {
		r := Untouched(f.Grant, text)
		if told && r.Saved == "" {
			r.Saved = ToldQueue
		}
		return r
	}
	r := f.say(jobs.KindWait, text)
	r.Step = f.Step
	return r
}

// Untouched returns a job to which this attempt did nothing at all. It must not be used for
// a lost job: the next attempt would take that for one that never ran.
func Untouched(g jobs.Grant, text string) jobs.Result {
	r := grantedOnly(g).say(jobs.KindBack, text)
	r.Step, r.Saved = g.Step, g.Saved
	return r
}

// grantedOnly returns the evidence about a job if nothing but its grant is known.
func grantedOnly(g jobs.Grant) Evidence { return Evidence{Grant: g, Memory: Recall(g.Saved)} }

// deferred returns a job that waits until its step may start. That is no failure, and no try
// counts.
func (f Evidence) deferred(h Hindrance) jobs.Result {
	r := f.say(jobs.KindDefer, f.Place()+h.Why)
	r.Step, r.Release = f.Step, f.untouched() && !(MayHaveRun(f.Grant) && h.Disturbs)
	if h.Ruled.Group || h.Ruled.Told { // people see the reason, because no time is known
		m := f.Memory
		m.Why = Shortened(h.Why, whyMax)
		r.Saved = m.String()
	}
	switch {
	case h.Ruled.Soon:
		r.Delay = DoubtDelay
	case h.Ruled.Until.IsZero():
		r.Delay = ClosedDelay
	default:
		r.Until = jobs.MicrosOf(h.Ruled.Until)
	}
	return r
}

// untouched reports whether no step of the job has disturbed its group, by the steps that have
// ended. A step that spans several attempts has not ended while it has a probe.
func (f Evidence) untouched() bool {
	return !f.Memory.Unfinished() && f.Memory.Marked == 0 && f.Memory.Probe == nil
}

// cancelledBefore returns the end of a cancelled job without a step under way.
func (f Evidence) cancelledBefore() jobs.Result {
	if k := f.Action.Kind; k != scripts.KindWait && k.Patient() && f.Memory.Probe != nil {
		return LeftAlone(f)
	}
	return f.Doubt(f.EndOf(jobs.Cancelled, jobs.ClassNone, f.note()+"; stopped before "+f.StepWords()))
}

// Stuck returns the end of a job whose attempt did not stop at its deadline.
func Stuck(g jobs.Grant) jobs.Result {
	r := grantedOnly(g).End(jobs.Unknown, jobs.ClassOperator,
		"it did not stop at its deadline, and it is not known what it did: a mistake in muster")
	r.KeepLock, r.Saved = true, g.Saved
	return r
}

// Puzzled returns the result of a job on which a worker cannot work because of a mistake in muster.
// The job is tried again like any other: if it were released at once, that could repeat without
// end. A job that was lost before ends unknown.
func Puzzled(g jobs.Grant, p jobs.Policy, text string) (r jobs.Result) {
	f := grantedOnly(g)
	f.Policy, f.Step = p, g.Step
	switch {
	case g.Mode == jobs.ModeLost:
		r = f.End(jobs.Unknown, jobs.ClassOperator, "its worker died with it, and now: "+text)
		r.KeepLock = true
	case p.Again(g.Tries+1, jobs.ClassTransient):
		r = f.retry(p.Delay, text)
	default:
		r = f.End(jobs.Failed, jobs.ClassOperator, text)
		r.KeepLock = f.Memory.Disturbed
	}
	r.Saved = g.Saved
	return r
}
