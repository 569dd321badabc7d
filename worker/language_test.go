package worker

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// reads makes the task of a test from a runbook's text.
func (s *stand) reads(text string, args ...map[string]string) {
	s.t.Helper()
	r, err := scripts.Parse("test.yaml", []byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := r.Bind(append(args, nil)[0], nil)
	if err != nil {
		s.t.Fatal(err)
	}
	action, err := json.Marshal(r.Freeze(v))
	if err != nil {
		s.t.Fatal(err)
	}
	s.q.specs[task1] = jobs.Spec{Inventory: "v7", Timeout: attemptTime, Retry: jobs.DefaultPolicy(), Action: action}
}

// says sets the answers of the hosts: a shell text that ends with a key gets the words of its
// value, and the exit code N if the value ends with "#N".
func (s *stand) says(answers map[string]string) {
	s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
		if _, err := works(ctx, time.Second); err != nil {
			return remote.Result{ExitCode: -1}, err
		}
		var r remote.Result
		text, code, _ := strings.Cut(answers[c.Shell], "#")
		if code != "" {
			r.ExitCode = int(code[0] - '0')
		}
		r.Output.Head = []byte(text)
		return r, nil
	}
}

// ran lists the shell texts so far.
func (s *stand) ran() string {
	return strings.ReplaceAll(strings.Join(s.hosts.started(), ","), "fw1: ", "")
}

const changing = `
name: changing
timeout: 20s
steps:
  - name: look
    check: look
    save: {state: {match: 'state=(\S+)'}}
  - name: change
    when: ["{{saved.state}} != done"]
    run: change
    classes: [{exit: 7, class: transient}, {exit: 8, class: operator, say: no disk}]
    retry: {tries: 3, delay: 9s}
    on_fail:
      - name: back
        when: ["{{saved.state}} == old"]
        run: back
      - name: proof
        check: proof
        outcome: rolled_back
  - name: tell
    run: tell {{saved.state}}
`

func TestAJobKeepsWhatItsStepsSave(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(changing)
		s.says(map[string]string{"look": "state=old\n"})
		got := s.one()
		if got.Outcome != jobs.Succeeded || s.ran() != "look,change,tell 'old'" {
			t.Errorf("%s: %+v", s.ran(), got)
		}
		var saved []string
		for _, c := range s.q.asked {
			saved = append(saved, c.Saved)
		}
		const kept = `{"saved":{"state":"old"}}`
		if diff := cmp.Diff([]string{kept, kept}, saved); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
	})
}

func TestAnotherWorkerContinuesWithTheSavedValues(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(changing)
		got := s.one(func(g *jobs.Grant) {
			g.Mode, g.Step, g.Attempt, g.Saved = jobs.ModeContinue, 2, 2, `{"saved":{"state":"it's"}}`
		})
		if got.Outcome != jobs.Succeeded || s.ran() != `tell 'it'\''s'` {
			t.Errorf("%s: %+v", s.ran(), got)
		}
	})
}

func TestTheTranscriptNamesASkippedStep(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(changing)
		s.says(map[string]string{"look": "state=done\n"})
		got := s.one()
		const want = "== step 1 of 3: look ==\nstate=done\n== step 2 of 3: change: skipped, " +
			"{{saved.state}} != done is not so: \"done\" ==\n== step 3 of 3: tell ==\n"
		if diff := cmp.Diff(want, string(got.Output)); got.Outcome != jobs.Succeeded || diff != "" {
			t.Errorf("%s: %s\n%s", s.ran(), got.Error, diff)
		}
	})
}

func TestAllStepsSkippedIsASuccess(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads("name: a\ntimeout: 20s\nsteps: [{name: b, run: ls, when: ['{{host.name}} == other']}]\n")
		got := s.one()
		if got.Outcome != jobs.Succeeded || s.ran() != "" || !strings.Contains(string(got.Output), "b: skipped") {
			t.Errorf("%s: %+v", s.ran(), got)
		}
	})
}

