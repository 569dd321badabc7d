package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/secrets"
	"muster/worker/verdict"
	"muster/worker/warden"
)

// refers makes the task of a test from a runbook with one secret, to which it has a reference.
func (s *stand) refers(args map[string]string) {
	s.t.Helper()
	r, err := scripts.Parse("test.yaml", []byte(telling))
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := r.BindGiven(scripts.Given{Args: args})
	if err != nil {
		s.t.Fatal(err)
	}
	action, err := json.Marshal(r.Freeze(v))
	if err != nil {
		s.t.Fatal(err)
	}
	s.q.specs[task1] = jobs.Spec{Inventory: "v7", Timeout: attemptTime, Retry: jobs.DefaultPolicy(), Action: action}
}

// sayso answers for the orders of all jobs: holds says why they do not hold, kin why no marker may be
// written on another host.
type sayso struct {
	holds error
	in    bool // another member of the group is a host of the task
	kin   error
}

func (sayso) Check(context.Context, string, jobs.Grant, jobs.Spec) error { return nil }

func (s sayso) Holds(context.Context, string, jobs.Grant, jobs.Spec) error { return s.holds }

func (s sayso) Kin(context.Context, string, jobs.ID, fleet.Host) (bool, error) { return s.in, s.kin }

func (sayso) Answered(context.Context, string, jobs.ID, int, jobs.GateAnswer) error { return nil }

func (sayso) Seal(_ jobs.ID, _ int, saved string) string { return saved }

func TestASecretOfAReferenceReachesItsStepOnly(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.refers(map[string]string{"pw": "ref:vault:kv/{{host.name}}#pw"})
		s.trust = sayso{}
		var asked []string
		s.fetch = func(_ context.Context, a secrets.Ask) (seal.Text, error) {
			asked = append(asked, fmt.Sprint(a.Reference, " ", a.Runbook, " ", a.Host.Name, " ", a.Signed))
			return swordfish, nil
		}
		inputs := ""
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (r remote.Result, err error) {
			if c.Stdin != nil {
				all, _ := io.ReadAll(c.Stdin)
				inputs += string(all)
			}
			r.Output.Head = []byte("it is " + swordfish + "\n")
			return r, err
		}
		got := s.one()
		if len(asked) != 1 || asked[0] != "vault:kv/{{host.name}}#pw telling fw1 <nil>" {
			t.Errorf("asked %q", asked)
		}
		if !strings.Contains(inputs, "='"+swordfish+"'\n") || got.Outcome != jobs.Succeeded {
			t.Errorf("stdin %q, result %+v", inputs, got)
		}
		if text, _ := json.Marshal([]any{got, s.q.asked, s.q.tries}); strings.Contains(string(text), "sword") {
			t.Errorf("the queue was told %s", text)
		}
	})
}

func TestAJobWithoutItsSecretFailsOrWaitsAndTouchesNothing(t *testing.T) {
	away := &secrets.AwayError{Why: errors.New("Vault at X does not answer")}
	wrong := errors.New("no rule allows it")
	doubt := &warden.Doubt{Why: errors.New("nobody has signed")}
	type fetch = func(context.Context, secrets.Ask) (seal.Text, error)
	answers := func(text seal.Text, err error) fetch {
		return func(context.Context, secrets.Ask) (seal.Text, error) { return text, err }
	}
	both := func(_ context.Context, a secrets.Ask) (seal.Text, error) {
		if strings.HasPrefix(a.Reference, "cred:") {
			return "", wrong
		}
		return "", fmt.Errorf("vault:kv/x#pw on node n1: %w", away)
	}
	one := map[string]string{"pw": "ref:vault:kv/x#pw"}
	two := map[string]string{"pw": "ref:vault:kv/x#pw", scripts.BecomePassword: "ref:cred:sudo"}
	for name, c := range map[string]struct {
		args    map[string]string
		fetch   fetch
		trust   sayso
		waits   bool
		unknown bool
		want    string
		change  func(*jobs.Grant)
	}{
		"refused":      {args: one, fetch: answers("", wrong), want: `argument "pw": no rule allows it`},
		"no sources":   {args: one, want: "this node resolves no references"},
		"away":         {args: one, fetch: both, waits: true, want: "cannot be had yet: argument \"pw\": vault:kv/x#pw on"},
		"one is wrong": {args: two, fetch: both, want: "no rule allows it"},
		"all away":     {args: two, fetch: answers("", away), waits: true, want: "does not answer"},
		"Redis away": {args: one, fetch: both, trust: sayso{holds: errors.New("redis is away")}, waits: true,
			want: "the order cannot be examined"},
		"two lines":     {args: two, fetch: answers("a\nb", nil), want: "as the password of sudo, has more than one line"},
		"lost and away": {args: one, fetch: both, waits: true, change: lostAtUse, want: "a secret cannot be had yet"},
		"lost, refused": {args: one, fetch: answers("", wrong), change: lostAtUse, unknown: true, want: "no rule allows it"},
		"no order": {args: one, fetch: func(_ context.Context, a secrets.Ask) (seal.Text, error) { return "", a.Signed },
			trust: sayso{holds: doubt}, want: "the order does not hold: nobody has signed"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.refers(c.args)
				s.fetch, s.trust = c.fetch, c.trust
				s.hosts.dial = func(context.Context, fleet.Host) error {
					t.Error("the host was dialled")
					return errors.New("no")
				}
				change := c.change
				if change == nil {
					change = func(*jobs.Grant) {}
				}
				got := s.one(change)
				outcome := jobs.Failed
				if c.unknown {
					outcome = jobs.Unknown
				}
				switch {
				case !strings.Contains(got.Error, c.want):
					t.Errorf("says %q, want %q", got.Error, c.want)
				case c.waits && (got.Kind != jobs.KindDefer || got.Delay != verdict.DoubtDelay ||
					!strings.Contains(got.Saved, "cannot be had yet") || got.Release != (c.change == nil)):
					t.Errorf("%+v, want a job that waits, and people who see why", got)
				case !c.waits && (got.Kind != jobs.KindEnd || got.Outcome != outcome || got.Class != jobs.ClassOperator):
					t.Errorf("%+v, want %s, class operator", got, outcome)
				}
			})
		})
	}
}

// lostAtUse makes a grant of a job whose step that is not repeatable may have run.
func lostAtUse(g *jobs.Grant) {
	g.Mode, g.Step, g.Bound = jobs.ModeLost, 1, 1
	h := *g.Host
	h.Fence = fleet.FenceAuto
	g.Host = &h
}

// Without a folder trust nobody has looked at the order, and the sources learn that.
func TestANodeThatAsksForNoOrdersSaysSoOfAReference(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.refers(map[string]string{"pw": "ref:cred:x"})
		s.fetch = func(_ context.Context, a secrets.Ask) (seal.Text, error) { return "", a.Signed }
		if got := s.one(); !strings.Contains(got.Error, "give it a folder trust") || got.Outcome != jobs.Failed {
			t.Errorf("%+v", got)
		}
	})
}
