package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/worker/attempt"
	"muster/worker/verdict"
)

func TestOneSlotMakesOneCallAJob(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		first := s.q.grant(task1, host(0))
		for i := 1; i < 20; i++ {
			s.q.put(task1, host(i))
		}
		s.start(first)
		s.finish()
		if len(s.q.results) != 20 || len(s.q.tries) != 20 {
			t.Errorf("%d results in %d calls, want 20 in 20", len(s.q.results), len(s.q.tries))
		}
		for i, c := range s.q.calls {
			if len(c.Results) != 1 || c.Want != 1 || c.Results[0].Outcome != jobs.Succeeded {
				t.Errorf("call %d: want %d, results %+v", i, c.Want, c.Results)
			}
			if c.Results[0].Job != jobs.NewID(task1, host(i)) {
				t.Errorf("call %d is about %s", i, c.Results[0].Job)
			}
			if diff := cmp.Diff([]jobs.TaskID{task1}, c.Known); diff != "" {
				t.Errorf("known (-want +got):\n%s", diff)
			}
		}
		bye := s.lastSaid()
		if bye.Done != 20 || bye.Next != s.q.answers[s.q.calls[19].Request].Next {
			t.Errorf("bye = %+v, want 20 done and the queue's next", bye)
		}
		if s.hosts.most != 1 {
			t.Errorf("%d connections at a time, want 1", s.hosts.most)
		}
	})
}

func TestSlotsGatherResultsWhileACallIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Slots = 8
		s.q.delay = 300 * time.Millisecond
		s.hosts.run = func(ctx context.Context, _ fleet.Host, _ remote.Command) (remote.Result, error) {
			return works(ctx, 10*time.Millisecond)
		}
		first := s.q.grant(task1, host(0))
		for i := 1; i < 100; i++ {
			s.q.put(task1, host(i))
		}
		s.start(first)
		s.finish()
		if len(s.q.results) != 100 || s.hosts.most < 7 || s.hosts.most > 8 {
			t.Errorf("%d results, %d at a time, want 100 and 7 or 8", len(s.q.results), s.hosts.most)
		}
		if len(s.q.calls) > 30 {
			t.Errorf("%d calls for 100 jobs in 8 slots: the results do not share calls", len(s.q.calls))
		}
		inHand := 1
		for i, c := range s.q.calls {
			inHand -= len(c.Results)
			if c.Want > 8-inHand {
				t.Errorf("call %d wants %d with %d in hand", i, c.Want, inHand)
			}
			inHand += len(s.q.answers[c.Request].Jobs)
		}
	})
}

func TestAFreeSlotAsksAgainForLaterJobs(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Slots = 2
		s.hosts.run = func(ctx context.Context, h fleet.Host, _ remote.Command) (remote.Result, error) {
			return works(ctx, map[string]time.Duration{host(1): 18 * time.Second, host(2): time.Second}[h.Name])
		}
		first := s.q.grant(task1, host(1))
		s.start(first)
		time.Sleep(3 * time.Second)
		s.q.put(task1, host(2))
		synctest.Wait()
		if len(s.q.resultsOf(jobs.NewID(task1, host(2)))) > 0 {
			t.Fatal("asked before the poll")
		}
		time.Sleep(10 * time.Second)
		if got := s.q.only(jobs.NewID(task1, host(2))); got.Outcome != jobs.Succeeded {
			t.Errorf("second job: %+v", got)
		}
		if n := s.q.carriedOut(); n > 4 {
			t.Errorf("%d calls in 13 s, want few", n)
		}
		s.finish()
	})
}

func TestTheQueueSaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	now := jobs.Micros(1_700_000_000_000_000)
	for _, tt := range []struct {
		name string
		next jobs.Micros
		want time.Duration
	}{
		{"nothing is queued", 0, 10 * time.Second},
		{"soon", now.Add(3 * time.Second), 3 * time.Second},
		{"in a moment", now.Add(time.Millisecond), pollMin},
		{"it is past", now.Add(-time.Hour), pollMin},
		{"far away", now.Add(time.Hour), 10 * time.Second},
	} {
		if got := nap(jobs.Reply{Now: now, Next: tt.next}, 10*time.Second); got != tt.want {
			t.Errorf("%s: nap = %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestAnAnswerOfMoreIsFollowedByACallAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.empty = jobs.Reply{Status: jobs.StatusMore}
		s.q.fault = func(n int) (error, error) {
			if n == 5 {
				s.q.empty = jobs.Reply{}
			}
			return nil, nil
		}
		began := time.Now()
		s.startWith(jobs.Handover{Node: "n1", Slot: "3", Zone: "z", Reply: jobs.Reply{Status: jobs.StatusMore}})
		s.finish()
		if took := time.Since(began); len(s.q.tries) != 5 || took != 5*s.q.delay {
			t.Errorf("%d calls in %s, want 5 without a pause", len(s.q.tries), took)
		}
	})
}

func TestTheWorkerEndsWhenNoJobIsLeft(t *testing.T) {
	for _, status := range []jobs.Status{jobs.StatusNext, jobs.StatusFrozen, jobs.StatusHalted} {
		t.Run(string(status), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.q.empty = jobs.Reply{Status: status, Next: 77}
				s.start(s.q.grant(task1, host(1)))
				s.finish()
				if len(s.q.calls) != 1 || s.lastSaid().Next != 77 {
					t.Errorf("%d calls, bye %+v; want one, and its next", len(s.q.calls), s.lastSaid())
				}
			})
		})
	}
}

func TestACallIsRepeatedUntilItIsAnswered(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after error // errors of the tries while the queue is away
	}{
		{"not carried out", errAway, nil},
		{"carried out, the answer is lost", nil, errAway},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				first, second := s.q.grant(task1, host(1)), s.q.put(task1, host(2))
				back := time.Now().Add(30 * time.Minute)
				s.q.fault = func(int) (error, error) {
					if time.Now().Before(back) {
						return tt.before, tt.after
					}
					return nil, nil
				}
				s.hosts.run = func(ctx context.Context, _ fleet.Host, _ remote.Command) (remote.Result, error) {
					r, err := works(ctx, time.Second)
					r.Output.Head = []byte("hello\n")
					return r, err
				}
				s.start(first)
				time.Sleep(29 * time.Minute)
				synctest.Wait()
				if got := s.lastSaid(); len(got.Jobs) != 1 || got.Deadline != 0 {
					t.Errorf("told the master %+v, want the job in hand without a deadline", got)
				}
				s.finish()

				for i, c := range s.q.tries[:len(s.q.tries)-2] {
					if diff := cmp.Diff(s.q.tries[0], c); diff != "" {
						t.Fatalf("try %d is another call (-first +this):\n%s", i+1, diff)
					}
				}
				if got := s.q.only(first.Job); got.Outcome != jobs.Succeeded || string(got.Output) != "hello\n" {
					t.Errorf("first job: %+v", got)
				}
				// Its lock may have begun with the first try, so the job must not start now.
				if got := s.q.only(second.Job); got.Kind != jobs.KindBack {
					t.Errorf("second job: %+v, want it back", got)
				}
				for _, r := range s.said() {
					if slices.Contains(r.Jobs, second.Job) && r.Deadline != 0 {
						t.Errorf("told the master of a deadline in the past: %+v", r)
					}
				}
				checkPauses(t, s.q.times)
			})
		})
	}
}

// checkPauses checks the pauses between the tries of the first call.
func checkPauses(t *testing.T, times []time.Time) {
	t.Helper()
	for i := range min(len(times)-3, 50) {
		gap := times[i+1].Sub(times[i]) - time.Millisecond
		if least, most := verdict.Pause(i+1, 1), verdict.Pause(i+1, 0); gap < least || gap > most {
			t.Errorf("pause %d = %s, want %s to %s", i+1, gap, least, most)
		}
	}
}

