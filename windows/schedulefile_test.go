package windows

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const scheduleExample = `
schedules:
  - name: zsk-weekly
    cron: "H 3 * * SUN"
    zone: Europe/Zurich
    jitter: 30m
    gap: skip
    fold: second
    runbook: exec
    args: {cmd: uptime, count: 3, quick: true}
    on: customer=acme
    missed: all
    overlap: queue
    window: none
    priority: high
    expire: 2h
    disruptive: true
    supersedes: keys/acme
    enabled: false
  - {name: plain, cron: "@every 90s", zone: UTC, runbook: exec, on: all}
  - name: waves
    cron: "@daily"
    zone: UTC
    runbook: exec
    on: all
    only: diff
    waves: [1, 10%, 100%]
    soak: 5m
    gate: true
    health: exec
    health_args: {cmd: uptime, n: 3}
    max_failed: 5
    breaker: 3/10m
    unreachable_ok: true
`

func TestSchedulesAreRead(t *testing.T) {
	t.Parallel()
	got, err := ParseSchedules([]File{{"s.yaml", scheduleExample}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{Name: "zsk-weekly", Cron: "H 3 * * SUN", Zone: "Europe/Zurich", Gap: "skip", Fold: "second",
			Jitter: "30m0s", Missed: MissedAll, Overlap: OverlapQueue, Window: WindowNone,
			Request: Request{Runbook: "exec", On: "customer=acme", Priority: "high", Expire: "2h0m0s",
				Args:       map[string]string{"cmd": "uptime", "count": "3", "quick": "true"},
				Disruptive: true, Supersedes: "keys/acme"}},
		{Name: "plain", Cron: "@every 90s", Zone: "UTC", Gap: "first", Fold: "first", Missed: MissedOnce,
			Overlap: OverlapForbid, Window: WindowNone, Enabled: true,
			Request: Request{Runbook: "exec", On: "all", Priority: "normal"}},
		{Name: "waves", Cron: "@daily", Zone: "UTC", Gap: "first", Fold: "first", Missed: MissedOnce,
			Overlap: OverlapForbid, Window: WindowNone, Enabled: true,
			Request: Request{Runbook: "exec", On: "all", Priority: "normal", Only: "diff",
				Rollout: &RolloutRequest{MaxFailed: "5", UnreachableOK: true, Breaker: "3/10m",
					Waves: []string{"1", "10%", "100%"}, Soak: "5m", Gate: true, Health: "exec",
					HealthArgs: map[string]string{"cmd": "uptime", "n": "3"}}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	s, err := got[0].Schedule()
	if err != nil || s.Jitter != 30*time.Minute || s.Policy != (Policy{GapSkip, FoldSecond}) ||
		s.Missed != MissedAll || s.Zone.String() != "Europe/Zurich" {
		t.Errorf("it is due as %+v, %v", s, err)
	}
}

func TestMistakesInSchedulesAreAllTold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"many at once", `schedules:
  - name: -x
    cron: "61 25 * * *"
    zone: CEST
    jitter: 25h
    missed: some
    enabled: maybe
    runbook: exec
    args: {a: [1]}
    nme: y
  - name: b
`, `s.yaml:10: unknown key "nme": want one of name, cron,
s.yaml:2: name "-x": use letters
s.yaml:4: zone "CEST"
s.yaml:6: missed: "some": want once or skip or all
s.yaml:7: enabled: "maybe": want true or false
s.yaml:2: a schedule without on
s.yaml:9: argument a: want one value
s.yaml:5: jitter 25h0m0s: at most 24h0m0s
s.yaml:3: cron: minute "61": want 0 to 59, with , - / and *; hour "25"
s.yaml:11: a schedule without cron
s.yaml:11: no zone
s.yaml:11: a schedule without runbook
s.yaml:11: a schedule without on`},
		{"the same name", "schedules:\n- &a {name: a, cron: '@daily', zone: UTC, runbook: exec, on: all}\n" +
			"- {name: a, cron: '@daily', zone: UTC, runbook: exec, on: all}",
			"s.yaml:3: schedule a is there already, at s.yaml:2"},
		{"a window of its own", "schedules:\n- {name: a, cron: '@daily', zone: UTC, runbook: exec, on: all, window: sunday}",
			"s.yaml:2: window: \"sunday\": want none or required"},
		{"a zone in the text", "schedules:\n- {name: a, cron: 'TZ=UTC 0 0 * * *', zone: UTC, runbook: e, on: all}",
			"s.yaml:2: cron: \"TZ=UTC 0 0 * * *\": the zone is a field of its own"},
		{"a rollout", `schedules:
- name: a
  cron: "@daily"
  zone: UTC
  runbook: e
  on: all
  only: all
  waves: {a: b}
  canary: 3
  gate: perhaps
  health_args: [x]
  jitter: 1s
`, `s.yaml:10: gate: "perhaps": want true or false
s.yaml:11: health_args: want a mapping of names to values
s.yaml:8: waves: want a list
s.yaml:7: only: "all": want check or diff
s.yaml:12: jitter: with canary or waves hosts begin in their order`},
		{"args", "schedules:\n- {name: a, cron: '@daily', zone: UTC, runbook: e, on: all, args: uptime}",
			"s.yaml:2: args: want a mapping"},
		{"of windows", "windows: []", "s.yaml:1: this is no file of schedules: it has no known key: want schedules"},
		{"a list", "[1]", "s.yaml:1: the file: want a mapping with schedules …"},
		{"nothing", "", "s.yaml: it is empty: want schedules"},
		{"no YAML", "a: [", "s.yaml:2: not YAML: "},
	} {
		_, err := ParseSchedules([]File{{"s.yaml", test.text}}, nil)
		if err == nil {
			t.Errorf("%s: no mistake", test.name)
			continue
		}
		got, want := strings.Split(err.Error(), "\n"), strings.Split(test.want, "\n")
		for i := range want {
			if len(got) != len(want) || !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: it says\n%s\nwant\n%s", test.name, err, test.want)
				break
			}
		}
	}
}

