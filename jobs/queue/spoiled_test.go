package queue_test

import (
	"slices"
	"strings"
	"testing"

	"muster/jobs"
	"muster/jobs/queue/care"
	"muster/testkit/redistest"
)

// An attacker with the user of a node can write anything into its zone; the other zones do not
// suffer.
func TestAZoneThatCannotBeReadIsNamedAndTheOthersAreServed(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	q := open(t, world{cfg: s.Config()}, "")
	id := rolling(t, q, mayFail(1), 2)
	s.Do(t, "SADD", "muster:{hub}:zones", "dmz")
	s.Do(t, "SET", "muster:{dmz}:rolling", "x")
	s.Do(t, "SET", "muster:{dmz}:zone", "x")
	named := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "zone dmz: ") {
			t.Errorf("%s: %v, want a word on zone dmz", what, err)
		}
	}
	list, err := q.Rollouts(t.Context())
	named("rollouts", err)
	if !slices.Equal(list, []jobs.TaskID{id}) {
		t.Errorf("rollouts %v, want %s", list, id)
	}
	debts, err := q.Debts(t.Context(), []string{"dmz", zone})
	named("debts", err)
	if !slices.Equal(debts, []care.Debt{{Zone: zone}}) {
		t.Errorf("debts %+v, want those of %s", debts, zone)
	}
}
