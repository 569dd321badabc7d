package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"muster/jobs"
)

// lateBy makes a job late by a time.
func lateBy(d time.Duration) func(*jobs.Grant) {
	return func(g *jobs.Grant) { g.Due = jobs.MicrosOf(time.Now().Add(-d)) }
}

// forJobs puts n late jobs, and starts the worker without a job in hand.
func (s *stand) forJobs(n int, late time.Duration) {
	for i := range n {
		s.q.put(task1, host(i), lateBy(late))
	}
	s.startWith(jobs.Handover{Node: "n1", Slot: "3", Zone: "z", Reply: jobs.Reply{Status: jobs.StatusMore}})
}

func TestWithoutOverloadNothingIsReordered(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.forJobs(5, 4*time.Second)
		s.finish()
		if n := s.q.walked(); n != 0 {
			t.Errorf("tried %d times with jobs that were 4 to 9 s late", n)
		}
	})
}

func TestAnOverloadedQueueIsReorderedOncePerPause(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.reorder = func(context.Context) (jobs.Reordering, error) {
			return jobs.Reordering{Again: 7 * time.Second}, nil
		}
		s.forJobs(20, time.Minute)
		s.finish()
		if n := s.q.walked(); n != 3 {
			t.Errorf("tried %d times in 20 s, want one in 7 s", n)
		}
	})
}

func TestAWalkRunsBesideTheJobs(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.reorder = func(ctx context.Context) (jobs.Reordering, error) {
			_, err := works(ctx, 30*time.Second)
			return jobs.Reordering{Did: true, Again: time.Minute}, err
		}
		s.forJobs(10, time.Minute)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if len(s.q.results) != 10 || s.q.walked() != 1 {
			t.Errorf("%d results, %d walks", len(s.q.results), s.q.walked())
		}
		if s.lastSaid().Bye {
			t.Fatal("bye before the walk is over")
		}
		s.finish()
	})
}

func TestADrainAndAStopEndTheWalk(t *testing.T) {
	for name, end := range map[string]func(s *stand){
		"drain":  func(s *stand) { s.orders <- jobs.OrderDrain },
		"orphan": func(s *stand) { close(s.orders) },
		"stop":   func(s *stand) { s.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				stopped := false
				s.q.reorder = func(ctx context.Context) (jobs.Reordering, error) {
					<-ctx.Done()
					time.Sleep(time.Second) // its last call
					stopped = true
					return jobs.Reordering{Did: true, Why: jobs.ReorderStopped}, nil
				}
				s.forJobs(1, time.Minute)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				end(s)
				s.finish()
				if !stopped {
					t.Error("bye before the walk had ended")
				}
			})
		})
	}
}

func TestAWalkThatFailsIsTriedAgainLater(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.reorder = func(context.Context) (jobs.Reordering, error) {
			return jobs.Reordering{}, errors.New("redis is away")
		}
		s.forJobs(15, time.Minute)
		s.finish()
		if n := s.q.walked(); n != 2 {
			t.Errorf("tried %d times in 15 s, want one in 10 s", n)
		}
	})
}
