package server_test

import (
	"syscall"
	"testing"
	"time"

	"muster/history"
	"muster/jobs"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// BenchmarkHistorian stores what 3,000 hosts did in some tasks, from Redis into SQL: the
// stream, the jobs and what their hosts said. A round is a job, which is two events.
func BenchmarkHistorian(b *testing.B) {
	for _, db := range []string{"sqlite", "postgres"} {
		b.Run(db, func(b *testing.B) {
			cfg, its := sqltest.SQLite(b), func() time.Duration { return 0 }
			if db == "postgres" {
				p := sqltest.Shared(b)
				cfg, its = p.Config(b), func() time.Duration { return p.CPU(b) }
			}
			store, err := history.Open(cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			if err := store.Migrate(b.Context()); err != nil {
				b.Fatal(err)
			}
			const hosts = 3000
			redis := redistest.StartServer(b).Config()
			w := start(b, setup{redis: &redis, inventory: fixed(many(hosts)),
				wrap: func(q *queuetest.Queue) everything { return q }})
			for done := 0; done < b.N; done += hosts {
				w.submit(run("all"))
				w.work("default", func(string) jobs.Result { return jobs.Result{Outcome: jobs.Succeeded} })
			}
			b.ResetTimer()
			before, others := cpu(b), its()
			events := w.drain(b, store)
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric((cpu(b)-before).Seconds()*1e6/float64(events), "µs-cpu/event")
			if db == "postgres" {
				b.ReportMetric((its()-others).Seconds()*1e6/float64(events), "µs-cpu-of-postgres/event")
			}
		})
	}
}

// cpu returns the processor time of this process so far. On a machine with other work it says more
// than the clock. The time of PostgreSQL and Redis is not in it.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// drain stores all events of the stream, and returns their number.
func (w *world) drain(b *testing.B, store *history.Store) int64 {
	h := w.historian(store)
	for {
		more, err := h.RunOnce(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if more {
			continue
		}
		p, err := store.Position(b.Context(), "default")
		if err != nil || p.Events == 0 || time.Since(p.At.Time) > time.Hour {
			b.Fatalf("%+v, %v", p, err)
		}
		return p.Events
	}
}
