package read

import (
	"muster/jobs"
	"muster/jobs/queue/codec"
)

// times returns the known parts of a job's time: workers report their own part and the time before
// the attempt. times adds the present wait, or the last wait of a job that ended without an
// attempt. now is 0 if it is not known.
func times(r *codec.Record, due, now jobs.Micros) jobs.Times {
	if r.End.Spent != "" {
		return sums(r.End.Spent)
	}
	l, err := jobs.ParseLedger(r.Spent)
	if err != nil {
		return nil // another version wrote it
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
		until = taken // nobody has reported the last attempt
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
