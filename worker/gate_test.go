package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// Gate is the answer of the test.
func (q *fakeQueue) Gate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer, error) {
	return q.answer(ctx, step, false)
}

func (q *fakeQueue) CloseGate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer, error) {
	return q.answer(ctx, step, true)
}

func (q *fakeQueue) answer(ctx context.Context, step int, late bool) (jobs.GateAnswer, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		q.t.Error("a call without a deadline")
	}
	<-time.After(time.Millisecond)
	if err := ctx.Err(); err != nil || q.gate == nil {
		return jobs.GateAnswer{}, err
	}
	return q.gate(step, late)
}

const gated = `
name: gated
timeout: 20s
disruptive: true
steps:
  - name: look
    check: look
    save: {ds: {lines: true}}
  - name: ds
    gate: {question: 'Publish {{saved.ds}}, attempt {{job.attempt}}', timeout: 2h, release: true}
    on_fail: [{name: undo, run: undo}]
  - name: tell
    run: tell
`

var by = map[jobs.GateWord]jobs.GateAnswer{
	jobs.GateOpen:   {Word: jobs.GateOpen, At: 1, Note: "opened by alice: it is there"},
	jobs.GateRefuse: {Word: jobs.GateRefuse, At: 1, Note: "refused by bob: wrong digest"},
	jobs.GateLate:   {Word: jobs.GateLate, At: 1, Note: "nobody opened it in time"},
}

func TestAGateWaitsForAPerson(t *testing.T) {
	const first = "0s wait 2h0m0s step 2 (ds): waits at the gate ds for a person: Publish > a 'b' > c , attempt 1"
	for _, tt := range []struct {
		name string
		word jobs.GateWord // "": nobody answers
		want string        // the result of the second attempt
		ran  string
		said string
	}{
		{"opened", jobs.GateOpen, "2h0m0s end succeeded ", "look tell",
			"== step 2 of 3: ds: opened by alice: it is there ==\n== step 3 of 3: tell ==\n"},
		{"refused", jobs.GateRefuse, "2h0m0s end failed operator step 2 (ds): refused by bob: wrong digest",
			"look undo", "== step 2 of 3: ds: refused by bob: wrong digest ==\n== on_fail of step 2: undo ==\n"},
		{"nobody", "", "2h0m0s end failed operator step 2 (ds): nobody opened the gate within 2h0m0s",
			"look undo", "== step 2 of 3: ds: nobody opened the gate within 2h0m0s ==\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads(gated)
				l, asked := newLife(t, s), 0
				s.q.gate = func(step int, late bool) (jobs.GateAnswer, error) {
					asked++
					switch {
					case step != 1, late && asked < 3:
						t.Errorf("asked for step %d, late: %t", step, late)
					case late:
						return by[jobs.GateLate], nil
					case asked > 1:
						return by[tt.word], nil
					}
					return jobs.GateAnswer{}, nil
				}
				s.hosts.run = func(context.Context, fleet.Host, remote.Command) (remote.Result, error) {
					return remote.Result{Output: remote.Output{Head: []byte("a 'b'\nc\n")}}, nil
				}
				l.live(20)
				if diff := cmp.Diff([]string{first, tt.want}, l.log); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if ran := strings.Join(l.ran, " "); ran != tt.ran || l.held > 5*time.Second {
					t.Errorf("ran %s, want %s; workers were held for %s", ran, tt.ran, l.held)
				}
				if !strings.Contains(l.said, "== step 2 of 3: ds: a person is asked ==\nPublish \n> a 'b'\n> c\n, attempt 1\n") ||
					!strings.Contains(l.said, tt.said) {
					t.Errorf("said\n%s", l.said)
				}
			})
		})
	}
}

// taken makes a grant one of a job at its gate.
func taken(mode jobs.Mode, saved string) func(*jobs.Grant) {
	return func(g *jobs.Grant) { g.Mode, g.Step, g.Attempt, g.Saved, g.Bound = mode, 1, 2, saved, time.Minute }
}

