package worker

import (
	"slices"
	"time"

	"muster/jobs"
)

// byeWait bounds the time for the last report to a master that does not read. Without it a stopped
// master would keep an idle child for ever.
const byeWait = 2 * time.Second

// reportEvery is the least time between two reports, except the first and the last. Many short jobs
// would make hundreds of reports a second, each of which wakes the master. A master waits for much
// longer after a deadline before it kills.
const reportEvery = 100 * time.Millisecond

// A reporter sends the state of the worker to the master, and never holds up the work: while one
// report is on its way, only the latest other one waits.
type reporter struct {
	box   chan jobs.Report // holds at most one
	hurry chan struct{}    // gets a value when the next report cannot wait; closed before the last
	done  chan struct{}    // closed after the last report was sent
	last  jobs.Report
}

// newReporter starts a reporter that passes reports to send.
func newReporter(send func(jobs.Report)) *reporter {
	r := &reporter{box: make(chan jobs.Report, 1), hurry: make(chan struct{}, 1),
		done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for report := range r.box {
			send(report)
			if !report.Ready {
				r.rest()
			}
		}
	}()
	return r
}

// rest waits, so that the changes of that time go into one report, but not if the next one is in a
// hurry.
func (r *reporter) rest() {
	timer := time.NewTimer(reportEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.hurry:
	}
}

// tell sends a report if it differs from the last one.
func (r *reporter) tell(report jobs.Report) {
	if !report.Ready && same(report, r.last) {
		return
	}
	// The master may have a job for this child, or for the next one.
	hurry := report.Idle && !r.last.Idle || report.Looked != r.last.Looked
	r.last = report
	r.put(report)
	if hurry {
		select {
		case r.hurry <- struct{}{}:
		default:
		}
	}
}

// bye sends the last report, and waits until it is out or byeWait is over. In the second case the
// goroutine of the reporter stays behind: the process ends now.
func (r *reporter) bye(report jobs.Report) {
	r.put(report)
	close(r.box)
	close(r.hurry)
	select {
	case <-r.done:
	case <-time.After(byeWait):
	}
}

// put replaces the waiting report. Only one goroutine calls put, so the box stays empty after put
// has emptied it.
func (r *reporter) put(report jobs.Report) {
	select {
	case older := <-r.box:
		report.Ready = report.Ready || older.Ready
	default:
	}
	r.box <- report
}

func same(a, b jobs.Report) bool {
	return a.Deadline == b.Deadline && a.Done == b.Done && a.Doubt == b.Doubt && a.Idle == b.Idle &&
		a.Away == b.Away && a.Looked == b.Looked && a.Next == b.Next && slices.Equal(a.Jobs, b.Jobs)
}
