package queue

import "muster/jobs"

// times is what the time of a job went to, as far as it is known: workers count what they
// did, and what lies before an attempt. It adds how a job waits now, or waited when it ended
// without one. now is 0 if that is not known.
func times(r *record, due, now jobs.Micros) jobs.Times {
	if r.end.spent != "" {
		return sums(r.end.spent)
	}
	l, err := jobs.ParseLedger(r.spent)
	if err != nil {
		return nil // written by another version
	}
	if r.spent == "" && r.later > 0 {
		l.Add(jobs.InWindow, r.later-max(due.Sub(now), 0)) // it has a time of its own
	}
	until := now
	if r.state == jobs.Ended {
		until = r.end.at
	}
	taken := jobs.Micros(r.token)
	if taken > l.Until && r.attempt > 0 {
		until = taken // what the last attempt did, nobody has said
	}
	if due > 0 && until > 0 && !r.lost {
		l.Waited(due, until)
	}
	return l.Times()
}

func sums(text string) jobs.Times {
	l, err := jobs.ParseLedger(text)
	if err != nil {
		return nil
	}
	return l.Times()
}
