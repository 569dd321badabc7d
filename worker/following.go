package worker

import (
	"time"

	"muster/fleet/remote"
	"muster/jobs"
)

// This file is about steps that go on without us: the host keeps a record of one that was
// begun, and cannot be asked at the moment.

// followMost is how long a step is left alone at most before its host is asked again.
const followMost = time.Minute

// follow has the job come again as long as the step that it may have begun may be at work:
// until its bound is over, nothing is decided by a network that is away. f says how the host
// could not be asked, and r is what is said of it behind the bound.
func (a *attempt) follow(f facts, r jobs.Result) jobs.Result {
	if !a.goesOnAlone(f) {
		return r
	}
	now, m := a.now(), &a.memory
	switch {
	case f.busy > 0: // it was told to the host by this attempt, or asked about there
		m.Over = max(m.Over, now.Add(f.busy))
	case m.Over == 0:
		m.Over = now.Add(a.grant.Bound)
	}
	if now >= m.Over {
		return r
	}
	why := reason(f.err)
	if f.cause != nil {
		why = f.stopWords() + ": it is not known whether the step ran to its end"
	}
	w := f.say(jobs.KindWait, f.place()+why+"; it may be at work, the host will be asked")
	w.Step, w.Delay = f.step, pace(m.Over.Sub(now), f.policy.Delay)
	kept := f.mind()
	kept.MayHaveRun = true
	w.Saved = kept.String()
	return w
}

// goesOnAlone tells whether the step in hand may be at work on a host that keeps a record of
// it, which will tell once it can be asked.
func (a *attempt) goesOnAlone(f facts) bool {
	if f.err == nil || f.order != nil || !recorded(a.grant.Host, f.action) || f.result.Unfenced != "" {
		return false
	}
	switch asked(f.err) {
	case remote.KindLost, remote.KindCancelled:
		return sentKind(f.err) != "" || a.mayHaveBegun()
	case remote.KindUnreachable, remote.KindThrottled, remote.KindNode:
		return sentKind(f.err) == "" && a.mayHaveBegun()
	}
	return false
}

// pace is how long to wait until a host is asked again: the less time is left the sooner.
func pace(left, least time.Duration) time.Duration {
	return min(max(left/10, least), followMost)
}
