package worker

import (
	"slices"
	"time"

	"muster/jobs"
)

// byeWait bounds how long the last report may take to get to a master that does
// not read. Without it a stopped master would keep an idle child for ever.
const byeWait = 2 * time.Second

// reportEvery is the least time between two reports but the first and the last: with
// many short jobs there would be hundreds a second, each of which wakes the master. It is
// far less than what a master adds to a deadline before it kills.
const reportEvery = 100 * time.Millisecond

// A reporter tells the master where the worker stands, without ever holding up
// the work: while one report is on its way only the latest other one waits.
type reporter struct {
	box   chan jobs.Report // holds at most one
	hurry chan struct{}    // closed when the report in the box is the last
	done  chan struct{}    // closed when the last report was sent
	last  jobs.Report
}

// newReporter starts to pass reports on to send.
func newReporter(send func(jobs.Report)) *reporter {
	r := &reporter{box: make(chan jobs.Report, 1), hurry: make(chan struct{}),
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

// rest lets what changes meanwhile gather in one report.
func (r *reporter) rest() {
	timer := time.NewTimer(reportEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.hurry:
	}
}

// tell reports where the worker stands, if that changed.
func (r *reporter) tell(report jobs.Report) {
	if !report.Ready && same(report, r.last) {
		return
	}
	r.last = report
	r.put(report)
}

// bye sends the last report and waits until it is out, or until byeWait is over:
// then its goroutine is left behind, for a process that ends now.
func (r *reporter) bye(report jobs.Report) {
	r.put(report)
	close(r.box)
	close(r.hurry)
	select {
	case <-r.done:
	case <-time.After(byeWait):
	}
}

// put replaces the report that waits. There is only one caller, so the box is
// empty once it was emptied.
func (r *reporter) put(report jobs.Report) {
	select {
	case older := <-r.box:
		report.Ready = report.Ready || older.Ready
	default:
	}
	r.box <- report
}

func same(a, b jobs.Report) bool {
	return a.Deadline == b.Deadline && a.Done == b.Done && a.Doubt == b.Doubt &&
		slices.Equal(a.Jobs, b.Jobs)
}
