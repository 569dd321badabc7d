package worker

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster/jobs"
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
		s.add(map[jobs.TaskID]jobs.Spec{id(i): one}, nil)
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
	// The plans of one answer are all there, however many they are.
	many := map[jobs.TaskID]jobs.Spec{}
	for i := 100; i < 164; i++ {
		many[id(i)] = one
	}
	s.add(many, nil)
	s.add(map[jobs.TaskID]jobs.Spec{id(99): one}, map[string]string{string(id(99)): "newer"})
	if p, ok := s.get(id(99)); !ok || p.Err == nil || !strings.HasSuffix(p.Err.Error(), "newer") || len(p.Book.Steps) > 0 {
		t.Errorf("a spec that cannot be read: %+v, %t", p, ok)
	}
	for i := range many {
		if p, ok := s.get(i); !ok || p.Err != nil || len(p.Book.Steps) != 1 {
			t.Errorf("%s: %+v, %t", i, p, ok)
		}
	}
}
