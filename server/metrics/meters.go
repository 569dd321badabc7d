// Package metrics is what a server tells Prometheus: the counters of the server itself, and the
// numbers that it reads from Redis for each scrape. It formats and counts, and asks nobody.
//
// Floor 2: may import jobs, jobs/queue/hooks, master/governor.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Refused is the family of requests that were refused because nobody proved who calls.
const Refused = "muster_logins_refused_total"

// Meters are the counters of one server.
type Meters struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec   // by route and code
	seconds     *prometheus.HistogramVec // by route
	submits     *prometheus.CounterVec   // by result
	inventories *prometheus.CounterVec   // by result
	refused     *prometheus.CounterVec   // by reason
	tasksOpen   *prometheus.GaugeVec     // by state
	notProven   prometheus.Counter
	glass       prometheus.Counter
	Work        *Work
	Traces      *Traces
}

// New returns the meters of a server of a version. The counter of refused logins shows all
// reasons from the beginning, so that a rate of each can be asked for.
func New(version string, reasons ...string) *Meters {
	m := &Meters{registry: prometheus.NewRegistry(),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "muster_http_request_seconds",
			Help:    "Time to answer a request; one that waits for a task, or a stream, is not counted.",
			Buckets: []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30}}, []string{"route"}),
		tasksOpen: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "muster_tasks_open",
			Help: "Tasks that have not ended, by state. Only the server that has the duty of counting " +
				"says it, of the newest 100 tasks and of older ones that it has seen open since."},
			[]string{"state"}),
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	m.requests = counter("muster_http_requests_total",
		"Requests that this server answered, by route and status.", "route", "code")
	m.submits = counter("muster_submits_total",
		"Submits to this server that were no dry runs, by what became of them.", "result")
	m.inventories = counter("muster_inventory_changes_total",
		"Inventories that this server has read and published, or refused.", "result")
	m.notProven = prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_not_proven_total",
		Help: "Ends and events of jobs that this server stored in history as not proven: no MAC of a " +
			"node vouches for them, and a writer to Redis may have invented them."})
	m.glass = prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_glass_broken_total",
		Help: "Tasks that one person ran alone through this server although more must sign such work."})
	m.registry.MustRegister(m.notProven, m.glass)
	m.refused = counter(Refused,
		"Requests that this server refused because nobody proved who calls, by reason.", "reason")
	for _, reason := range reasons {
		m.refused.WithLabelValues(reason)
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_build_info",
		Help:        "Always 1; the label is the version of this server.",
		ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.Work, m.Traces = newWork(m.registry), newTraces(m.registry)
	m.registry.MustRegister(m.seconds, m.tasksOpen, build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Answered counts a request. The route is a pattern of ours, never what a client wrote. The time
// of a request that waits is left out.
func (m *Meters) Answered(route string, status int, took time.Duration, waits bool) {
	if route == "" {
		route = "other"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if !waits {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// Submitted counts a submit.
func (m *Meters) Submitted(result string) { m.submits.WithLabelValues(result).Inc() }

// Inventory counts an inventory that was read.
func (m *Meters) Inventory(result string) { m.inventories.WithLabelValues(result).Inc() }

// Refused counts a request that was refused at the door.
func (m *Meters) Refused(reason string) { m.refused.WithLabelValues(reason).Inc() }

// NotProven counts an end or an event that history has, and no node has proven.
func (m *Meters) NotProven() { m.notProven.Inc() }

// GlassBroken counts a task that one person runs alone although more must sign such work.
func (m *Meters) GlassBroken() { m.glass.Inc() }

// OpenTasks says how many tasks are open, by state; nil: another server counts them from now on.
func (m *Meters) OpenTasks(open map[string]int) {
	m.tasksOpen.Reset()
	for state, n := range open {
		m.tasksOpen.WithLabelValues(state).Set(float64(n))
	}
}

// Serve answers a scrape with the counters and the state of now.
func (m *Meters) Serve(w http.ResponseWriter, r *http.Request, now State) {
	read := prometheus.NewRegistry()
	read.MustRegister(now.collect())
	promhttp.HandlerFor(prometheus.Gatherers{m.registry, read}, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
