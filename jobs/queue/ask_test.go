package queue_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
)

// askFor orders to ask the host of a job, and takes the order as a worker does.
func askFor(t *testing.T, q *queuetest.Queue, id jobs.ID) jobs.Grant {
	t.Helper()
	did, err := q.OrderAsk(t.Context(), id, "alice: INC-7")
	if err != nil || did.Already || did.Known != "" {
		t.Fatalf("ordered: %+v, %v", did, err)
	}
	g := one(t, step(t, q, "2", 1))
	if !g.Mode.Looks() || g.Job != id {
		t.Fatalf("handed out: %+v", g)
	}
	return g
}

// reading returns the evidence of a host about a job, as the worker with the order g reports it.
func reading(g jobs.Grant, began jobs.Token, o jobs.Outcome) jobs.Reading {
	r := jobs.Reading{Job: g.Job, Token: g.Token, Answer: jobs.AnswerSettled, Words: string(o), Began: began, Over: true}
	code := 0
	r.End = &jobs.Result{Token: g.Token, Outcome: o, ExitCode: &code,
		Said: jobs.Said{Output: []byte("it says\n")}}
	return r
}

// A job that ended unknown is settled by the evidence of its host, once, and all counters of ends
// agree; its host is free, its group stays frozen, and nothing of it runs again.
func TestAnUnknownEndIsSettledByItsHost(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		s := spec()
		s.Disruptive = true
		task := submit(t, q, s, 2)
		g := one(t, step(t, q, "1", 1))
		res := ended(g, jobs.Unknown)
		res.KeepLock, res.Error, res.Class = true, "the connection is gone", jobs.ClassOperator
		step(t, q, "1", 0, res)

		first, err := q.OrderAsk(t.Context(), g.Job, "alice: INC-7")
		again, err2 := q.OrderAsk(t.Context(), g.Job, "bob: too")
		if err != nil || err2 != nil || first.Already || !again.Already {
			t.Fatalf("ordered: %+v, %+v, %v, %v", first, again, err, err2)
		}
		var look jobs.Grant
		for _, other := range step(t, q, "2", 9).Jobs {
			if other.Mode.Looks() {
				look = other
			}
		}
		if look.Mode != jobs.ModeAsk || look.Job != g.Job || look.Token <= g.Token {
			t.Fatalf("handed out: %+v", look)
		}
		j, err := q.Job(t.Context(), g.Job)
		if err != nil || j.Ask == nil || j.Ask.Note != "alice: INC-7" || !j.Ask.Answered.IsZero() {
			t.Fatalf("before the answer: %+v, %v", j.Ask, err)
		}
		if err := q.AnswerAsk(t.Context(), zone, reading(look, g.Token, jobs.Succeeded)); err != nil {
			t.Fatal(err)
		}
		if err := q.AnswerAsk(t.Context(), zone, reading(look, g.Token, jobs.Failed)); !errors.Is(err, queue.ErrStale) {
			t.Errorf("a second answer: %v", err)
		}
		j, err = q.Job(t.Context(), g.Job)
		if err != nil || j.Outcome != jobs.Succeeded || j.Class != "" || j.Error != "" || j.ExitCode == nil ||
			*j.ExitCode != 0 || j.Attempt != 1 || j.Ask.Answer != jobs.AnswerSettled || j.Ask.Answered.IsZero() {
			t.Fatalf("settled: %+v, %+v, %v", j, j.Ask, err)
		}
		for _, word := range []string{"alice: INC-7", "it had ended unknown: the connection is gone"} {
			if !strings.Contains(j.Note, word) {
				t.Errorf("it does not say %q: %s", word, j.Note)
			}
		}
		said, err := q.Output(t.Context(), g.Job)
		if err != nil || len(said) != 1 || string(said[0].Data) != "it says\n" {
			t.Errorf("output %+v, %v", said, err)
		}
		info, err := q.Task(t.Context(), task)
		if err != nil || info.Outcomes[jobs.Succeeded] != 1 || info.Outcomes[jobs.Unknown] != 0 {
			t.Errorf("task %+v, %v", info.Outcomes, err)
		}
		if did, err := q.ReleaseHost(t.Context(), zone, g.Job.Host(), "bob: free"); err != nil || !did.Already {
			t.Errorf("its host is locked: %+v, %v", did, err)
		}
		known, err := q.OrderAsk(t.Context(), g.Job, "alice: once more")
		if err != nil || known.Known != jobs.Succeeded {
			t.Errorf("asked once more: %+v, %v", known, err)
		}
		events(t, q, g.Job, "take", "end", "ask", "settle", "asked")
	})
}

