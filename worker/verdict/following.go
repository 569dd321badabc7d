package verdict

import (
	"time"

	"muster/fleet/remote"
	"muster/jobs"
)

// This file decides about steps that may run on without a connection: the host keeps a record of
// the step, and cannot be asked at the moment.

// followMost is the longest time until a host is asked again about a step.
const followMost = time.Minute

// Follow returns a wait for as long as the step may still run: until its bound is over, a missing
// network decides nothing. f holds why the host could not be asked. After the bound Follow returns
// r.
func Follow(f Evidence, r jobs.Result, now jobs.Micros) jobs.Result {
	if !GoesOnAlone(f) {
		return r
	}
	m := f.Memory
	switch {
	case f.Busy > 0: // this attempt sent the step to the host, or asked about it there
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

// GoesOnAlone reports whether the step in hand may still run on a host that keeps a record of it:
// the host will say how it ended once it can be asked.
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

// pace returns the time until the next question to a host: the less time is left, the shorter.
func pace(left, least time.Duration) time.Duration {
	return min(max(left/10, least), followMost)
}