func TestNoFurtherStepStartsWhileTheQueueIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Slots = 2
		s.q.specs[task1] = spec(t, shell("one"), shell("two"))
		away := func() error {
			if now := time.Since(s.zero) - time.Hour; now > 500*time.Millisecond && now < time.Minute {
				return errAway
			}
			return nil
		}
		s.q.fault = func(int) (error, error) { return away(), nil }
		s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) { return jobs.Go, away() }
		a, b := s.q.grant(task1, host(1)), s.q.grant(task1, host(2))
		s.start(a, b)
		time.Sleep(59 * time.Second)
		if got := s.hosts.started(); len(got) != 2 {
			t.Errorf("started while the queue was away: %q", got)
		}
		s.finish()
		for _, g := range []jobs.Grant{a, b} {
			got := s.q.only(g.Job)
			if got.Kind != jobs.KindRetry || got.Step != 1 || !strings.Contains(got.Error, "no go") {
				t.Errorf("%s: %+v, want a retry at step 1", g.Job, got)
			}
		}
	})
}

func TestTheWorkerGivesUpWhenNoResultCanGetLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.fault = func(int) (error, error) { return errAway, nil }
		began := time.Now()
		s.start()
		err := s.wait()
		if took := time.Since(began); err == nil || took < 30*time.Second || took > 33*time.Second {
			t.Errorf("err = %v after %s, want one after 30s", err, took)
		}
		if bye := s.lastSaid(); !bye.Bye || bye.Error == "" {
			t.Errorf("last report = %+v, want a bye with the error", bye)
		}
	})
}

func TestAWorkerWithoutMasterEndsAfterItsJobs(t *testing.T) {
	for _, tt := range []struct {
		name string
		say  func(s *stand)
	}{
		{"the master is gone", func(s *stand) { close(s.orders) }},
		{"drain", func(s *stand) { s.orders <- jobs.OrderDrain }},
		{"what is not known changes nothing", func(s *stand) { s.orders <- "dance"; s.orders <- jobs.OrderDrain }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.cfg.Slots = 2
				a, b := s.q.grant(task1, host(1)), s.q.grant(task1, host(2))
				s.q.put(task1, host(3))
				s.start(a, b)
				time.Sleep(200 * time.Millisecond)
				tt.say(s)
				s.finish()
				for _, g := range []jobs.Grant{a, b} {
					if got := s.q.only(g.Job); got.Outcome != jobs.Succeeded {
						t.Errorf("%s: %+v", g.Job, got)
					}
				}
				for _, c := range s.q.calls {
					if c.Want != 0 {
						t.Errorf("wants %d after the order", c.Want)
					}
				}
			})
		})
	}
}

func TestAJobThatComesAfterTheDrainIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Slots = 3
		s.q.delay = time.Second
		fresh := s.q.put(task1, host(2))
		dead := s.q.put(task1, host(3), func(g *jobs.Grant) { g.Mode, g.LostNode = jobs.ModeLost, "n9" })
		s.start(s.q.grant(task1, host(1)))
		time.Sleep(100 * time.Millisecond) // the call for two more is under way
		s.orders <- jobs.OrderDrain
		s.finish()
		if got := s.q.only(fresh.Job); got.Kind != jobs.KindBack {
			t.Errorf("fresh job: %+v, want it back", got)
		}
		// A released job would come again as if it had never been lost.
		if got := s.q.only(dead.Job); got.Outcome != jobs.Unknown {
			t.Errorf("lost job: %+v, want unknown", got)
		}
		if got := s.hosts.started(); len(got) != 1 {
			t.Errorf("started %q, want only the first", got)
		}
	})
}

