package server

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"muster/jobs"
)

// scrapeTimeout bounds what a scrape waits for Redis.
const scrapeTimeout = 3 * time.Second

// meters are what the server counts itself.
type meters struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec   // by route and code
	seconds  *prometheus.HistogramVec // by route
	submits  *prometheus.CounterVec   // by result
	// inventories are changes of the inventory, by result
	inventories *prometheus.CounterVec
	tasksOpen   *prometheus.GaugeVec // by state

	mu       sync.Mutex                    // one tally at a time
	followed map[jobs.TaskID]jobs.TaskInfo // as the last tally saw them
}

func newMeters(version string) *meters {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &meters{registry: prometheus.NewRegistry(),
		requests: counter("muster_http_requests_total", "Requests answered.", "route", "code"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "muster_http_request_seconds",
			Help:    "Time to answer a request; one that waits for a task, or a stream, is not counted.",
			Buckets: []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30}}, []string{"route"}),
		submits: counter("muster_submits_total", "Submits to this server, by what became of them.",
			"result"),
		inventories: counter("muster_inventory_changes_total", "Inventories that this server has read "+
			"and published, or refused.", "result"),
		tasksOpen: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "muster_tasks_open",
			Help: "Tasks that have not ended, by state. Only the server that has the duty of counting " +
				"says it."}, []string{"state"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.registry.MustRegister(m.requests, m.seconds, m.submits, m.inventories, m.tasksOpen,
		build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// answered counts a request. The route is a pattern of ours, never what a
// client wrote.
func (m *meters) answered(route string, status int, took time.Duration, waits bool) {
	if route == "" {
		route = "other"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if !waits {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// serveMetrics answers a scrape: the own counters, and what Redis says now.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTimeout)
	defer cancel()
	now := prometheus.NewRegistry()
	now.MustRegister(s.look(ctx))
	promhttp.HandlerFor(prometheus.Gatherers{s.meters.registry, now},
		promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// snapshot is a collector of values that were read before.
type snapshot []prometheus.Metric

// Describe describes nothing, which makes it an unchecked collector.
func (s snapshot) Describe(chan<- *prometheus.Desc) {}

// Collect gives what was read.
func (s snapshot) Collect(to chan<- prometheus.Metric) {
	for _, m := range s {
		to <- m
	}
}

// add appends a gauge; labels are pairs of name and value.
func (s *snapshot) add(name, help string, value float64, labels ...string) {
	s.append(prometheus.GaugeValue, metric{name, help, value}, labels)
}

// metric is a value that is told.
type metric struct {
	name, help string
	value      float64
}

func (s *snapshot) append(kind prometheus.ValueType, m metric, labels []string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	*s = append(*s, prometheus.MustNewConstMetric(prometheus.NewDesc(m.name, m.help, names, nil),
		kind, m.value, values...))
}

// look reads the gauges, at the cost of a few calls a zone.
func (s *Server) look(ctx context.Context) snapshot {
	var out snapshot
	if stock, err := s.stock.get(); err == nil {
		out.add("muster_inventory_hosts", "Hosts of the inventory in force.", float64(stock.Len()))
	}
	out.add("muster_inventory_refused", "1 while an earlier inventory is in force, because what was "+
		"read last has mistakes.", number(s.stock.isRefused()))
	if s.history != nil {
		out.add("muster_history_trouble", "1 while this server is to write history and cannot.",
			number(s.told.get() != ""))
	}
	out.add("muster_streams_open", "Event streams open on this server.", float64(s.streams.Load()))
	if a, err := s.awayHistory(ctx); err == nil {
		out.awayHistory(a)
	}
	nodes, err := s.queue.Nodes(ctx)
	if err == nil {
		out.nodes(nodes)
		err = s.lookAtZones(ctx, &out)
	}
	out.add("muster_redis_up", "1 if Redis could be read.", number(err == nil))
	out.add("muster_redis_writes", "1 if Redis takes what is new: it is not full, and no replica.",
		number(err == nil && s.queue.Writes(ctx) == nil))
	return out
}

// awayHistory says whether history is written, and if not how full the streams are.
func (s *snapshot) awayHistory(a *AwayHistory) {
	s.add("muster_history_away", "1 while no server writes history, as the one said that has to.",
		number(a != nil))
	if a == nil {
		return
	}
	for _, u := range a.Streams {
		s.add("muster_history_backlog_ratio", "While history is away: the share of what Redis holds "+
			"of the events of a zone that is not stored. From 1 on events are lost.", u.Share,
			"zone", u.Zone)
	}
}

func (s *Server) lookAtZones(ctx context.Context, out *snapshot) error {
	zones, err := s.queue.Zones(ctx)
	if err != nil {
		return err
	}
	for _, zone := range zones {
		if err := s.lookAtEnds(ctx, zone, out); err != nil {
			return err
		}
		d, err := s.queue.Depth(ctx, zone)
		if err != nil {
			return err
		}
		const jobsHelp = "Jobs of a zone that never started (queued), that run or come again (again), " +
			"and of both those whose time has come (due)."
		out.add("muster_queue_jobs", jobsHelp, float64(d.Queued), "zone", zone, "set", "queued")
		out.add("muster_queue_jobs", jobsHelp, float64(d.Again), "zone", zone, "set", "again")
		out.add("muster_queue_jobs", jobsHelp, float64(d.Due), "zone", zone, "set", "due")
		out.add("muster_queue_overdue_seconds", "How long the first job of the queue is due.",
			d.Overdue, "zone", zone)
		out.add("muster_zone_frozen", "1 while nothing starts in the zone.",
			number(!d.Frozen.IsZero() || d.Halted != ""), "zone", zone)
	}
	return nil
}

// lookAtEnds tells what has ended in a zone, as Redis has counted it there. A server that
// counted by looking would miss what ends while another one has that duty.
func (s *Server) lookAtEnds(ctx context.Context, zone string, out *snapshot) error {
	ends, err := s.queue.Ends(ctx, zone)
	if err != nil {
		return err
	}
	const all = " since Redis knows the zone. Every server says the same number: do not add them up."
	for _, o := range jobs.Outcomes() {
		out.append(prometheus.CounterValue, metric{"muster_jobs_ended_total",
			"Jobs that ended in a zone" + all, float64(ends.Jobs[o])},
			[]string{"outcome", string(o), "zone", zone})
	}
	out.append(prometheus.CounterValue, metric{"muster_tasks_ended_total",
		"Tasks that ended in a zone, one of several zones in each of them," + all,
		float64(ends.Tasks)}, []string{"zone", zone})
	return nil
}

// nodes counts nodes by state. A master that says a state we do not know is
// counted as other, so that the states stay few.
func (s *snapshot) nodes(list []jobs.Node) {
	s.add("muster_nodes_in_doubt", "Nodes whose workers do not know what is agreed about times, and "+
		"begin nothing.", float64(len(doubtsOf(list))))
	states := map[string]int{"running": 0, "draining": 0, "stopping": 0, "gone": 0, "other": 0}
	children := 0
	for _, n := range list {
		state := n.State
		if _, known := states[state]; !known {
			state = "other"
		}
		states[state]++
		children += len(n.Children)
	}
	for state, n := range states {
		s.add("muster_nodes", "Nodes by state.", float64(n), "state", state)
	}
	s.add("muster_children", "Worker processes of all nodes.", float64(children))
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
