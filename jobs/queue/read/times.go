package read

import (
	"muster/jobs"
	"muster/jobs/queue/codec"
)

// times is what the time of a job went to, as far as it is known: workers count what they
// did, and what lies before an attempt. It adds how a job waits now, or waited when it ended
// without one. now is 0 if that is not known.
func times(r *codec.Record, due, now jobs.Micros) jobs.Times {
	if r.End.Spent != "" {
		return sums(r.End.Spent)
	}
	l, err := jobs.ParseLedger(r.Spent)
	if err != nil {
		return nil // written by another version
	}
	if r.Spent == "" && r.Later > 0 {
		l.Add(jobs.InWindow, r.Later-max(due.Sub(now), 0)) // it has a time of its own
	}
	until := now
	if r.State == jobs.Ended {
		until = r.End.At
	}
	taken := jobs.Micros(r.Token)
	if taken > l.Until && r.Attempt > 0 {
		until = taken // what the last attempt did, nobody has said
	}
	if due > 0 && until > 0 && !r.Lost {
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
