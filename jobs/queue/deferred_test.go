package queue_test

import (
	"testing"
	"time"

	"muster/jobs"
)

// A job that waits for a time of its own is deferred; a job that runs, or waits for a worker, is
// not, though the lock of a running job ends later as well.
func TestDeferredAreTheJobsWithATimeOfTheirOwn(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		task, hosts := newTask(spec(), 4)
		soon := jobs.MicrosOf(time.Now().Add(time.Hour))
		task.Own = map[string]jobs.Micros{"fw0003": soon.Add(time.Hour), "fw0002": soon}
		if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
			t.Fatal(err)
		}
		g := one(t, step(t, q, "1", 1))
		list, more, err := q.Deferred(t.Context(), zone)
		if err != nil || more || len(list) != 2 || list[0].Host != "fw0002" || list[1].Host != "fw0003" ||
			list[0].Next != jobs.TimeOf(soon) {
			t.Errorf("%v, more %t: %+v", err, more, list)
		}
		step(t, q, "1", 0, ended(g, jobs.Succeeded))

		many, hosts := newTask(spec(), 1100)
		many.Own = map[string]jobs.Micros{}
		for _, host := range hosts[zone] {
			many.Own[host] = soon.Add(2 * time.Hour)
		}
		if err := q.Submit(t.Context(), many, hosts, nil); err != nil {
			t.Fatal(err)
		}
		list, more, err = q.Deferred(t.Context(), zone)
		if err != nil || !more || len(list) != 1000 || list[0].Host != "fw0002" {
			t.Errorf("%v, more %t: %d", err, more, len(list))
		}
	})
}
