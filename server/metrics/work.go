package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster/jobs"
)

// An End describes a job that has ended.
type End struct {
	Runbook string
	Outcome jobs.Outcome // the first one: a later order to ask the host may settle another
	Began   bool         // a worker took it
	Times   jobs.Times
	Missed  bool // it has expired, and had been deferred to a window
}

// Other is the label of what is beyond a bound.
const Other = "other"

// runbooksMax bounds the runbooks that have series of their own; those that are seen later share
// one.
const runbooksMax = 40

// events are the names of events that have series of their own.
var events = []string{"put", "commit", "take", "step", "back", "retry", "wait", "verify", "defer",
	"gate", "late", "lost", "orphan", "end", "settle", "task", "stop", "wave", "wave-over", "cancel",
	"supersede", "pause", "resume", "freeze", "thaw", "freeze-group", "clear", "quarantine",
	"unquarantine", "limit", "epoch",
	"reassert", "recalled", "mend", "reorder", "reordered", "overtime", "times-doubted",
	"order-doubted", "not-proven", "glass-broken", "glass-used", "override-freeze", "history-away",
	"history-back", "agreed-lost", "agreed-restored"}

// Work has the numbers of what a server with the duty to write history has stored.
type Work struct {
	ends   *prometheus.CounterVec   // by runbook and outcome
	took   *prometheus.HistogramVec // by runbook and outcome
	uses   *prometheus.HistogramVec // by use
	events *prometheus.CounterVec   // by name
	missed prometheus.Counter

	mu       sync.Mutex
	runbooks map[string]bool
}

// newWork returns the numbers at 0. All events and uses are there from the beginning, because
// Prometheus sees no increase in the first value of a series.
func newWork(to *prometheus.Registry) *Work {
	w := &Work{runbooks: map[string]bool{},
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_job_ends_total",
			Help: "Ends of jobs that this server has stored in history, by runbook and first outcome."},
			[]string{"runbook", "outcome"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "muster_job_took_seconds",
			Help: "Time that jobs took which a worker had taken: all but the time in the queue, at a " +
				"gate, and until a window.",
			Buckets: []float64{1, 3, 10, 30, 60, 180, 600, 1800, 7200}}, []string{"runbook", "outcome"}),
		uses: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "muster_job_use_seconds",
			Help: "Time that jobs spent on a use, of the jobs that a worker had taken. The use queued is " +
				"how late they were: due, and kept by the queue, a lock or a limit.",
			Buckets: []float64{.1, .3, 1, 3, 10, 30, 60, 180, 600, 3600}}, []string{"use"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_events_total",
			Help: "Events that this server has stored in history, by name."}, []string{"event"}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_windows_missed_total",
			Help: "Jobs that have expired although they waited for a window, as this server has stored " +
				"them in history."}),
	}
	for _, name := range append(events, Other) {
		w.events.WithLabelValues(name)
	}
	for _, use := range jobs.Uses() {
		w.uses.WithLabelValues(string(use))
	}
	to.MustRegister(w.ends, w.took, w.uses, w.events, w.missed)
	return w
}

// Happened counts events of one name.
func (w *Work) Happened(event string) {
	if !knownEvent(event) {
		event = Other
	}
	w.events.WithLabelValues(event).Inc()
}

func knownEvent(name string) bool {
	for _, one := range events {
		if one == name {
			return true
		}
	}
	return false
}

// Ended counts the end of a job.
func (w *Work) Ended(e End) {
	runbook := w.label(e.Runbook)
	outcome := Other
	for _, o := range jobs.Outcomes() {
		if o == e.Outcome {
			outcome = string(o)
		}
	}
	w.ends.WithLabelValues(runbook, outcome).Inc()
	if e.Missed {
		w.missed.Inc()
	}
	if !e.Began {
		return
	}
	took := e.Times.Of(jobs.Pausing, jobs.Connecting, jobs.Acting, jobs.Verifying)
	w.took.WithLabelValues(runbook, outcome).Observe(took.Seconds())
	for _, use := range jobs.Uses() {
		if spent := e.Times.Of(use); spent > 0 || use == jobs.Queueing {
			w.uses.WithLabelValues(string(use)).Observe(max(spent, time.Duration(0)).Seconds())
		}
	}
}

// label returns the name of a runbook, or other, so that the series stay few.
func (w *Work) label(runbook string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if runbook == "" || !w.runbooks[runbook] && len(w.runbooks) >= runbooksMax {
		return Other
	}
	w.runbooks[runbook] = true
	return runbook
}
