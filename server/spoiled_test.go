package server_test

import (
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// A writer to one zone of Redis can give its keys another type. The lists and metrics of the other
// zones are complete all the same, and their events reach history.
func TestASpoiledZoneHidesNoOther(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"zone", "queue", "events", "open"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			redis := redistest.StartServer(t, smallNodes...)
			cfg := redis.Config()
			store := openHistory(t, sqltest.SQLite(t))
			w := start(t, setup{redis: &cfg, history: store})
			eu := w.submit(run("fw003")).Task
			w.work("eu", succeed)
			waitFor(t, "the first task", func() bool {
				r, err := store.Report(t.Context(), eu)
				return err == nil && r.Task.State == jobs.TaskEnded
			})
			redis.Do(t, "DEL", "muster:{eu}:"+key)
			redis.Do(t, "SET", "muster:{eu}:"+key, "not what muster wrote")
			second := w.submit(run("fw001")).Task
			w.work("default", succeed)
			waitFor(t, "the task of the other zone", func() bool {
				r, err := store.Report(t.Context(), second)
				return err == nil && r.Task.State == jobs.TaskEnded
			})
			var q api.QueueInfo
			if w.call("GET", "/v1/queue", nil, &q); len(q.Zones) != 2 || q.Zones[0].Trouble != "" {
				_, text := w.raw("GET", "/v1/queue", nil, nil)
				t.Errorf("the queue is %s", text)
			}
			spoiled := key != "events"
			if len(q.Zones) == 2 && strings.Contains(q.Zones[1].Trouble, "another type") != spoiled {
				t.Errorf("eu has the trouble %q", q.Zones[1].Trouble)
			}
			lines := []string{"muster_redis_up 1", `muster_zone_spoiled{zone="default"} 0`,
				`muster_queue_jobs{set="queued",zone="default"} 0`}
			if spoiled {
				lines = append(lines, `muster_zone_spoiled{zone="eu"} 1`)
			}
			w.wantMetrics(lines...)
		})
	}
}
