package verdict

import (
	"time"

	"muster/fleet/remote"
	"muster/jobs"
)

// This file decides about steps that may run without us: the host keeps a record of a step that was
// begun, and cannot be asked at the moment.

// followMost is the longest time until a host is asked again about a step.
const followMost = time.Minute

// Follow returns a wait as long as the step that the job may have begun may be at work: until
// its bound is over, a network that is away decides nothing. f says why the host could not be
// asked; behind the bound follow returns r.
func Follow(f Evidence, r jobs.Result, now jobs.Micros) jobs.Result {
	if !GoesOnAlone(f) {
		return r
	}
	m := f.Memory
	switch {
	case f.Busy > 0: // it was told to the host by this attempt, or asked about there
		m.Over = max(m.Over, now.Add(f.Busy))
	case m.Over == 0:
		m.Over = now.Add(f.Grant.Bound)
	}
	if now >= m.Over {
		return r
	}
	why := Reason(f.Err)
	if f.Cause != nil {
		why = f.StopWords() + ": it is not known whether the step ran to its end"
	}
	w := f.say(jobs.KindWait, f.Place()+why+"; it may be at work, the host will be asked")
	w.Step, w.Delay = f.Step, pace(m.Over.Sub(now), f.Policy.Delay)
	m.MayHaveRun = true
	w.Saved = m.String()
	return w
}

// GoesOnAlone reports whether the step in hand may be at work on a host that keeps a record of
// it: the host will tell once it can be asked.
func GoesOnAlone(f Evidence) bool {
	if f.Err == nil || f.Order != nil || !Recorded(f.Grant.Host, f.Action) || f.Result.Unfenced != "" {
		return false
	}
	switch Asked(f.Err) {
	case remote.KindLost, remote.KindCancelled:
		return SentKind(f.Err) != "" || f.MayHaveBegun()
	case remote.KindUnreachable, remote.KindThrottled, remote.KindNode:
		return SentKind(f.Err) == "" && f.MayHaveBegun()
	}
	return false
}

// pace returns the time until a host is asked again: the less time is left the sooner.
func pace(left, least time.Duration) time.Duration {
	return min(max(left/10, least), followMost)
}
