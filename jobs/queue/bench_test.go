package queue_test

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// BenchmarkStep measures the time of Redis' main thread for a job: a result and a take in one call,
// of one job or of sixteen. It serves to compare two forms of a script; bench/ compares with peers.
// The best of twenty parts of a run counts, because other processes on the core make the others
// slower.
func BenchmarkStep(b *testing.B) {
	for _, slots := range []int{1, 16} {
		b.Run(fmt.Sprint(slots), func(b *testing.B) { benchmarkStep(b, slots) })
	}
}

func benchmarkStep(b *testing.B, slots int) {
	s := redistest.StartServer(b)
	cfg := s.Config()
	cfg.Node, cfg.Slot, cfg.Timeout = "n1", "1", time.Minute // slow, where it is counted
	q, err := queuetest.Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2})
	defer rdb.Close()
	for left := b.N + 40*slots; left > 0; left -= 100_000 {
		task, hosts := newTask(spec(), min(left, 100_000))
		if err := q.Submit(b.Context(), task, hosts, nil); err != nil {
			b.Fatal(err)
		}
	}
	var results []jobs.Result
	var known []jobs.TaskID // the tasks whose spec the worker has
	turn := func(want int) int {
		r, err := q.Step(b.Context(), zone, jobs.Step{Node: "n1", Slot: "1", Known: known,
			Request: fmt.Sprint("r", request.Add(1)), Results: results, Want: want})
		if err != nil {
			b.Fatal(err)
		}
		for id := range r.Specs {
			known = append(known, id)
		}
		results = results[:0]
		for _, g := range r.Jobs {
			results = append(results, ended(g, jobs.Succeeded))
		}
		return len(r.Jobs)
	}
	turn(slots)
	const parts = 20
	best := math.Inf(1)
	b.ResetTimer()
	for range parts {
		before, done := mainThread(b, rdb), 0
		for ; done < b.N/parts+1; done += slots {
			turn(slots)
		}
		used := mainThread(b, rdb) - before
		best = min(best, float64(used.Nanoseconds())/1000/float64(done))
	}
	b.StopTimer()
	b.ReportMetric(best, "redis-µs/job")
}

// BenchmarkCancel measures the time of the main thread for one call of a cancel, in which Redis
// does nothing else. The best of all tasks counts.
func BenchmarkCancel(b *testing.B) {
	s := redistest.StartServer(b)
	q, err := queuetest.Open(b.Context(), s.Config())
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2})
	defer rdb.Close()
	best := math.Inf(1)
	for b.Loop() {
		b.StopTimer()
		task, hosts := newTask(spec(), 5000)
		if err := q.Submit(b.Context(), task, hosts, nil); err != nil {
			b.Fatal(err)
		}
		before, calls := mainThread(b, rdb), 0
		q.BeforeScript(string(task.ID), func(n int) error {
			calls = n
			return nil
		})
		b.StartTimer()
		if _, err := q.Cancel(b.Context(), task.ID, "bench"); err != nil {
			b.Fatal(err)
		}
		used := mainThread(b, rdb) - before
		best = min(best, float64(used.Nanoseconds())/1000/float64(calls))
	}
	b.ReportMetric(best, "redis-µs/call")
}

var mainField = regexp.MustCompile(`used_cpu_(?:user|sys)_main_thread:([0-9.]+)`)

// mainThread returns the working time of the main thread of Redis.
func mainThread(b *testing.B, rdb *redis.Client) (sum time.Duration) {
	b.Helper()
	text, err := rdb.Info(context.Background(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range mainField.FindAllStringSubmatch(text, -1) {
		seconds, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(seconds * float64(time.Second))
	}
	return sum
}
