package traces_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/history"
	"muster/history/courses"
	"muster/jobs"
	"muster/server/traces"
	"muster/testkit/sqltest"
)

// stored is a history as a server has it.
type stored struct{ *history.Store }

func (s stored) Courses(ctx context.Context, task jobs.TaskID, hosts []string) (map[string]api.Course, error) {
	return courses.Of(ctx, s.Store, task, hosts)
}

func (s stored) Committed(ctx context.Context, task jobs.TaskID) (time.Time, error) {
	return courses.Committed(ctx, s.Store, task)
}

// BenchmarkTraces sends the traces of jobs of two steps whose course is in SQLite: reading them,
// making the spans, sending them to a collector that throws them away. A round is a job, and every
// job is sent. With one in 100 a server does that for each hundredth job that ends well.
func BenchmarkTraces(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer sink.Close()
	store := sqltest.Ready(b, sqltest.SQLite(b))
	const hosts = 1000
	var list []history.Batch
	for done := 0; done < b.N; done += hosts {
		at := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC).Add(time.Duration(done) * time.Second)
		id := jobs.NewTaskID(at, 0)
		batch := history.Batch{Zone: "eu", Last: fmt.Sprintf("%d-1", at.UnixMilli()), Entries: int64(done)}
		if len(list) > 0 {
			batch.After = list[len(list)-1].Last
		}
		for _, host := range names(min(hosts, b.N-done)) {
			job := string(jobs.NewID(id, host))
			for s, e := range []jobs.Happening{
				{Event: "take", Detail: map[string]any{"node": "n1", "attempt": 1.}},
				{Event: "step", Detail: map[string]any{"step": 1.}},
				{Event: "end", Detail: map[string]any{"outcome": "succeeded"}}} {
				e.Object, e.Zone, e.ID = job, "eu", batch.Last
				e.At = jobs.Time{Time: at.Add(time.Duration(s) * time.Second)}
				batch.Events = append(batch.Events, e)
			}
			batch.Ended = append(batch.Ended, api.PastJob{JobInfo: jobs.JobInfo{ID: jobs.ID(job), Host: host,
				State: jobs.Ended, Outcome: jobs.Succeeded, Attempt: 1, Node: "n1", Due: jobs.Time{Time: at},
				Started: jobs.Time{Time: at}, Finished: jobs.Time{Time: at.Add(2 * time.Second)},
				Aside: jobs.Aside{Times: jobs.Times{jobs.Connecting: .2, jobs.Acting: 1.7}}}, Zone: "eu",
				Customer: "acme", Runbook: "reload"})
		}
		if _, err := store.Put(b.Context(), batch, at); err != nil {
			b.Fatal(err)
		}
		list = append(list, batch)
	}
	m := newMeters()
	tr, err := traces.New(traces.Needs{Config: traces.Config{Endpoint: sink.URL, OneIn: 1, Timeout: time.Minute},
		Version: "1.2.3", Past: stored{store}, Meters: m, Log: hclog.NewNullLogger()})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	before := cpu(b)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); tr.Run(ctx) }()
	sent := 0
	for _, batch := range list {
		tr.Hear(batch)
		sent += len(batch.Ended)
		for m.now()["sent"] < sent-traces.QueueMax+hosts {
			<-m.next()
		}
	}
	for m.now()["sent"] < sent {
		<-m.next()
	}
	b.ReportMetric((cpu(b)-before).Seconds()*1e6/float64(b.N), "µs-cpu/job")
	cancel()
	<-ended
}

// next returns a channel that is closed when something is counted.
func (m *meters) next() chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// cpu returns the processor time of this process so far.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