// stood returns the memory of a job that has waited at its gate for an hour, and may wait for
// another one.
func stood() string {
	now := jobs.MicrosOf(time.Now())
	return fmt.Sprintf(`{"probe":{"since":%d,"until":%d,"saying":"s","gate":{"name":"ds","question":"Well?"}},`+
		`"saved":{"ds":"a"}}`, now.Add(-time.Hour), now.Add(time.Hour))
}

func TestTheAnswerAtAGateIsObeyed(t *testing.T) {
	token := func(g *jobs.Grant) { g.Token = jobs.Token(jobs.MicrosOf(time.Now())) }
	for _, tt := range []struct {
		name string
		mode jobs.Mode
		word jobs.GateWord
		want string
	}{
		{"is waited for on", jobs.ModeContinue, "", "wait 1h0m0s step 2 (ds): s"},
		{"whose worker vanished waits on", jobs.ModeLost, "", "wait 1h0m0s step 2 (ds): s"},
		{"whose worker vanished goes through", jobs.ModeLost, jobs.GateOpen, "end succeeded "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads(gated)
				s.q.gate = func(int, bool) (jobs.GateAnswer, error) { return by[tt.word], nil }
				r := s.one(taken(tt.mode, stood()), token)
				r.Delay = r.Delay.Round(time.Second)
				if got := inWords(r, false) + " " + r.Error; got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				if r.Kind == jobs.KindWait && (!r.Release || r.Step != 1 || jobs.GateOf(1, r.Saved).Question != "Well?") {
					t.Errorf("%+v", r)
				}
				if tt.word == "" && len(s.hosts.started()) > 0 {
					t.Error("somebody went to the host to ask a person")
				}
			})
		})
	}
}

// The worker asks again until the queue answers, and obeys a cancel meanwhile.
func TestAGateOutlivesAQueueThatIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(gated)
		n := 0
		s.q.gate = func(int, bool) (jobs.GateAnswer, error) {
			if n++; n < 4 {
				return jobs.GateAnswer{}, errAway
			}
			return by[jobs.GateOpen], nil
		}
		if r := s.one(taken(jobs.ModeContinue, stood())); r.Outcome != jobs.Succeeded || n != 4 {
			t.Errorf("%+v after %d calls", r, n)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *stand) {
			s.reads(gated)
			s.q.gate = func(int, bool) (jobs.GateAnswer, error) { return jobs.GateAnswer{}, errAway }
			s.q.stops = func(ids []jobs.ID) (map[jobs.ID]string, error) {
				return map[jobs.ID]string{ids[0]: "bob: no"}, nil
			}
			if r := s.one(taken(jobs.ModeContinue, stood())); r.Outcome != jobs.Cancelled ||
				!strings.Contains(r.Error, "bob: no; stopped before step 2 (ds)") {
				t.Errorf("%+v", r)
			}
		})
	})
}

// A dry run shows the question of the gate, with the values that its steps saved.
func TestADryRunAsksNobody(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(gated)
		spec := s.q.specs[task1]
		spec.Action = dryOf(t, spec.Action)
		s.q.specs[task1] = spec
		s.q.gate = func(int, bool) (jobs.GateAnswer, error) {
			t.Error("a person is asked in a dry run")
			return jobs.GateAnswer{}, nil
		}
		s.says(map[string]string{"look": "ds1"})
		r := s.one()
		if r.Outcome != jobs.Succeeded || !strings.Contains(string(r.Output),
			"== step 2 of 2: ds: a dry run, so no person is asked ==\nPublish \"ds1\", attempt 1\n") {
			t.Errorf("%+v\n%s", r, r.Output)
		}
	})
}

func dryOf(t *testing.T, action json.RawMessage) json.RawMessage {
	t.Helper()
	var f scripts.Frozen
	if err := json.Unmarshal(action, &f); err != nil {
		t.Fatal(err)
	}
	f, err := f.Only(scripts.OnlyCheck)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
