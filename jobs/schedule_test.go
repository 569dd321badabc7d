package jobs

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/windows"
)

func TestAdvance(t *testing.T) {
	t.Parallel()
	at := func(seconds int) Time { return Time{time.Unix(1_800_000_000+int64(seconds), 0).UTC()} }
	every := func(change func(*Schedule)) Schedule {
		s := Schedule{Since: at(0), Entry: windows.Entry{Name: "x", Cron: "@every 10s", Zone: "UTC",
			Enabled: true, Missed: windows.MissedOnce}}
		if change != nil {
			change(&s)
		}
		return s
	}
	ticks := func(last, next int, pending ...Time) Ticking {
		return Ticking{Last: at(last), Next: at(next), Pending: pending}
	}
	skipped := func(t Ticking, n int) Ticking {
		t.Skipped = n
		return t
	}
	for _, test := range []struct {
		name    string
		s       Schedule
		now     int
		was     Ticking
		want    Ticking
		changed bool
	}{
		{"a new one finds its first tick", every(nil), 3, Ticking{Last: at(0)}, ticks(0, 10), true},
		{"nothing is due", every(nil), 5, ticks(0, 10), ticks(0, 10), false},
		{"a tick", every(nil), 10, ticks(0, 10), ticks(10, 20, at(10)), true},
		{"some wait to become tasks", every(nil), 20, ticks(10, 20, at(10)), ticks(10, 20, at(10)), false},
		{"missed: once", every(nil), 45, ticks(0, 10), skipped(ticks(40, 50, at(40)), 3), true},
		{"missed: all", every(func(s *Schedule) { s.Missed = windows.MissedAll }), 25, ticks(0, 10),
			ticks(20, 30, at(10), at(20)), true},
		{"missed: skip", every(func(s *Schedule) {
			s.Missed, s.Cron, s.Since = windows.MissedSkip, "@every 1m", at(-30)
		}), 50,
			ticks(-30, 0), skipped(ticks(50, 60), 1), true},
		{"the clock went back", every(nil), 12, ticks(40, 50), ticks(40, 50), false},
		{"other times since then: what was missed is nobody's business",
			every(func(s *Schedule) { s.Since = at(45) }), 46, ticks(0, 10), ticks(45, 50), true},
		{"paused", every(func(s *Schedule) { s.Paused = "by bob" }), 12, ticks(0, 10), Ticking{Last: at(0)}, true},
		{"paused still", every(func(s *Schedule) { s.Paused = "by bob" }), 99, Ticking{Last: at(0)},
			Ticking{Last: at(0)}, false},
		{"not enabled, with ticks to become tasks", every(func(s *Schedule) { s.Enabled = false }), 12,
			ticks(10, 20, at(10)), Ticking{Last: at(10), Fired: Fired{Tick: at(10), Refused: true,
				Result: "the schedule is paused, or not enabled"}}, true},
	} {
		times, err := test.s.Entry.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		got, changed := test.was.Advance(test.s, times, at(test.now).Time)
		if d := cmp.Diff(test.want, got); d != "" || changed != test.changed {
			t.Errorf("%s: changed %t, want %t: %s", test.name, changed, test.changed, d)
		}
	}
}

func TestTheIDOfATick(t *testing.T) {
	t.Parallel()
	tick := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	a := TickID("x", tick, 0)
	if _, err := ParseTaskID(string(a)); err != nil {
		t.Error(err)
	}
	local := tick.In(time.FixedZone("", 3600))
	if b := TickID("x", local, 0); a != b {
		t.Errorf("of the same instant it is %s and %s", a, b)
	}
	seen := map[TaskID]bool{}
	for salt := range TickTries {
		seen[TickID("x", tick, salt)] = true
	}
	if len(seen) < TickTries-2 {
		t.Errorf("%d tries give %d ids", TickTries, len(seen))
	}
	if later := TickID("x", tick.Add(time.Second), 0); later <= a {
		t.Errorf("a later tick has the id %s, after %s", later, a)
	}
}