// events compares the events of a job with a list.
func events(t *testing.T, q *queuetest.Queue, id jobs.ID, want ...string) {
	t.Helper()
	list, _, err := q.Events(t.Context(), zone, "0", 1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		if e.Object == string(id) {
			got = append(got, e.Event)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// Evidence that proves nothing settles nothing: the answer is kept, the job stays unknown, and its
// host stays locked unless the host says that nothing runs there.
func TestWhatIsNoProofSettlesNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		for _, c := range []struct {
			name  string
			told  func(g, look jobs.Grant) jobs.Reading
			want  jobs.Answer
			freed bool
		}{
			{"it runs", func(_, look jobs.Grant) jobs.Reading {
				return jobs.Reading{Job: look.Job, Token: look.Token, Answer: jobs.AnswerRunning, Words: "for 5 min"}
			}, jobs.AnswerRunning, false},
			{"it was killed", func(g, look jobs.Grant) jobs.Reading {
				return jobs.Reading{Job: look.Job, Token: look.Token, Answer: jobs.AnswerGone, Began: g.Token, Over: true}
			}, jobs.AnswerGone, true},
			{"a later attempt", func(g, look jobs.Grant) jobs.Reading {
				return reading(look, g.Token+1, jobs.Succeeded)
			}, jobs.AnswerLater, false},
		} {
			submit(t, q, spec(), 1)
			g := one(t, step(t, q, "1", 1))
			res := ended(g, jobs.Unknown)
			res.KeepLock = true
			step(t, q, "1", 0, res)
			look := askFor(t, q, g.Job)
			if err := q.AnswerAsk(t.Context(), zone, c.told(g, look)); err != nil {
				t.Fatal(err)
			}
			j, err := q.Job(t.Context(), g.Job)
			if err != nil || j.Outcome != jobs.Unknown || j.Ask == nil || j.Ask.Answer != c.want {
				t.Errorf("%s: %+v, %+v, %v", c.name, j, j.Ask, err)
			}
			did, err := q.ReleaseHost(t.Context(), zone, g.Job.Host(), "bob: free")
			if err != nil || did.Already != c.freed {
				t.Errorf("%s: released %+v, %v", c.name, did, err)
			}
			if r := step(t, q, "3", 9); len(r.Jobs) > 0 {
				t.Errorf("%s: %+v are handed out", c.name, r.Jobs)
			}
		}
	})
}

// Only hosts of jobs that ended unknown are asked; while another job has the host nothing is
// written there.
func TestOnlyWhatEndedUnknownIsAskedAbout(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		if _, err := q.OrderAsk(t.Context(), g.Job, "alice: why"); !errors.Is(err, queue.ErrOpen) {
			t.Errorf("one that runs: %v", err)
		}
		nobody := jobs.NewID(g.Job.Task(), "nobody")
		if _, err := q.OrderAsk(t.Context(), nobody, "alice: why"); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("one that is not there: %v", err)
		}
		step(t, q, "1", 0, ended(g, jobs.Unknown)) // its host is free
		submit(t, q, spec(), 1)
		one(t, step(t, q, "1", 1)) // and another job has it
		if look := askFor(t, q, g.Job); look.Mode != jobs.ModePeek {
			t.Errorf("handed out: %+v", look)
		}
	})
}

// An order whose workers vanish is handed out again, but not for ever.
func TestAnOrderThatNobodyAnswersComesToAnEnd(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		if w.pass == nil {
			return
		}
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		step(t, q, "1", 0, ended(g, jobs.Unknown))
		askFor(t, q, g.Job)
		for _, more := range []int{1, 1, 0} {
			w.pass(70 * time.Second)
			if r := step(t, q, "1", 1); len(r.Jobs) != more {
				t.Fatalf("handed out: %+v, want %d", r, more)
			}
		}
		if j := info(t, q, g.Job); j.Outcome != jobs.Unknown || j.Ask.Answer != jobs.AnswerNobody {
			t.Errorf("%+v", j.Ask)
		}
	})
}
