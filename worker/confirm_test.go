package worker

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

const swapping = `
name: swapping
disruptive: true
timeout: 20s
steps:
  - name: swap
    confirm: {guard: g, apply: a, rollback: r, prove: p, keep: k, within: 1m}
    classes: [{exit: 9, class: operator, say: nine}]
    on_fail: [{name: undo, run: undo}]
  - name: tell
    run: tell
`

// swapper is a host that makes changes like confirm.sh.
type swapper struct {
	state   string    // none, armed, confirmed, rolledback
	armed   time.Time // the time of arm
	more    string    // why the change was rolled back
	proof   func(n int) int
	apply   int    // exit code of
	guard   int    // likewise
	keep    int    // likewise
	roll    int    // likewise
	cut     string // the verb whose answer is lost after it was done
	locked  bool   // nobody can log in while the change is armed
	gone    bool   // nobody can log in any more after arm
	forgets bool   // its folder is gone after arm
	proved  int
	verbs   []string
	conns   int
}

func (h *swapper) tick() {
	if h.state == "armed" && time.Since(h.armed) >= time.Minute {
		h.state = "rolledback"
	}
}

func (h *swapper) dial(context.Context, fleet.Host) error {
	h.tick()
	h.conns++
	if h.locked && h.state == "armed" || h.gone && !h.armed.IsZero() {
		return fault(remote.KindUnreachable, false, errAway)
	}
	return nil
}

func (h *swapper) run(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
	h.tick()
	_, verb, found := strings.Cut(c.Shell, "\nverb=")
	if !found {
		h.verbs = append(h.verbs, c.Shell)
		return remote.Result{}, nil
	}
	verb, _, _ = strings.Cut(verb, "\n")
	select {
	case <-c.Stop:
		return remote.Result{ExitCode: -1}, fault(remote.KindStopped, true, errAway)
	default:
	}
	h.verbs = append(h.verbs, verb)
	said := h.do(verb)
	if h.cut == verb || h.locked && verb == "arm" {
		h.cut = ""
		return remote.Result{ExitCode: -1}, fault(remote.KindLost, true, errAway)
	}
	return remote.Result{Output: remote.Output{Head: []byte("words of " + verb + "\nmuster-confirm: " + said + "\n")}}, nil
}

func (h *swapper) do(verb string) string {
	left := max(0, int((time.Minute-time.Since(h.armed))/time.Second))
	switch {
	case h.forgets:
		return "none"
	case verb == "arm" && h.state == "" && h.guard != 0:
		return fmt.Sprintf("none guard %d", h.guard)
	case verb == "arm" && h.state == "":
		h.state, h.armed, left = "armed", time.Now(), 60
		if h.apply != 0 {
			h.state, h.more = "rolledback", fmt.Sprintf("apply %d", h.apply)
		}
	case verb == "prove" && h.state == "armed":
		code := 0
		if h.proved++; h.proof != nil {
			code = h.proof(h.proved)
		}
		return fmt.Sprintf("proof %d %d", code, left)
	case verb == "confirm" && h.state == "armed":
		h.state = "confirmed"
	case verb == "back" && h.state == "armed":
		h.state = "rolledback"
	}
	switch h.state {
	case "":
		return "none"
	case "armed":
		return fmt.Sprintf("armed %d", left)
	case "confirmed":
		if verb == "confirm" {
			return fmt.Sprintf("confirmed %d", h.keep)
		}
		return "confirmed 0"
	}
	return fmt.Sprintf("rolledback %d %s", h.roll, h.more)
}

func codes(list ...int) func(int) int {
	return func(n int) int { return list[min(n, len(list))-1] }
}

