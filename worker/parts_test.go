package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"muster/jobs"
	"muster/worker/verdict"
)

func TestConfigTellsAllMistakes(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Errorf("default: %v", err)
	}
	bad := Config{Slots: 65, Call: -1, Poll: 2 * time.Hour, GiveUp: 0, LastWords: time.Second, OutputMax: 1 << 30}
	_, err := New(bad, Doors{})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, word := range []string{"slots = 65", "call = -1ns", "poll = 2h0m0s", "give_up = 0s", "output_max"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not named in:\n%v", word, err)
		}
	}
	if strings.Contains(err.Error(), "last_words") {
		t.Errorf("what is right is named in:\n%v", err)
	}
}

func TestAHandoverMustSayWhoTheWorkerIs(t *testing.T) {
	t.Parallel()
	w, err := New(Default(), Doors{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []jobs.Handover{{}, {Node: "n", Slot: "1"}, {Node: "n", Zone: "z"}, {Slot: "1", Zone: "z"}} {
		if err := w.Run(t.Context(), h, Master{}); err == nil {
			t.Errorf("%+v was accepted", h)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, tt := range []struct{ timeout, left, want time.Duration }{
		{20 * s, 60 * s, 20 * s},
		{20 * s, 26 * s, 20 * s},
		{20 * s, 25*s + 900*time.Millisecond, 19 * s},
		{20 * s, 11 * s, 5 * s},
		{20 * s, 11*s - 1, 0},
		{2 * s, 12 * s, 2 * s},
		{2 * s, 10 * s, 0},
		{20 * s, -s, 0},
	} {
		got, ok := verdict.Bound(tt.timeout, tt.left)
		if got != tt.want || ok != (tt.want > 0) {
			t.Errorf("bound(%s, %s) = %s, %t, want %s", tt.timeout, tt.left, got, ok, tt.want)
		}
	}
}

// A step that starts within its lease is over on the host before the lock ends.
func TestNoStepOutlivesItsLock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		step := time.Duration(rapid.Int64Range(int64(verdict.BoundMin), int64(time.Hour)).Draw(t, "step"))
		late := time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "late"))
		timeout := jobs.AttemptTimeout(step)
		end := verdict.Deadline(0, timeout)
		b, ok := verdict.Bound(step, end-late)
		if ok && late+b+jobs.KillGrace+verdict.AnswerTime > end {
			t.Fatalf("bound %s after %s is over behind the deadline %s", b, late, end)
		}
		if late < jobs.ConnectAllowance-3*time.Second && (!ok || b != step) {
			t.Fatalf("the step was cut to %s of %s after only %s", b, step, late)
		}
		if end+jobs.Margin(timeout) > timeout {
			t.Fatalf("deadline %s is later than the margin before %s", end, timeout)
		}
	})
}

func TestLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		boot := time.Now()
		var asleep atomic.Int64 // what timers of Go do not see
		clock := func() time.Duration { return time.Since(boot) + time.Duration(asleep.Load()) }

		ctx, l := newLease(t.Context(), clock, 20*time.Second)
		time.Sleep(15 * time.Second)
		l.extend(40 * time.Second)
		time.Sleep(24 * time.Second)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("ended before its end")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, verdict.ErrOverdue) {
			t.Errorf("at the end: %v", err)
		}
		l.stop()

		ctx, l = newLease(t.Context(), clock, time.Hour)
		time.Sleep(time.Second)
		asleep.Store(int64(2 * time.Hour))
		time.Sleep(clockCheck)
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, verdict.ErrOverdue) {
			t.Errorf("after a sleep of the machine: %v", err)
		}
		l.stop()

		ctx, l = newLease(t.Context(), clock, clock()+time.Hour)
		l.stop()
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("after stop: %v", err)
		}
		time.Sleep(2 * time.Hour) // no timer is left that would touch it
	})
}

func TestAReportThatReplacesTheFirstIsTheFirst(t *testing.T) {
	t.Parallel()
	r := reporter{box: make(chan jobs.Report, 1)}
	r.put(jobs.Report{Ready: true})
	r.put(jobs.Report{Done: 1})
	r.put(jobs.Report{Done: 2})
	if got := <-r.box; !got.Ready || got.Done != 2 {
		t.Errorf("%+v, want the latest, and ready", got)
	}
}

func TestReportsOfManyShortJobsAreGathered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var all []jobs.Report
		r := newReporter(func(r jobs.Report) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r)
		})
		told := func() []jobs.Report {
			mu.Lock()
			defer mu.Unlock()
			return all
		}
		r.tell(jobs.Report{Ready: true})
		for i := range 1000 { // one second
			time.Sleep(time.Millisecond)
			r.tell(jobs.Report{Done: i + 1})
		}
		synctest.Wait()
		sent := told()
		if n := len(sent); n < 8 || n > 12 || !sent[0].Ready || sent[1].Done != 1 {
			t.Errorf("%d reports in a second, the first %+v: want ten or so, the first two at once",
				n, sent[:min(n, 2)])
		}
		time.Sleep(reportEvery)
		synctest.Wait()
		sent = told()
		if last := sent[len(sent)-1]; last.Done != 1000 {
			t.Errorf("after %s the master knows %+v, want the latest", reportEvery, last)
		}
		began := time.Now()
		r.tell(jobs.Report{Done: 1001})
		r.bye(jobs.Report{Done: 1002, Bye: true})
		sent = told()
		if took := time.Since(began); took != 0 || !sent[len(sent)-1].Bye {
			t.Errorf("the last report is %+v after %s, want bye at once", sent[len(sent)-1], took)
		}
	})
}

func TestSpecsAreKeptAsLongAsTheyAreUsed(t *testing.T) {
	t.Parallel()
	var s specs
	id := func(i int) jobs.TaskID { return jobs.TaskID(fmt.Sprintf("%010d", i)) }
	one := spec(t, shell("x"))
	for i := range 40 {
		s.add(map[jobs.TaskID]jobs.Spec{id(i): one})
		s.get(id(3))
		s.trim()
		if n := len(s.known()); n > specsMax || n != len(s.plans) {
			t.Fatalf("%d are known, %d kept", n, len(s.plans))
		}
	}
	if _, ok := s.get(id(3)); !ok {
		t.Error("one in use was forgotten")
	}
	if _, ok := s.get(id(20)); ok {
		t.Error("one out of use was kept")
	}
	// All of one answer are found, however many they are.
	many := map[jobs.TaskID]jobs.Spec{}
	for i := 100; i < 164; i++ {
		many[id(i)] = one
	}
	s.add(many)
	for i := range many {
		if p, ok := s.get(i); !ok || p.err != nil || len(p.book.Steps) != 1 {
			t.Errorf("%s: %+v, %t", i, p, ok)
		}
	}
}
