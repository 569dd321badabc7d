package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"muster/jobs/queue/hooks"
)

// calls adds the calls of Redis.
func (s *snapshot) calls(list []hooks.Call) {
	for _, c := range list {
		for _, r := range hooks.Results() {
			s.append(prometheus.CounterValue, metric{"muster_redis_calls_total", "Calls of Redis by this " +
				"server, by script or command. Broken: no answer came; refused: the answer was an error.",
				float64(c.Results[r])}, []string{"call", c.Name, "result", string(r)})
		}
		buckets := map[float64]uint64{}
		for i, bound := range hooks.Bounds() {
			buckets[bound] = c.Buckets[i]
		}
		*s = append(*s, prometheus.MustNewConstHistogram(prometheus.NewDesc("muster_redis_call_seconds",
			"Time of calls of Redis by this server, those left out that wait for data.",
			[]string{"call"}, nil), c.Timed, c.Seconds, buckets, c.Name))
	}
}
