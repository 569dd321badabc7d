package metrics

import "github.com/prometheus/client_golang/prometheus"

// Traces has the numbers of the traces of a server.
type Traces struct {
	sent    *prometheus.CounterVec // by result
	waiting prometheus.Gauge
}

func newTraces(to *prometheus.Registry) *Traces {
	t := &Traces{
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_traces_total",
			Help: "Traces of tasks and jobs that this server had to send, by what became of them."},
			[]string{"result"}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_traces_waiting",
			Help: "Traces of tasks and jobs that wait in this server for the collector."}),
	}
	for _, result := range []string{"sent", "partly", "refused", "dropped", "lost"} {
		t.sent.WithLabelValues(result)
	}
	to.MustRegister(t.sent, t.waiting)
	return t
}

// Traced counts traces by what became of them.
func (t *Traces) Traced(result string, n int) { t.sent.WithLabelValues(result).Add(float64(n)) }

// Wait says how many traces wait.
func (t *Traces) Wait(n int) { t.waiting.Set(float64(n)) }
