package verdict

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/jobs"
	"muster/scripts"
)

// The attempt before has named the use of the pause.
func TestTheTimeBeforeAnAttemptCountsUnderTheUseOfThePause(t *testing.T) {
	const at = jobs.Micros(1_760_000_000_000_000)
	s := func(n int) jobs.Micros { return at.Add(time.Duration(n) * time.Second) }
	ledger := func(k jobs.Kind, step scripts.Kind) string {
		return Reckoned(jobs.Ledger{}, k, WaitsFor(k, step), s(0))
	}
	for _, c := range []struct {
		name, spent string
		mode        jobs.Mode
		want        jobs.Times
	}{
		{"fresh", "", jobs.ModeFresh, jobs.Times{jobs.Queueing: 3}},
		{"with a time of its own", "w20000000", jobs.ModeFresh, jobs.Times{jobs.InWindow: 20, jobs.Queueing: 3}},
		{"deferred", ledger(jobs.KindDefer, ""), jobs.ModeFresh, jobs.Times{jobs.InWindow: 10, jobs.Queueing: 3}},
		{"verify", ledger(jobs.KindVerify, scripts.KindReboot), jobs.ModeContinue,
			jobs.Times{jobs.Verifying: 10, jobs.Queueing: 3}},
		{"a change that is proven", ledger(jobs.KindWait, scripts.KindConfirm), jobs.ModeContinue,
			jobs.Times{jobs.Verifying: 10, jobs.Queueing: 3}},
		{"wait", ledger(jobs.KindWait, scripts.KindWait), jobs.ModeContinue,
			jobs.Times{jobs.Pausing: 10, jobs.Queueing: 3}},
		{"gate", ledger(jobs.KindWait, "gate"), jobs.ModeContinue, jobs.Times{jobs.AtGate: 10, jobs.Queueing: 3}},
		{"a step once more", ledger(jobs.KindWait, scripts.KindRun), jobs.ModeContinue,
			jobs.Times{jobs.Pausing: 10, jobs.Queueing: 3}},
		{"retry", ledger(jobs.KindRetry, scripts.KindRun), jobs.ModeContinue,
			jobs.Times{jobs.Pausing: 10, jobs.Queueing: 3}},
		{"given back", ledger(jobs.KindBack, ""), jobs.ModeContinue, jobs.Times{jobs.Queueing: 13}},
		{"lost", ledger(jobs.KindVerify, scripts.KindVerify), jobs.ModeLost, jobs.Times{}},
		{"written by another version", "?", jobs.ModeFresh, jobs.Times{jobs.Queueing: 3}},
	} {
		got := SpentBefore(jobs.Grant{Mode: c.mode, Token: jobs.Token(s(13)), Due: s(10), Spent: c.spent})
		if d := cmp.Diff(c.want, got.Times()); d != "" || got.Until != s(13) {
			t.Errorf("%s: counted until %s (-want +got)\n%s", c.name, got.Until, d)
		}
	}
}