func TestAStopTellsTheTruth(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Slots = 4
		s.q.specs[task1] = spec(t, shell("one"), shell("two"))
		again := jobs.TaskID("0000000002")
		s.q.specs[again] = spec(t, repeatable("only"))
		s.hosts.dial = func(ctx context.Context, h fleet.Host) error {
			if h.Name != "slow" {
				return nil
			}
			<-ctx.Done()
			return fault(remote.KindCancelled, false, ctx.Err())
		}
		s.q.verdict = func(c jobs.Checkpoint) (jobs.Verdict, error) {
			if c.Job.Host() == "asks" {
				return "", errAway
			}
			return jobs.Go, nil
		}
		slow, runs := s.q.grant(task1, "slow"), s.q.grant(task1, "runs")
		asks, twice := s.q.grant(task1, "asks"), s.q.grant(again, "twice")
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			if h.Name == "asks" {
				return works(ctx, time.Second)
			}
			return works(ctx, time.Hour)
		}
		s.start(slow, runs, asks, twice)
		time.Sleep(5 * time.Second)
		s.stop()
		s.finish()

		if got := s.q.only(slow.Job); got.Kind != jobs.KindBack {
			t.Errorf("connecting: %+v, want it back", got)
		}
		if got := s.q.only(runs.Job); got.Outcome != jobs.Unknown || !got.KeepLock ||
			!strings.Contains(got.Error, "worker was stopped") {
			t.Errorf("running: %+v, want unknown, and the lock kept", got)
		}
		if got := s.q.only(asks.Job); got.Kind != jobs.KindWait || got.Step != 1 || got.Release {
			t.Errorf("between two steps: %+v, want to go on at step 1", got)
		}
		if got := s.q.only(twice.Job); got.Kind != jobs.KindRetry || !got.KeepLock || got.Delay < 15*time.Second {
			t.Errorf("running and repeatable: %+v, want a retry behind its bound", got)
		}
	})
}

func TestTheLastWordsHaveABound(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.fault = func(int) (error, error) { return errAway, nil }
		s.start(s.q.grant(task1, host(1)))
		time.Sleep(5 * time.Second)
		stopped := time.Now()
		s.stop()
		err := s.wait()
		if took := time.Since(stopped); err == nil || took < 10*time.Second || took > 16*time.Second {
			t.Errorf("err = %v after %s, want one after 10s", err, took)
		}
		if bye := s.lastSaid(); !bye.Bye || len(bye.Jobs) != 1 || !strings.Contains(bye.Error, "1 job") {
			t.Errorf("bye = %+v, want the job that could not be reported", bye)
		}
	})
}

func TestAStopBeforeTheStartReleasesAllJobs(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		g := s.q.grant(task1, host(1))
		w, err := New(s.cfg, Doors{Queue: s.q, Times: s.times, Clock: s.clock, Log: s.log,
			Steps: attempt.Doors{Queue: s.q, Dial: s.hosts.connect}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		h := jobs.Handover{Node: "n1", Slot: "3", Zone: "z", Sent: s.clock(),
			Reply: jobs.Reply{Status: jobs.StatusJobs, Jobs: []jobs.Grant{g}, Specs: s.q.specs}}
		if err := w.Run(ctx, h, Master{Report: s.gather}); err != nil {
			t.Fatal(err)
		}
		if got := s.q.only(g.Job); got.Kind != jobs.KindBack {
			t.Errorf("%+v, want it back", got)
		}
	})
}

// A host's record with a field that this muster does not know may say how the host is to be spared.
func TestAHostThatCannotBeReadIsNotTouched(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		g := s.q.grant(task1, host(1))
		g.Host = nil
		s.startWith(jobs.Handover{Node: "n1", Slot: "3", Zone: "z", Sent: s.clock(), Reply: jobs.Reply{
			Status: jobs.StatusJobs, Jobs: []jobs.Grant{g}, Specs: s.q.specs,
			Unread: map[string]string{string(g.Job): "a newer muster made it"}}})
		s.finish()
		want := "the record of the host cannot be read: a newer muster made it"
		if got := s.q.only(g.Job); got.Outcome != jobs.Failed || got.Class != jobs.ClassOperator || got.Error != want {
			t.Errorf("%+v, want that it failed: %s", got, want)
		}
	})
}

func TestAMasterThatDoesNotReadDelaysNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		released := make(chan struct{})
		var got []jobs.Report
		s.report = func(r jobs.Report) {
			got = append(got, r)
			<-released
		}
		for i := range 5 {
			s.q.put(task1, host(i))
		}
		began := time.Now()
		s.start()
		if err := s.wait(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); len(s.q.results) != 5 || took > 8*time.Second {
			t.Errorf("%d results after %s", len(s.q.results), took)
		}
		close(released)
		synctest.Wait()
		if len(got) != 2 || !got[0].Ready || !got[1].Bye {
			t.Errorf("reports = %+v, want the first and the last", got)
		}
	})
}