func TestOnFail(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers map[string]string
		ran     string
		want    string // outcome, class, exit, error
	}{
		{"brings back what was", map[string]string{"look": "state=old", "change": "oh#1"},
			"look,change,back,proof", "rolled_back user 1 step 2 (change): exit 1; the host said: \"oh\"; " +
				"its on_fail rolled it back"},
		{"skips a step", map[string]string{"look": "state=odd", "change": "#8"},
			"look,change,proof", "rolled_back operator 8 step 2 (change): no disk (exit 8); its on_fail rolled it back"},
		{"fails", map[string]string{"look": "state=old", "change": "oh#1", "back": "no way#2"},
			"look,change,back", "failed operator 1 step 2 (change): exit 1; the host said: \"oh\"; " +
				"its on_fail failed: step of on_fail (back): exit 2; the host said: \"no way\""},
		{"fails at its end", map[string]string{"look": "state=old", "change": "oh#1", "proof": "#2"},
			"look,change,back,proof", "failed operator 1 step 2 (change): exit 1; the host said: \"oh\"; " +
				"its on_fail failed: step of on_fail (proof): exit 2"},
		{"is not for other steps", map[string]string{"look": "state=old", "tell 'old'": "#3"},
			"look,change,tell 'old'", "failed user 3 step 3 (tell): exit 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads(changing)
				s.says(tt.answers)
				got := s.one()
				text := strings.Join([]string{string(got.Outcome), string(got.Class), string(rune('0' + *got.ExitCode)),
					got.Error}, " ")
				if diff := cmp.Diff(tt.want, text); diff != "" || s.ran() != tt.ran {
					t.Errorf("%s (-want +got):\n%s", s.ran(), diff)
				}
			})
		})
	}
}

// If a host was disturbed and its on_fail failed, no job of any task may disturb another member of
// the group.
func TestAnOnFailThatFailsFreezesTheGroup(t *testing.T) {
	for _, tt := range []struct {
		name, book, back string
		frozen           bool
	}{
		{"fails", "disruptive: true" + changing, "no way#2", true},
		{"brings back what was", "disruptive: true" + changing, "", false},
		{"disturbs nobody", changing, "no way#2", false},
		{"did not disturb", "disruptive: true" + strings.ReplaceAll(strings.ReplaceAll(changing, "run: change",
			"run: change\n    disruptive: false"), "run: back", "run: back\n        disruptive: false"), "no way#2", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads(tt.book)
				spec := s.q.specs[task1]
				spec.Disruptive = strings.HasPrefix(tt.book, "disruptive")
				s.q.specs[task1] = spec
				s.says(map[string]string{"look": "state=old", "change": "oh#1", "back": tt.back})
				if got := s.one(); got.KeepLock != tt.frozen || s.ran() != "look,change,back" && tt.back != "" {
					t.Errorf("%s: %s %s, frozen %t, want %t", s.ran(), got.Outcome, got.Error, got.KeepLock, tt.frozen)
				}
			})
		})
	}
}

func TestOnFailWithoutAnOutcomeEndsAsTheFailureDid(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(strings.Replace(changing, "        outcome: rolled_back\n", "", 1))
		s.says(map[string]string{"look": "state=old", "change": "oh#1"})
		if got := s.one(); got.Outcome != jobs.Failed || got.Class != jobs.ClassUser ||
			got.Error != "step 2 (change): exit 1; the host said: \"oh\"" || s.ran() != "look,change,back,proof" {
			t.Errorf("%s: %+v", s.ran(), got)
		}
	})
}

// Another worker continues an on_fail in its middle, and knows the failure.
func TestAnotherWorkerContinuesAnOnFail(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(changing)
		s.says(map[string]string{"look": "state=old", "change": "oh#1"})
		s.q.verdict = func(c jobs.Checkpoint) (jobs.Verdict, error) {
			if c.Step == 4 {
				return jobs.Stop, nil
			}
			return jobs.Go, nil
		}
		first := s.one()
		if first.Kind != jobs.KindWait || first.Step != 4 || first.Error != "stopped before step of on_fail (proof)" {
			t.Fatalf("%+v", first)
		}
		again := stand2(t, s)
		got := again.one(func(g *jobs.Grant) {
			g.Mode, g.Step, g.Attempt, g.Saved = jobs.ModeContinue, first.Step, 2, first.Saved
		})
		if got.Outcome != jobs.RolledBack || *got.ExitCode != 1 || again.ran() != "proof" {
			t.Errorf("%s: %+v", again.ran(), got)
		}
	})
}

// stand2 returns another worker with the same task, and a queue that allows everything.
func stand2(t *testing.T, s *stand) *stand {
	next := &stand{t: t, q: newQueue(t), hosts: newHosts(), cfg: s.cfg, orders: make(chan jobs.Order, 1),
		log: s.log, bootClock: bootClock{zero: s.zero}, times: s.times, done: make(chan struct{})}
	next.q.specs[task1] = s.q.specs[task1]
	next.q.gate = s.q.gate
	next.hosts.run, next.hosts.dial, next.hosts.door = s.hosts.run, s.hosts.dial, s.hosts.door
	return next
}

