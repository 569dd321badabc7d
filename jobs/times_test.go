package jobs_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/jobs"
)

// Each moment of a job that waits goes to one use: up to its appointment to the use that it waits
// for, and from then on to waiting for a worker.
func TestTimeOfWaitingIsCountedOnce(t *testing.T) {
	const at = jobs.Micros(1_760_000_000_000_000)
	s := func(n int) jobs.Micros { return at.Add(time.Duration(n) * time.Second) }
	for _, c := range []struct {
		name       string
		ledger     jobs.Ledger
		due, until jobs.Micros
		want       jobs.Times
	}{
		{"its first take", jobs.Ledger{}, s(0), s(7), jobs.Times{jobs.Queueing: 7}},
		{"taken at once", jobs.Ledger{}, s(0), s(0), jobs.Times{}},
		{"taken before it was due, by another clock", jobs.Ledger{}, s(5), s(0), jobs.Times{}},
		{"deferred", jobs.Ledger{Until: s(1), For: jobs.InWindow}, s(100), s(102),
			jobs.Times{jobs.InWindow: 99, jobs.Queueing: 2}},
		{"cancelled while it is deferred", jobs.Ledger{Until: s(1), For: jobs.InWindow}, s(100), s(41),
			jobs.Times{jobs.InWindow: 40}},
		{"due before the result was there", jobs.Ledger{Until: s(4), For: jobs.Verifying}, s(1), s(6),
			jobs.Times{jobs.Queueing: 2}},
		{"after a time that nobody counted", jobs.Ledger{Until: s(1)}, s(3), s(4),
			jobs.Times{jobs.Queueing: 1}},
	} {
		l := c.ledger
		l.Waited(c.due, c.until)
		if d := cmp.Diff(c.want, l.Times()); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, d)
		}
		if l.Until < c.until || l.For != "" {
			t.Errorf("%s: counted until %d for %q, want %d", c.name, l.Until, l.For, c.until)
		}
	}
}

// A ledger is read back as it was written, and any other text is refused.
func TestALedgerIsReadAsItWasWritten(t *testing.T) {
	l := jobs.Ledger{Until: 1_760_000_000_000_000, For: jobs.AtGate}
	for i, u := range jobs.Uses() {
		l.Add(u, time.Duration(i+1)*time.Second)
	}
	for _, one := range []jobs.Ledger{l, {}, {Spent: l.Spent}, {Until: 5}, {Until: 5, For: jobs.Verifying}} {
		got, err := jobs.ParseLedger(one.String())
		if d := cmp.Diff(one, got); d != "" || err != nil {
			t.Errorf("%q: %v (-want +got)\n%s", one.String(), err, d)
		}
	}
	for _, text := range []string{"5", "q", "x5", "q5x", "q-5", "q5@", "q5@x", "@", "@0", "@-4q", "@5q6", "q5 w6",
		"q99999999999999999999"} {
		if got, err := jobs.ParseLedger(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