func TestWhatDiffersIsNamed(t *testing.T) {
	t.Parallel()
	list, err := ParseSchedules([]File{{"s.yaml", scheduleExample}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := list[0], list[0]
	if d := a.Differences(b); d != nil {
		t.Errorf("it differs from itself in %q", d)
	}
	b.Args = map[string]string{"cmd": "date", "quick": "true"}
	b.Jitter, b.Enabled = "", true
	want := []string{"jitter: (none) → 30m0s", "enabled: true → false", "args.cmd: date → uptime",
		"args.count: (none) → 3"}
	if d := cmp.Diff(want, a.Differences(b)); d != "" {
		t.Error(d)
	}
	with := list[2]
	none := with
	none.Rollout = nil
	want = []string{"unreachable_ok: true → false", "breaker: 3/10m → (none)", "waves: 1,10%,100% → (none)",
		"soak: 5m → (none)", "gate: true → false", "health: exec → (none)", "health_args.cmd: uptime → (none)",
		"health_args.n: 3 → (none)"}
	if d := cmp.Diff(append([]string{"max_failed: 5 → (none)"}, want...), none.Differences(with)); d != "" {
		t.Error(d)
	}
	if a.SameTimes(b) {
		t.Error("one that is not enabled is due as one that is")
	}
	if b.Enabled = false; !a.SameTimes(b) {
		t.Error("arguments say when it is due")
	}
}

func FuzzParseSchedules(f *testing.F) {
	f.Add(scheduleExample)
	f.Add("schedules: [{name: a, cron: H H H * *, zone: UTC, runbook: e, on: all, args: {a: ~}}]")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseSchedules([]File{{"s.yaml", text}}, nil)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		for _, e := range list {
			s, err := e.Schedule()
			if err != nil {
				t.Fatalf("%q: a schedule without a mistake cannot be read: %v", text, err)
			}
			s.Fire(unix(1_790_000_000), unix(1_790_000_100))
		}
	})
}

func TestTheExampleIsRight(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../etc/examples/schedules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := ParseSchedules([]File{{"schedules.yaml", string(text)}}, nil); err != nil || len(list) != 3 {
		t.Errorf("%d schedules, %v", len(list), err)
	}
}

// A value that a submit would refuse at each tick is refused when the schedule is applied.
func TestAScheduleMayNotTakeLongerThanASubmitMay(t *testing.T) {
	t.Parallel()
	for expect, ok := range map[string]bool{"168h": true, "168h1s": false} {
		_, err := ParseSchedules([]File{{"s.yaml", "schedules:\n- {name: s, cron: '@daily', zone: UTC, runbook: exec, " +
			"on: all, expect: " + expect + "}\n"}}, nil)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "s.yaml:2: expect 168h0m1s: at most 168h") {
			t.Errorf("%s: %v", expect, err)
		}
	}
}
