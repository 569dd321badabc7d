package jobs

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// backlogs draws the tasks of an overloaded queue.
func backlogs(t *rapid.T) []Backlog {
	list := make([]Backlog, rapid.IntRange(0, 12).Draw(t, "tasks"))
	for i := range list {
		list[i] = Backlog{
			Task:     TaskID(fmt.Sprintf("%010d", i)),
			Operator: rapid.SampledFrom([]string{"alice", "bob", "carol"}).Draw(t, "operator"),
			Weight:   rapid.SampledFrom(Priorities()).Draw(t, "priority").Weight(),
			Due:      Micros(rapid.IntRange(1, 4).Draw(t, "due")),
			Jobs:     rapid.IntRange(0, 40).Draw(t, "jobs"),
		}
	}
	return list
}

// arranged returns the tasks of the jobs in the queue after a reordering, from the front.
func arranged(t *rapid.T, list []Backlog, by FairBy) []TaskID {
	p := Arrange(list, by)
	out := make([]TaskID, p.Len())
	for _, b := range list {
		last := len(out)
		for range b.Jobs {
			place, ok := p.Next(b.Task)
			if !ok || place >= last {
				t.Fatalf("a job of %s goes to %d, one behind it in its task to %d", b.Task, place, last)
			}
			if out[place] != "" {
				t.Fatalf("%s and %s both go to %d", out[place], b.Task, place)
			}
			out[place], last = b.Task, place
		}
		if _, ok := p.Next(b.Task); ok {
			t.Fatalf("%s has more places than jobs", b.Task)
		}
	}
	if slices.Contains(out, "") {
		t.Fatalf("places are empty: %q", out)
	}
	return out
}

func TestEveryJobHasAPlaceAndTasksKeepTheirOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SampledFrom([]FairBy{FairByTask, FairByOperator}).Draw(t, "by")
		list := backlogs(t)
		want := 0
		for _, b := range list {
			want += b.Jobs
		}
		if got := len(arranged(t, list, by)); got != want {
			t.Fatalf("%d places for %d jobs", got, want)
		}
	})
}

// In any prefix of the queue, two tasks that have jobs left have shares by their weights: equal
// tasks differ by one job at most.
func TestEveryPrefixIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := backlogs(t)
		got := map[TaskID]int{}
		for _, id := range arranged(t, list, FairByTask) {
			got[id]++
			for _, a := range list {
				for _, b := range list {
					if got[a.Task] == a.Jobs || got[b.Task] == b.Jobs || a.Task == b.Task {
						continue
					}
					// The last job of a is at (number - 1) / weight, and the next job of b is not before it.
					if (got[a.Task]-1)*b.Weight > got[b.Task]*a.Weight {
						t.Fatalf("%d of %+v and %d of %+v", got[a.Task], a, got[b.Task], b)
					}
					if a.Weight == b.Weight && got[a.Task]-got[b.Task] > 1 {
						t.Fatalf("equal tasks have %d and %d", got[a.Task], got[b.Task])
					}
				}
			}
		}
	})
}

func TestOfEqualTasksTheOneDueLongestComesFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := backlogs(t)
		due, jobs := map[TaskID]Micros{}, map[TaskID]int{}
		for _, b := range list {
			due[b.Task], jobs[b.Task] = b.Due, b.Jobs
		}
		first := map[TaskID]bool{}
		last := Micros(0)
		for _, id := range arranged(t, list, FairByTask) {
			if first[id] {
				break // the first round is over
			}
			if first[id] = true; due[id] < last {
				t.Fatalf("%s, due at %d, comes behind one due at %d", id, due[id], last)
			}
			last = due[id]
		}
		for id, n := range jobs {
			if n > 0 && !first[id] {
				t.Fatalf("%s has no job in the first round", id)
			}
		}
	})
}

// An operator who splits a task gets the same places as before, and operators
// differ by one at most.
func TestSplittingATaskWinsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := backlogs(t)
		of := map[TaskID]string{}
		left := map[string]int{}
		for _, b := range list {
			of[b.Task] = b.Operator
			left[b.Operator] += b.Jobs
		}
		got := map[string]int{}
		for _, id := range arranged(t, list, FairByOperator) {
			got[of[id]]++
			left[of[id]]--
			for a := range left {
				for b := range left {
					if left[a] > 0 && left[b] > 0 && got[a]-got[b] > 1 {
						t.Fatalf("%s has %d, %s has %d", a, got[a], b, got[b])
					}
				}
			}
		}
	})
}

func TestBobBehindAlice(t *testing.T) {
	t.Parallel()
	p := Arrange([]Backlog{{Task: "bob", Weight: 2, Due: 2, Jobs: 4},
		{Task: "alice", Weight: 2, Due: 1, Jobs: 3000}}, FairByTask)
	var bob []int
	for place, ok := p.Next("bob"); ok; place, ok = p.Next("bob") {
		bob = append(bob, place)
	}
	if !slices.Equal(bob, []int{7, 5, 3, 1}) {
		t.Errorf("bob's jobs go to %v", bob)
	}
	if _, ok := p.Next("carol"); ok {
		t.Error("a task that was not counted has a place")
	}
}

func TestWeights(t *testing.T) {
	t.Parallel()
	p := Arrange([]Backlog{{Task: "high", Weight: PriorityHigh.Weight(), Jobs: 400},
		{Task: "normal", Weight: PriorityNormal.Weight(), Jobs: 400},
		{Task: "low", Weight: PriorityLow.Weight(), Jobs: 400}}, FairByTask)
	got := map[TaskID]int{}
	for _, id := range []TaskID{"high", "normal", "low"} {
		for place, ok := p.Next(id); ok; place, ok = p.Next(id) {
			if place < 350 {
				got[id]++
			}
		}
	}
	if want := (map[TaskID]int{"high": 200, "normal": 100, "low": 50}); !maps.Equal(got, want) {
		t.Errorf("the first 350 are %v, want %v", got, want)
	}
}

func TestLate(t *testing.T) {
	t.Parallel()
	now := MicrosOf(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))
	for late, want := range map[time.Duration]bool{0: false, 10 * time.Second: false,
		10*time.Second + time.Microsecond: true, -time.Second: false} {
		if got := DefaultOverload().Late(Grant{Due: now.Add(-late)}, now); got != want {
			t.Errorf("%s late: %t", late, got)
		}
	}
	if DefaultOverload().Late(Grant{}, now) {
		t.Error("a job that does not say since when it is due is late")
	}
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Priority{"": PriorityNormal, "low": PriorityLow, "HIGH": "", "x": ""} {
		if got, err := ParsePriority(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// BenchmarkArrange shows that a million jobs are cheap to arrange.
func BenchmarkArrange(b *testing.B) {
	list := []Backlog{{Task: "big", Weight: 2, Jobs: 600000}}
	for i := range 100000 {
		list = append(list, Backlog{Task: TaskID(fmt.Sprint(i)), Weight: 2, Due: Micros(i), Jobs: 4})
	}
	b.ReportAllocs()
	for b.Loop() {
		Arrange(list, FairByTask)
	}
}