func TestChangesAreProvenAndConfirmed(t *testing.T) {
	for _, tt := range []struct {
		name string
		host swapper
		lost map[int]bool
		want string // the result
		ran  string
	}{
		{"all is well", swapper{}, nil, "succeeded", "arm prove confirm tell"},
		{"proof takes a while", swapper{proof: codes(75, 75, 0)}, nil, "succeeded", "arm prove prove prove confirm tell"},
		{"the proof fails", swapper{proof: codes(9)}, nil,
			"rolled_back operator step 1 (swap): proof: nine (exit 9); the host said: \"words of prove\"; the host took it back",
			"arm prove back"},
		{"the proof never comes", swapper{proof: codes(75)}, nil,
			"rolled_back user step 1 (swap): not proven yet; the host said: \"words of prove\"; the host took it back",
			"arm " + strings.Repeat("prove ", 12) + "prove"},
		{"it locks us out", swapper{locked: true}, nil,
			"rolled_back user step 1 (swap): connect 127.0.0.1:22: connection refused; the host took it back",
			"arm prove"},
		{"it is gone for good", swapper{gone: true, cut: "arm"}, nil,
			"unknown operator keep step 1 (swap): it is not known whether the host took the change back: " +
				"connect 127.0.0.1:22: connection refused", "arm"},
		{"it is forgotten while it is made", swapper{forgets: true}, nil,
			"unknown operator keep step 1 (swap): the host knows nothing of the change any more", "arm"},
		{"the guard fails", swapper{guard: 3}, nil,
			"failed user step 1 (swap): guard: exit 3; the host said: \"words of arm\"", "arm undo"},
		{"apply fails", swapper{apply: 9}, nil,
			"rolled_back operator step 1 (swap): apply: nine (exit 9); the host said: \"words of arm\"; " +
				"the host took it back", "arm"},
		{"the rollback fails", swapper{proof: codes(1), roll: 2}, nil,
			"failed operator keep step 1 (swap): the rollback failed: proof: exit 1; the host said: \"words of prove\"" +
				"; the host said: \"words of back\"",
			"arm prove back undo"},
		{"keep fails", swapper{keep: 4}, nil,
			"failed operator step 1 (swap): confirmed, but keep failed with exit 4: it does not outlive a reboot; " +
				"the host said: \"words of confirm\"", "arm prove confirm undo"},
		{"the answer of arm is lost", swapper{cut: "arm"}, nil, "succeeded", "arm prove confirm tell"},
		{"the answer of prove is lost", swapper{cut: "prove"}, nil, "succeeded", "arm prove prove confirm tell"},
		{"the answer of confirm is lost", swapper{cut: "confirm"}, nil, "succeeded",
			"arm prove confirm prove confirm tell"},
		{"the answer of back is lost", swapper{proof: codes(1), cut: "back"}, nil,
			"rolled_back user step 1 (swap): proof: exit 1; the host said: \"words of prove\"; the host took it back",
			"arm prove back prove"},
		{"the worker is lost with arm", swapper{cut: "prove"}, map[int]bool{1: true}, "succeeded",
			"arm prove prove confirm tell"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads(swapping)
				spec := s.q.specs[task1]
				spec.Disruptive = true
				s.q.specs[task1] = spec
				h := tt.host
				s.hosts.dial, s.hosts.run = h.dial, h.run
				l := newLife(t, s)
				l.lost = tt.lost
				r := l.live(60)
				text := strings.TrimSpace(strings.TrimPrefix(inWords(r, false), "end ") + " " + r.Error)
				if text != tt.want || strings.Join(h.verbs, " ") != tt.ran {
					t.Errorf("got  %s, ran %s\nwant %s, ran %s\n%s", text, strings.Join(h.verbs, " "), tt.want, tt.ran,
						strings.Join(l.log, "\n"))
				}
				if r.Outcome == jobs.Succeeded != (h.state == "confirmed") && h.keep == 0 {
					t.Errorf("muster says %s, the host %s", r.Outcome, h.state)
				}
				if l.held > 10*time.Second {
					t.Errorf("workers were held for %s", l.held)
				}
			})
		})
	}
}

// Only a new login proves that the change still lets muster log in.
func TestTheProofComesOverANewConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(swapping)
		var h swapper
		s.hosts.dial = h.dial
		s.hosts.run = func(ctx context.Context, host fleet.Host, c remote.Command) (remote.Result, error) {
			if strings.Contains(c.Shell, "\nverb=prove\n") && h.conns != 2 {
				t.Errorf("proven over connection %d", h.conns)
			}
			return h.run(ctx, host, c)
		}
		if got := s.one(); got.Outcome != jobs.Succeeded {
			t.Errorf("%+v", got)
		}
	})
}

func TestACancelledChangeIsRolledBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(swapping)
		h := swapper{proof: codes(75)}
		s.hosts.dial, s.hosts.run = h.dial, h.run
		var armed atomic.Bool
		s.q.stops = func(ids []jobs.ID) (map[jobs.ID]string, error) {
			if !armed.Load() {
				return nil, nil
			}
			return map[jobs.ID]string{ids[0]: "alice: no"}, nil
		}
		s.hosts.run = func(ctx context.Context, host fleet.Host, c remote.Command) (remote.Result, error) {
			r, err := h.run(ctx, host, c)
			if strings.Contains(c.Shell, "\nverb=arm\n") {
				armed.Store(true)
				<-c.Stop
			}
			return r, err
		}
		got := s.one()
		if got.Outcome != jobs.RolledBack || got.Error != "alice: no; the host took it back" || h.state != "rolledback" {
			t.Errorf("%+v, host %s", got, h.state)
		}
	})
}

func TestAHostWithRecordsIsAskedAboutItsArm(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(swapping)
		var h swapper
		s.hosts.dial = h.dial
		var records []string
		s.hosts.run = func(ctx context.Context, host fleet.Host, c remote.Command) (remote.Result, error) {
			if c.Record != nil {
				records = append(records, fmt.Sprintf("%d again %t twice %t", c.Record.Step, c.Record.Again, c.Record.Twice))
			}
			return h.run(ctx, host, c)
		}
		got := s.one(func(g *jobs.Grant) {
			g.Host.Fence, g.Mode, g.Attempt, g.Bound = fleet.FenceAuto, jobs.ModeLost, 2, time.Minute
		})
		want := "0 again true twice false, 200000 again true twice true, 1 again false twice false"
		if text := strings.Join(records, ", "); got.Outcome != jobs.Succeeded || text != want {
			t.Errorf("%s\n%+v", text, got)
		}
		if ran := strings.Join(h.verbs, " "); ran != "prove arm prove confirm tell" {
			t.Errorf("ran %s", ran)
		}
	})
}

// On a host without records the older arm may still run, so the worker waits until it must be over.
func TestAHostWithoutRecordsGetsItsTimeBeforeASecondArm(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(swapping)
		var h swapper
		s.hosts.dial, s.hosts.run = h.dial, h.run
		l := newLife(t, s)
		l.grant.Mode, l.grant.Bound = jobs.ModeLost, 5*time.Minute
		got := l.live(10)
		if got.Outcome != jobs.Succeeded || len(l.log) != 2 || !strings.HasPrefix(l.log[1], "5m") {
			t.Errorf("%+v\n%s", got, strings.Join(l.log, "\n"))
		}
	})
}