func TestReportsFollowTheJobsInHand(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.specs[task1] = spec(t, shell("one"), shell("two"))
		g := s.q.grant(task1, host(1))
		sent := s.clock()
		s.start(g)
		s.finish()
		first := jobs.Report{Ready: true, Jobs: []jobs.ID{g.Job}, Deadline: verdict.Deadline(sent, g.Timeout)}
		moved := first
		moved.Ready = false
		moved.Deadline += time.Second // the checkpoint came after one step
		over := jobs.Report{Jobs: []jobs.ID{g.Job}}
		// The last report, which is due at once, says that no job is in hand any more.
		bye := jobs.Report{Jobs: []jobs.ID{}, Done: 1, Bye: true, Next: s.lastSaid().Next,
			Asked: s.lastSaid().Asked}
		want := []jobs.Report{first, moved, over, bye}
		if diff := cmp.Diff(want, s.said()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

func TestAnAttemptThatDoesNotStopEndsTheWorker(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Slots = 2
		released := make(chan struct{})
		s.hosts.run = func(ctx context.Context, h fleet.Host, _ remote.Command) (remote.Result, error) {
			if h.Name == host(1) {
				<-released // whatever ctx says
				return remote.Result{}, nil
			}
			return works(ctx, 15*time.Second)
		}
		bad := s.q.grant(task1, host(1))
		for i := 2; i < 20; i++ {
			s.q.put(task1, host(i))
		}
		began := time.Now()
		s.start(bad)
		if err := s.wait(); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if limit := verdict.Deadline(0, attemptTime); took < limit || took > limit+20*time.Second {
			t.Errorf("ended after %s, want soon after %s", took, limit)
		}
		got := s.q.only(bad.Job)
		if got.Outcome != jobs.Unknown || got.Class != jobs.ClassOperator || !got.KeepLock {
			t.Errorf("stuck job: %+v, want unknown, and the lock kept", got)
		}
		close(released)
	})
}

func TestALateResultDoesNotCountAsDone(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		g := s.q.grant(task1, host(1))
		s.q.late = map[jobs.ID]bool{g.Job: true}
		s.q.put(task1, host(2))
		s.start(g)
		s.finish()
		if bye := s.lastSaid(); bye.Done != 1 {
			t.Errorf("%d done, want only the other", bye.Done)
		}
	})
}

func TestAJobWithoutSpecIsNotTriedForEver(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*jobs.Grant)
		kind   jobs.Kind
		out    jobs.Outcome
	}{
		{"first try", func(*jobs.Grant) {}, jobs.KindRetry, ""},
		{"last try", func(g *jobs.Grant) { g.Tries = 2 }, jobs.KindEnd, jobs.Failed},
		{"lost before", func(g *jobs.Grant) { g.Mode = jobs.ModeLost }, jobs.KindEnd, jobs.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				delete(s.q.specs, task1)
				g := s.q.grant(task1, host(1), tt.change)
				s.start(g)
				s.finish()
				got := s.q.only(g.Job)
				if got.Kind != tt.kind || got.Outcome != tt.out || tt.kind == jobs.KindRetry && got.Delay == 0 {
					t.Errorf("%+v, want %s %s", got, tt.kind, tt.out)
				}
				if got.Outcome == jobs.Unknown && !got.KeepLock {
					t.Error("the lock of a lost job was given away")
				}
			})
		})
	}
}

func TestErrorsOfTheQueueAreNoResults(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		// The worker ends a call that hangs, and repeats it like any other.
		s.q.fault = func(n int) (error, error) {
			if n == 1 {
				s.q.delay = time.Hour
			} else {
				s.q.delay = time.Millisecond
			}
			return nil, nil
		}
		g := s.q.grant(task1, host(1))
		s.start(g)
		time.Sleep(2 * time.Second)
		s.orders <- jobs.OrderDrain
		if err := s.wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if got := s.q.only(g.Job); got.Outcome != jobs.Succeeded {
			t.Errorf("%+v", got)
		}
	})
}