// A schedule can ask for all that muster run can ask for, or there is a reason why not.
func TestAScheduleGoesOutAsATaskCan(t *testing.T) {
	t.Parallel()
	const chain = "a chain is several tasks, and its moment is chosen by a person"
	leftOut := map[string]string{"staged,omitempty": chain, "roll_back,omitempty": chain}
	fields := func(v any) map[string]bool {
		names := map[string]bool{}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if !f.Anonymous {
				names[f.Tag.Get("json")] = true
			}
		}
		return names
	}
	asked, given := fields(RolloutAsk{}), fields(windows.RolloutRequest{})
	for name := range asked {
		if leftOut[name] == "" && !given[name] {
			t.Errorf("windows.RolloutRequest lacks %s of RolloutAsk: add it, or say here why not", name)
		}
	}
	for name := range given {
		if !asked[name] {
			t.Errorf("windows.RolloutRequest has %s, which RolloutAsk does not know", name)
		}
	}
	r := windows.RolloutRequest{MaxFailed: "1", UnreachableOK: true, Breaker: "2/1m", Canary: "3",
		Waves: []string{"4"}, Soak: "5s", Gate: true, Health: "six", HealthArgs: map[string]string{"a": "7"}}
	a, err := json.Marshal(AskOf(&r))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil || string(a) != string(b) {
		t.Errorf("%s became %s, %v", b, a, err)
	}
	if AskOf(nil) != nil {
		t.Error("a schedule without a rollout has one")
	}
}

func TestWhatIsWrongWithARolloutWhateverItsHostsAre(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		r    windows.RolloutRequest
		want string
	}{
		{windows.RolloutRequest{MaxFailed: "5%", Breaker: "3/10m", UnreachableOK: true,
			Waves: []string{"1", "10%", "200", "50%", "100%"}, Soak: "5m", Gate: true, Health: "exec"}, ""},
		{windows.RolloutRequest{Canary: "3"}, ""},
		{windows.RolloutRequest{Canary: "3", Waves: []string{"100%"}}, "canary: there are waves as well"},
		{windows.RolloutRequest{Canary: "10%"}, `canary: "10%": want a number`},
		{windows.RolloutRequest{Waves: []string{"1", "50%"}}, "waves: 50%: end with 100%"},
		{windows.RolloutRequest{Waves: []string{"1", "50"}}, "waves: 50: end with 100%"},
		{windows.RolloutRequest{Waves: []string{"100%", "5"}}, "waves: 5: end with 100%"},
		{windows.RolloutRequest{Waves: []string{"5", "10%", "5", "100%"}}, "waves: 5: want more than in the waves before"},
		{windows.RolloutRequest{Waves: []string{"x", "100%"}}, `waves: "x": want a number`},
		{windows.RolloutRequest{Waves: []string{"1", "101%"}}, `waves: "101%": want more than 0%`},
		{windows.RolloutRequest{Soak: "5m"}, "soak: there are no waves"},
		{windows.RolloutRequest{Soak: "soon", Canary: "1"}, `soak: "soon": want a time`},
		{windows.RolloutRequest{Gate: true, MaxFailed: "1"}, "gate: there are no waves"},
		{windows.RolloutRequest{MaxFailed: "100%"}, `max_failed: "100%"`},
		{windows.RolloutRequest{MaxFailed: "few"}, `max_failed: "few": want a number`},
		{windows.RolloutRequest{Breaker: "3"}, `breaker: "3": want failures / time`},
		{windows.RolloutRequest{UnreachableOK: true}, "unreachable_ok: there is no rule"},
		{windows.RolloutRequest{HealthArgs: map[string]string{"a": "b"}, MaxFailed: "1"},
			"health_args: there is no health check"},
	} {
		got := ""
		for field, err := range CheckRollout(test.r) {
			got += field + ": " + err.Error() + "\n"
		}
		if !strings.HasPrefix(got, test.want) || (test.want == "") != (got == "") || strings.Count(got, "\n") > 1 {
			t.Errorf("%+v: it says %q, want %q", test.r, got, test.want)
		}
	}
}
