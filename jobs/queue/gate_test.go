package queue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
)

// standing returns the result of a worker whose job waits at a gate, step 1, for an hour.
func standing(g jobs.Grant) jobs.Result {
	now := jobs.MicrosOf(time.Now())
	return jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindWait, Delay: time.Hour, Step: 1,
		Saved: fmt.Sprintf(`{"probe":{"since":%d,"until":%d,"saying":"s","gate":{"name":"ds","question":"Well?"}}}`,
			now, now.Add(time.Hour))}
}

// gate returns a job and one of its steps, often the one at which it is.
func (m *walker) gate(t *rapid.T) (object string, step int64) {
	id := m.jobID(t)
	if j := m.zone.Jobs[id]; j != nil && rapid.Bool().Draw(t, "where it stands") {
		return string(id), int64(j.Step)
	}
	return string(id), int64(rapid.IntRange(0, 2).Draw(t, "step"))
}

var opened = jobs.GateAnswer{Word: jobs.GateOpen, Note: "opened by alice: it is"}

func answer(t *testing.T, q *queuetest.Queue, id jobs.TaskID, a jobs.GateAnswer, hosts ...string) jobs.Answers {
	t.Helper()
	out, err := q.AnswerGates(t.Context(), id, hosts, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A person answers, and the job continues at once; a later answer changes nothing.
func TestAGateIsAnsweredOnce(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 3)
		r := step(t, q, "1", 2)
		a, b := r.Jobs[0], r.Jobs[1]
		step(t, q, "1", 0, standing(a), standing(b))
		if got := drain(t, q, "1", 5); len(got) != 1 {
			t.Fatalf("handed out %v while two stand at a gate", got)
		}
		j, err := q.Job(t.Context(), a.Job)
		if err != nil || j.State != jobs.Waiting || j.Gate == nil || j.Gate.Step != 1 || j.Gate.Name != "ds" ||
			j.Gate.Question != "Well?" || j.Gate.Until.Sub(j.Gate.Since.Time) != time.Hour || j.Gate.Answer != "" {
			t.Fatalf("%+v, %+v, %v", j, j.Gate, err)
		}
		if g, err := q.Gate(t.Context(), zone, a.Job, 1); err != nil || g.Word != "" {
			t.Fatalf("nobody has answered: %+v, %v", g, err)
		}

		did := answer(t, q, id, opened, a.Job.Host())
		want := jobs.Answers{Task: id, Elsewhere: []jobs.Elsewhere{}, Stand: []jobs.ID{b.Job}, Rest: 1,
			Answered: []jobs.Answered{{Job: a.Job, Step: 1, Name: "ds", Word: jobs.GateOpen, Note: opened.Note}}}
		if diff := cmp.Diff(want, did); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		refused := jobs.GateAnswer{Word: jobs.GateRefuse, Note: "refused by bob: no"}
		want.Answered[0].Already = true
		if diff := cmp.Diff(want, answer(t, q, id, refused, a.Job.Host())); diff != "" {
			t.Errorf("the first answer counts: -want +got:\n%s", diff)
		}
		if j, _ := q.Job(t.Context(), a.Job); j.Gate == nil || j.Gate.Answer != opened.Note {
			t.Errorf("%+v", j.Gate)
		}
		g := one(t, step(t, q, "1", 5))
		if g.Job != a.Job || g.Mode != jobs.ModeContinue || g.Step != 1 ||
			g.Due > jobs.MicrosOf(time.Now().Add(time.Minute)) {
			t.Errorf("%+v", g)
		}
		if got, err := q.Gate(t.Context(), zone, a.Job, 1); err != nil || got.Word != jobs.GateOpen ||
			got.Note != opened.Note || got.At == 0 {
			t.Errorf("%+v, %v", got, err)
		}
		// The job has passed the gate and ended: the answer is reported all the same.
		step(t, q, "1", 0, jobs.Result{Job: a.Job, Token: g.Token, Kind: jobs.KindEnd, Outcome: jobs.Succeeded})
		want.Answered[0].Name = ""
		if diff := cmp.Diff(want, answer(t, q, id, opened, a.Job.Host())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		// An answer for a whole task opens all gates at which its jobs wait.
		if did := answer(t, q, id, refused); len(did.Answered) != 1 || did.Answered[0].Job != b.Job ||
			did.Answered[0].Word != jobs.GateRefuse || did.Rest != 1 || len(did.Stand) != 0 {
			t.Errorf("%+v", did)
		}
	})
}

// An answer counts even if it comes while a worker has the job and will soon report that it waits.
func TestAnAnswerWhileTheWorkerRegistersIsNotLost(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		if did := answer(t, q, id, opened, g.Job.Host()); len(did.Answered) != 0 || len(did.Elsewhere) != 1 ||
			did.Elsewhere[0].State != jobs.Running {
			t.Fatalf("it has not come to its gate: %+v", did)
		}
		r := standing(g)
		r.Delay = 0 // it looks again at once
		step(t, q, "1", 0, r)
		if g = one(t, step(t, q, "1", 1)); g.Step != 1 {
			t.Fatalf("%+v", g)
		}
		if did := answer(t, q, id, opened, g.Job.Host()); len(did.Answered) != 1 || did.Answered[0].Already {
			t.Fatalf("%+v", did)
		}
		step(t, q, "1", 0, standing(g))
		if again := one(t, step(t, q, "1", 1)); again.Job != g.Job {
			t.Errorf("%+v", again)
		}
	})
}

// If a person and a worker answer at the same time, one of them wins, and both learn which.
func TestAGateIsOpenedOrTooLate(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 2)
		for n, openedFirst := range []bool{true, false} {
			g := one(t, step(t, q, "1", 1))
			r := standing(g)
			r.Delay = 0
			step(t, q, "1", 0, r)
			g = one(t, step(t, q, "1", 1))
			if openedFirst {
				answer(t, q, id, opened, g.Job.Host())
			}
			late, err := q.CloseGate(t.Context(), zone, g.Job, 1)
			if err != nil || (late.Word == jobs.GateOpen) != openedFirst {
				t.Errorf("%d: %+v, %v", n, late, err)
			}
			did := answer(t, q, id, opened, g.Job.Host())
			if len(did.Answered) != 1 || !did.Answered[0].Already || did.Answered[0].Word != late.Word {
				t.Errorf("%d: %+v", n, did)
			}
			step(t, q, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd, Outcome: jobs.Failed})
		}
	})
}

// An answer that was given while the job was put aside holds after its return.
func TestAnAnswerOutlivesAPause(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		step(t, q, "1", 0, standing(g))
		if _, err := q.Pause(t.Context(), id, "bob: lunch"); err != nil {
			t.Fatal(err)
		}
		if did := answer(t, q, id, opened); len(did.Answered) != 1 {
			t.Fatalf("%+v", did)
		}
		if got := drain(t, q, "1", 2); len(got) != 0 {
			t.Fatalf("a paused job was handed out: %v", got)
		}
		if _, err := q.Resume(t.Context(), id, "bob: back"); err != nil {
			t.Fatal(err)
		}
		if g := one(t, step(t, q, "1", 1)); g.Step != 1 {
			t.Errorf("%+v", g)
		}
		if got, err := q.Gate(t.Context(), zone, g.Job, 1); err != nil || got.Word != jobs.GateOpen {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := q.AnswerGates(t.Context(), id, []string{"nobody"}, opened, nil); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("a host without a job: %v", err)
		}
		if _, err := q.AnswerGates(t.Context(), "0000000009", nil, opened, nil); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("a task that is not there: %v", err)
		}
	})
}
