package history_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"muster/history"
	"muster/history/part"
	"muster/jobs"
	"muster/testkit/sqltest"
)

// benchJobs is the number of jobs in the tables of the benchmarks.
var benchJobs = flag.Int("history.jobs", 100_000, "jobs in the tables of the benchmarks")

// fleetOf makes batches as a fleet does: two events a job, a task of 3,000 hosts
// after the other, 1 % of them fail.
func fleetOf(from, n int) history.Batch {
	b := history.Batch{Zone: "default", Entries: -1}
	for i := from; i < from+n; i++ {
		id := jobs.NewID(taskID(i/3000), fmt.Sprintf("fw%04d", i%3000))
		j := job(id.Task(), id.Host(), jobs.Succeeded, time.Duration(i)*time.Millisecond)
		j.Started = at(time.Duration(i)*time.Millisecond - 3*time.Second)
		j.Customer, j.Operator = fmt.Sprintf("c%03d", i%100), fmt.Sprintf("o%d", i/3000%20)
		j.Runbook = fmt.Sprintf("r%d", i/3000%10)
		if i%100 == 7 {
			j.Outcome = jobs.Failed
		}
		b.Ended = append(b.Ended, j)
		b.Events = append(b.Events, happened(2*i, "take", id, map[string]any{"node": "n1/1", "attempt": 1.0}),
			happened(2*i+1, "end", id, map[string]any{"outcome": string(j.Outcome)}))
		if i%3000 == 0 {
			b.Tasks = append(b.Tasks, task(id.Task(), 3000))
		}
	}
	return b
}

const benchBatch = 2500 // jobs

// fill stores jobs.
func fill(b *testing.B, s *history.Store, from, n int) {
	for i := from; i < from+n; i += benchBatch {
		p, err := s.Position(b.Context(), "default")
		if err != nil {
			b.Fatal(err)
		}
		batch := fleetOf(i, min(benchBatch, from+n-i))
		batch.After, batch.Last = p.Last, fmt.Sprintf("%d-0", 2*(i+len(batch.Ended)))
		if _, err := s.Put(b.Context(), batch, begin); err != nil {
			b.Fatal(err)
		}
	}
}

func bothBench(b *testing.B, f func(b *testing.B, s *history.Store)) {
	b.Run("sqlite", func(b *testing.B) { f(b, open(b, sqltest.SQLite(b))) })
	b.Run("postgres", func(b *testing.B) { f(b, open(b, sqltest.Shared(b).Config(b))) })
}

// BenchmarkPut stores a job a round: its take and its end.
func BenchmarkPut(b *testing.B) {
	bothBench(b, func(b *testing.B, s *history.Store) {
		if err := s.Migrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		fill(b, s, 0, b.N)
		b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	})
}

// hostsOf returns the part of the house that has the hosts of so many customers.
func hostsOf(customers int) []part.Part {
	hosts := map[string]string{}
	for i := range 3000 {
		if i%100 < customers {
			hosts[fmt.Sprintf("fw%04d", i)] = fmt.Sprintf("c%03d", i%100)
		}
	}
	return []part.Part{{Hosts: hosts}}
}

// BenchmarkFirstPage is the first page of `muster history` with filters.
func BenchmarkFirstPage(b *testing.B) {
	bothBench(b, func(b *testing.B, s *history.Store) {
		fillTables(b, s, *benchJobs)
		middle := begin.Add(time.Duration(*benchJobs/2) * time.Millisecond)
		for name, f := range map[string]history.Filter{
			"seen: 1 customer": {Seen: hostsOf(1)}, "seen: 10 customers": {Seen: hostsOf(10)},
			"seen: nothing": {Seen: []part.Part{{Hosts: map[string]string{"fw9999": "c999"}}}},
			"all":           {}, "customer": {Customer: "c042"}, "host": {Host: "fw0042"}, "failed": {Outcome: jobs.Failed},
			"customer+failed": {Customer: "c007", Outcome: jobs.Failed}, "nothing": {Customer: "c042", Outcome: jobs.Failed},
			"operator+runbook": {Operator: "o3", Runbook: "r3"}, "rolled_back": {Outcome: jobs.RolledBack},
			"runbook+time": {Runbook: "r7", To: middle}, "succeeded+time": {Outcome: jobs.Succeeded, To: middle},
			"task": {Task: taskID(7)}, "operator": {Operator: "o3"}, "customer+time": {Customer: "c042", To: middle},
			"host+runbook": {Host: "fw0042", Runbook: "r3"}, "runbook+failed": {Runbook: "r3", Outcome: jobs.Failed},
			"customer+operator":   {Customer: "c042", Operator: "o3"},
			"of operator nothing": {Operator: "o3", Runbook: "r4"},
			"of customer nothing": {Customer: "c007", Outcome: jobs.Succeeded},
			"of three nothing":    {Customer: "c042", Operator: "o3", Runbook: "r4"},
			"of operator failed":  {Operator: "o3", Runbook: "r4", Outcome: jobs.Failed},
			"customer+runbook":    {Customer: "c042", Runbook: "r3"},
			"of a time nothing":   {Customer: "c042", From: begin.Add(-time.Hour), To: begin},
		} {
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					if _, _, err := s.Jobs(b.Context(), f, "", 50); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

// BenchmarkForget deletes tasks of one host each, as a schedule makes them. It reports the
// deletions a minute, and the longest time for which a batch kept others waiting.
func BenchmarkForget(b *testing.B) {
	bothBench(b, func(b *testing.B, s *history.Store) {
		if err := s.Migrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		small := history.Batch{Zone: "default", Entries: -1, Last: "1-0"}
		for i := range b.N {
			id := jobs.NewID(taskID(i), "fw0001")
			small.Tasks = append(small.Tasks, task(id.Task(), 1))
			small.Ended = append(small.Ended, job(id.Task(), id.Host(), jobs.Succeeded, time.Second))
			for n, what := range []string{"put", "commit", "take", "step", "end", "task"} {
				small.Events = append(small.Events, happened(6*i+n, what, id, map[string]any{"attempt": 1.0}))
			}
		}
		if _, err := s.Put(b.Context(), small, begin); err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		longest := time.Duration(0)
		for n := int64(1); n > 0; {
			from := time.Now()
			var err error
			if n, err = s.Forget(b.Context(), begin.Add(24*time.Hour)); err != nil {
				b.Fatal(err)
			}
			longest = max(longest, time.Since(from))
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Minutes(), "tasks/min")
		b.ReportMetric(float64(longest.Milliseconds()), "ms/longest")
	})
}
