package worker

import (
	"slices"
	"time"

	"muster/jobs"
)

// byeWait bounds how long the last report may take to get to a master that does
// not read. Without it a stopped master would keep an idle child for ever.
const byeWait = 2 * time.Second

// A reporter tells the master where the worker stands, without ever holding up
// the work: while one report is on its way only the latest other one waits.
type reporter struct {
	box  chan jobs.Report // holds at most one
	done chan struct{}    // closed when the last report was sent
	last jobs.Report
}

// newReporter starts to pass reports on to send.
func newReporter(send func(jobs.Report)) *reporter {
	r := &reporter{box: make(chan jobs.Report, 1), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for report := range r.box {
			send(report)
		}
	}()
	return r
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
	return a.Deadline == b.Deadline && a.Done == b.Done && slices.Equal(a.Jobs, b.Jobs)
}
