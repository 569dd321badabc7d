package worker

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/secrets"
	"muster/worker/warden"
)

// partners answers for the members of a group, beside what sayso answers.
type partners struct {
	sayso
	in    map[string]bool // hosts of the task
	wrong map[string]error
}

func (p partners) Kin(_ context.Context, _ string, _ jobs.ID, h fleet.Host) (bool, error) {
	return p.in[h.Name], p.wrong[h.Name]
}

// withPasswords makes the task one whose hosts have a password of sudo each.
func (s *stand) withPasswords() {
	s.t.Helper()
	r, err := scripts.Parse("test.yaml", []byte("name: x\ndisruptive: true\nsteps:\n  - {name: go, run: 'true'}\n"))
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := r.BindGiven(scripts.Given{Args: map[string]string{scripts.BecomePassword: "ref:file:/sudo/{{host.name}}"}})
	if err != nil {
		s.t.Fatal(err)
	}
	action, err := json.Marshal(r.Freeze(v))
	if err != nil {
		s.t.Fatal(err)
	}
	s.q.specs[task1] = jobs.Spec{Inventory: "v7", Timeout: attemptTime, Retry: jobs.DefaultPolicy(), Action: action,
		Terms: jobs.Terms{Disruptive: true}}
	s.fetch = func(_ context.Context, a secrets.Ask) (seal.Text, error) {
		return seal.Text("password-of-" + a.Host.Name), nil
	}
}

// The sudo of another member of the group gets its own password, and only if the task is for that
// host, too: a hostile host would learn the password of its partner.
func TestAMemberGetsNoPasswordOfAnother(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		s.withPasswords()
		s.trust = partners{in: map[string]bool{"fw1": true, "fw2": true}}
		g := s.q.put(task1, "fw2", p.member)
		s.start()
		s.finish()
		if r := s.q.only(g.Job); r.Outcome != jobs.Succeeded {
			t.Errorf("got %+v", r)
		}
		want := map[string]seal.Text{"fw1": "password-of-fw1", "fw2": "password-of-fw2", "fw3": ""}
		if !maps.Equal(s.hosts.passwords, want) {
			t.Errorf("the hosts got %v, want %v", s.hosts.passwords, want)
		}
	})
}

// A member whose record was changed in Redis is not called, and nothing is disturbed.
func TestAMemberThatWasChangedIsNotCalled(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		s.withPasswords()
		s.trust = partners{wrong: map[string]error{"fw3": &warden.Doubt{Why: errors.New("it was changed")}}}
		s.hosts.dial = func(_ context.Context, h fleet.Host) error {
			if h.Name == "fw3" {
				t.Error("fw3 was called")
			}
			return nil
		}
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			t.Error("a step began")
			return works(ctx, time.Second)
		}
		g := s.q.put(task1, "fw2", p.member)
		s.start()
		s.finish()
		r := s.q.only(g.Job)
		if r.Kind != jobs.KindDefer || !strings.Contains(r.Saved, "the order does not hold: it was changed") {
			t.Errorf("got %+v", r)
		}
	})
}

// SudoPassword notes the password that sudo on the host would get.
func (c *fakeConn) SudoPassword(p seal.Text) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if c.f.passwords == nil {
		c.f.passwords = map[string]seal.Text{}
	}
	c.f.passwords[c.host.Name] = p
}
