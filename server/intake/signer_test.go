package intake

import (
	"testing"
	"time"

	"muster/jobs"
	"muster/server/draft"
	"muster/trust"
)

func TestTheTimeOfAnOrder(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) jobs.Micros { return jobs.MicrosOf(now.Add(d)) }
	for _, x := range []struct {
		name        string
		task        jobs.Task
		from, until time.Duration // from now on
	}{
		{"at once", jobs.Task{}, -slowClock, 8 * time.Hour},
		{"later", jobs.Task{At: at(2 * time.Hour)}, 2 * time.Hour, 10 * time.Hour},
		{"in the past", jobs.Task{At: at(-time.Minute)}, -slowClock, 8 * time.Hour},
		{"one host in a window", jobs.Task{Own: map[string]jobs.Micros{"a": at(24 * time.Hour), "b": 0}},
			-slowClock, 32 * time.Hour},
		{"a window in a month", jobs.Task{Own: map[string]jobs.Micros{"a": at(720 * time.Hour)}}, -slowClock,
			trust.Validity - slowClock},
	} {
		x.task.Spec.Expire = 8 * time.Hour
		from, until := validity(draft.Draft{Task: x.task}, now)
		if from.Sub(now) != x.from || until.Sub(now) != x.until {
			t.Errorf("%s: from %s to %s", x.name, from.Sub(now), until.Sub(now))
		}
	}
}