func TestAStepIsTriedAgainIfItsFailureIsTransient(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(changing)
		s.says(map[string]string{"look": "state=old", "change": "busy#7"})
		first := s.one()
		if first.Kind != jobs.KindWait || first.Delay != 9*time.Second || first.Step != 1 || first.Release ||
			first.Error != "step 2 (change): try 1 of 3: exit 7; the host said: \"busy\"" ||
			first.Saved != `{"again":1,"saved":{"state":"old"}}` {
			t.Fatalf("%+v", first)
		}
		second := stand2(t, s)
		var numbers []int
		second.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			numbers = append(numbers, c.Record.Step)
			return remote.Result{ExitCode: 7}, nil
		}
		fenced := func(g *jobs.Grant) {
			g.Host.Fence = fleet.FenceAuto
			g.Mode, g.Step, g.Attempt, g.Saved = jobs.ModeContinue, 1, 2, first.Saved
		}
		if got := second.one(fenced); got.Kind != jobs.KindWait || got.Saved != `{"again":2,"saved":{"state":"old"}}` {
			t.Errorf("%+v", got)
		}
		if len(numbers) != 1 || numbers[0] != 1001 {
			t.Errorf("steps for the host: %v, want another number than that of the first try", numbers)
		}
		third := stand2(t, s)
		got := third.one(func(g *jobs.Grant) {
			g.Mode, g.Step, g.Attempt, g.Saved = jobs.ModeContinue, 1, 3, `{"again":2,"saved":{"state":"old"}}`
		})
		const why = "step 2 (change): 3 tries, the last: exit 7; the host said: \"busy\";"
		if got.Outcome != jobs.RolledBack || !strings.HasPrefix(got.Error, why) {
			t.Errorf("%+v", got)
		}
	})
}

// A check changes nothing, so nobody need know how it ended.
func TestALostCheckIsDoneAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(changing)
		s.says(map[string]string{"look": "state=done"})
		got := s.one(func(g *jobs.Grant) { g.Mode, g.Attempt, g.Bound = jobs.ModeLost, 2, time.Hour })
		if got.Outcome != jobs.Succeeded || s.ran() != "look,tell 'done'" {
			t.Errorf("%s: %+v", s.ran(), got)
		}
	})
}

// The job ends cancelled once its worker learns of the cancel. If the worker released it, the queue
// would hand it out again at once, because it hands out lost jobs in any case. During a halt the
// worker releases the job, and the job waits for the end of the halt.
func TestALostCheckThatMayNotStartIsCancelledOrReleased(t *testing.T) {
	for note, want := range map[string]string{"bob: no": "end cancelled", "": "back"} {
		t.Run(want, func(t *testing.T) { lostCheckMayNotStart(t, note, want) })
	}
}

func lostCheckMayNotStart(t *testing.T, note, want string) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(changing)
		s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) { return jobs.Stop, nil }
		s.q.stops = func(ids []jobs.ID) (map[jobs.ID]string, error) {
			if note == "" {
				return nil, nil
			}
			return map[jobs.ID]string{ids[0]: note}, nil
		}
		got := s.one(func(g *jobs.Grant) { g.Mode, g.Attempt, g.Bound = jobs.ModeLost, 2, time.Hour })
		if inWords(got, false) != want || s.ran() != "" {
			t.Errorf("%s: %+v, want %s", s.ran(), got, want)
		}
	})
}

func TestACheckThatWasCutOffIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads("name: a\ntimeout: 20s\nsteps: [{name: b, check: ls}]\n")
		s.hosts.run = func(context.Context, fleet.Host, remote.Command) (remote.Result, error) {
			return remote.Result{ExitCode: -1}, fault(remote.KindLost, true, errAway)
		}
		if got := s.one(); inWords(got, false) != "retry 5s" {
			t.Errorf("%+v", got)
		}
	})
}

func TestACheckHasNoRecord(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads("name: a\ntimeout: 20s\nsteps: [{name: b, check: ls}]\n")
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			if c.Record != nil {
				t.Errorf("%+v", c.Record)
			}
			return remote.Result{ExitCode: 3}, nil
		}
		got := s.one(func(g *jobs.Grant) { g.Host.Fence = fleet.FenceRequired })
		if got.Outcome != jobs.Failed || got.Class != jobs.ClassUser || *got.ExitCode != 3 {
			t.Errorf("%+v", got)
		}
	})
}

func TestATimeoutRunsOnFail(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(changing)
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			r := remote.Result{Output: remote.Output{Head: []byte("state=old\n")}}
			if c.Shell == "change" {
				return r, fault(remote.KindTimeout, true, errAway)
			}
			return r, nil
		}
		if got := s.one(); got.Outcome != jobs.RolledBack || s.ran() != "look,change,back,proof" {
			t.Errorf("%s: %+v", s.ran(), got)
		}
	})
}

func TestOnFailDoesNotRunAfterAnUnknownEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(changing)
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			r := remote.Result{Output: remote.Output{Head: []byte("state=old\n")}}
			if c.Shell == "change" {
				return r, fault(remote.KindLost, true, errAway)
			}
			return r, nil
		}
		if got := s.one(); got.Outcome != jobs.Unknown || s.ran() != "look,change" {
			t.Errorf("%s: %+v", s.ran(), got)
		}
	})
}
