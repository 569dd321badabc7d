package backup

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/backupfile"
	"muster/jobs"
	"muster/testkit/sqltest"
)

// A zone with 100,000 jobs is backed up, while a worker takes and ends jobs without a pause.
func BenchmarkBackup(b *testing.B) {
	const tasks, hosts, ended = 40, 2500, 50_000
	h := newHouse(b, sqltest.SQLite(b), 1)
	for i := range tasks {
		h.submit(fmt.Sprintf("t%d-", i), hosts, jobs.Spec{})
	}
	var past []jobs.ID
	for n := 0; n < ended; {
		ids := h.exchange(50)
		n += len(ids)
		past = append(past, ids...)
		if len(past) >= 1000 {
			h.past(past...)
			past = past[:0]
		}
	}
	from, alone := time.Now(), 0.0
	for range 1000 {
		alone += float64(len(h.exchange(4)))
	}
	alone /= time.Since(from).Seconds()
	var done atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			done.Add(int64(len(h.exchange(4))))
		}
	})
	rate := func(f func()) float64 {
		from, before := time.Now(), done.Load()
		f()
		return float64(done.Load()-before) / time.Since(from).Seconds()
	}
	h.place.redis.Redis().Set(ctx, "muster:{hub}:leader:tend", "1 s1", time.Hour) // a house that lives
	for i := 0; b.Loop(); i++ {
		path := filepath.Join(b.TempDir(), fmt.Sprint("backup", i))
		var m Made
		var err error
		during := rate(func() {
			m, err = h.create(ctx, backupfile.Recipients{identity().Recipient()}, target{path: path})
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(m.Seconds, "s/backup")
		b.ReportMetric(m.Paused*1000, "ms/pause")
		b.ReportMetric(float64(m.Bytes)/1e6, "MB")
		b.ReportMetric(float64(m.Keys), "keys")
		b.ReportMetric(float64(m.Rows), "rows")
		b.ReportMetric(during/alone, "of-the-rate")
		b.ReportMetric(alone, "jobs/s-alone")
	}
	stop()
	work.Wait()
}

// exchange takes some jobs and ends them.
func (h *house) exchange(n int) (ids []jobs.ID) {
	h.t.Helper()
	var results []jobs.Result
	for _, g := range h.step(n).Jobs {
		results = append(results, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd,
			Outcome: jobs.Succeeded})
		ids = append(ids, g.Job)
	}
	h.step(0, results...)
	return ids
}
