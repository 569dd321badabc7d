package warden

import (
	"errors"
	"strings"
	"testing"

	"muster/jobs"
)

// A node connects to another member of a group only if the order has its record. A record as kin
// lets no job run on that host.
func TestKinIsReachedAsItWasSigned(t *testing.T) {
	t.Parallel()
	id := jobs.NewID("0000000001", "fw1")
	for _, policy := range []string{strict, lenient} {
		w := newWorld(t, policy)
		moved := hostOf(10)
		moved.Port = 2222
		of := hostOf(2)
		of.User = "somebody"
		for _, x := range []struct {
			what string
			in   bool
			want string
			ask  func() (bool, error)
		}{
			{"a host of the task", true, "", func() (bool, error) { return w.Kin(t.Context(), "default", id, hostOf(2)) }},
			{"kin", false, "", func() (bool, error) { return w.Kin(t.Context(), "default", id, hostOf(10)) }},
			{"kin elsewhere", false, "is not reached as the order says",
				func() (bool, error) { return w.Kin(t.Context(), "default", id, moved) }},
			{"a host of the task as somebody else", false, "is not reached as the order says",
				func() (bool, error) { return w.Kin(t.Context(), "default", id, of) }},
			{"a stranger", false, "the order does not have host fw11",
				func() (bool, error) { return w.Kin(t.Context(), "default", id, hostOf(11)) }},
		} {
			in, err := x.ask()
			refused := policy == strict && x.want != ""
			if in != x.in || errors.As(err, new(*Doubt)) != refused || refused && !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s, %s: %v, %v", policy, x.what, in, err)
			}
		}
		if len(w.alerts) != 1 || w.alerts[0].Event != "order-doubted" {
			t.Errorf("%s: people were told %+v", policy, w.alerts)
		}
		if err := w.Holds(t.Context(), "default", grantOf(10), w.spec); !errors.As(err, new(*Doubt)) {
			t.Errorf("%s: a job on kin: %v, want a doubt", policy, err)
		}
	}
	w := newWorld(t, strict)
	w.away = errors.New("redis is away")
	if _, err := w.Kin(t.Context(), "default", id, hostOf(10)); err == nil || errors.As(err, new(*Doubt)) {
		t.Errorf("Redis away: %v, want no doubt", err)
	}
	w.rules = nil
	if in, err := w.Kin(t.Context(), "default", id, hostOf(10)); !in || err != nil {
		t.Errorf("no rules: %v, %v", in, err)
	}
}
