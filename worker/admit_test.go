package worker

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/windows"
	"muster/worker/verdict"
)

// fakeTimes is a timetable in memory.
type fakeTimes struct {
	mu        sync.Mutex
	table     windows.Timetable
	skew      time.Duration // the error of this machine's clock
	err       error
	ntp       error         // why the clock may be wrong
	slow      time.Duration // the time that an answer takes
	long      time.Duration // the time until the fake has read a new timetable
	texts     bool          // the timetable was set by a muster that keeps no excerpts
	estimates map[string]time.Duration
	alerts    []jobs.Alert
	reads     int
}

func (f *fakeTimes) Agreed(ctx context.Context) (jobs.Agreed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	select {
	case <-time.After(f.slow):
	case <-ctx.Done():
		return jobs.Agreed{}, ctx.Err()
	}
	if f.err != nil {
		return jobs.Agreed{}, f.err
	}
	return jobs.Agreed{Version: f.table.Version, Mark: f.mark(), Now: jobs.MicrosOf(time.Now()), Skew: f.skew}, nil
}

// mark returns the mark of the timetable.
func (f *fakeTimes) mark() string { return strconv.FormatInt(f.table.Version, 10) }

func (f *fakeTimes) Excerpts(ctx context.Context, scopes []windows.Scope) (jobs.Excerpts, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-time.After(f.long):
	case <-ctx.Done():
		return jobs.Excerpts{}, ctx.Err()
	}
	table := f.table
	x := jobs.Excerpts{Version: table.Version, Mark: f.mark(), Table: &table}
	book, err := table.Book()
	if err != nil || f.texts {
		return x, f.err
	}
	texts, err := book.Excerpts()
	if err != nil {
		return x, err
	}
	x.Table = nil
	for _, s := range scopes {
		part := &windows.Excerpt{}
		if text := texts[s.String()]; text != nil {
			if part, err = windows.ReadExcerpt(text); err != nil {
				return x, err
			}
		}
		x.Parts = append(x.Parts, part)
	}
	return x, f.err
}

func (f *fakeTimes) Estimate(_ context.Context, field string) (jobs.Estimate, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ok := f.estimates[field]
	return jobs.Estimate{P50: d / 2, P90: d, N: 10}, ok, nil
}

func (f *fakeTimes) Alert(_ context.Context, _ string, a jobs.Alert) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alerts = append(f.alerts, a)
	return nil
}

// set replaces the timetable.
func (f *fakeTimes) set(text string, freezes ...windows.FreezeOrder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.table.Version++
	f.table.Files = nil
	if text != "" {
		f.table.Files = []windows.File{{Name: "w.yaml", Content: text}}
	}
	f.table.Freezes = freezes
}

func (f *fakeTimes) alerted() []jobs.Alert {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]jobs.Alert{}, f.alerts...)
}

// daily returns a window of the host fw1 that begins at a time of day and needs no approval, unless
// more says otherwise. Fake time begins at midnight, 2000-01-01, UTC.
func daily(start, length string, more ...string) string {
	approval := "none"
	if strings.Contains(strings.Join(more, ""), "approval") {
		approval = ""
	}
	text := "windows:\n- name: nightly\n  host: fw1\n  zone: UTC\n  start: \"" + start + " * * *\"\n" +
		"  length: " + length + "\n"
	if approval != "" {
		text += "  approval: none\n"
	}
	for _, line := range more {
		text += "  " + line + "\n"
	}
	return text
}

// windowed returns a task that needs a window and is expected to take a given time.
func windowed(t testing.TB, expect time.Duration, steps ...scripts.Step) jobs.Spec {
	s := spec(t, steps...)
	s.Runbook = "firmware"
	s.Timing = jobs.Timing{Window: true, Expect: expect}
	return s
}

func at(text string) time.Time {
	t, err := time.Parse(time.DateTime, "2000-01-0"+text)
	if err != nil {
		panic(err)
	}
	return t
}

// Each case is one job, taken at midnight.
func TestAJobBeginsOnlyWhenItMay(t *testing.T) {
	t.Parallel()
	night := windows.FreezeOrder{Name: "outage", Level: "everyone", From: at("1 00:00:00").Add(-time.Hour),
		Until: at("1 05:00:00"), Reason: "INC-7", By: "ann"}
	always := windows.FreezeOrder{Name: "outage", Level: "customer", Of: "acme", By: "ann",
		From: at("1 00:00:00").Add(-time.Hour), Reason: "INC-7"}
	tests := []struct {
		name   string
		change func(s *stand, spec *jobs.Spec, g *jobs.Grant)
		kind   jobs.Kind
		until  time.Time
		delay  time.Duration
		why    string
	}{
		{name: "nothing agreed, no window needed", kind: jobs.KindEnd,
			change: func(s *stand, spec *jobs.Spec, g *jobs.Grant) { spec.Window = false }},
		{name: "nothing agreed", kind: jobs.KindDefer, delay: verdict.ClosedDelay,
			why: "outside of its window: there is no window for host fw1: ask its customer for one"},
		{name: "open", kind: jobs.KindEnd,
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) { s.times.set(daily("0 0", "1h")) }},
		{name: "opens later", kind: jobs.KindDefer, until: at("1 02:00:00"), why: "outside of its window",
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) { s.times.set(daily("0 2", "1h")) }},
		{name: "too short for it", kind: jobs.KindDefer, delay: verdict.ClosedDelay,
			why: "the window ends in 1h0m0s, and the work takes 2h0m0s: window nightly has no opening of 2h0m0s",
			change: func(s *stand, spec *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("0 0", "1h"))
				spec.Expect = 2 * time.Hour
			}},
		{name: "too late for it", kind: jobs.KindDefer, until: at("1 23:30:00"),
			why: "the window ends in 30m0s, and the work takes 40m0s",
			change: func(s *stand, spec *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("30 23", "1h"))
				spec.Expect = 40 * time.Minute
			}},
		{name: "no time to go back", kind: jobs.KindDefer, until: at("1 23:30:00"),
			why: "the window ends in 30m0s, and the work takes 10m0s and 25m0s to go back",
			change: func(s *stand, spec *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("30 23", "1h"))
				spec.Reserve = 25 * time.Minute
			}},
		{name: "behind the cutoff", kind: jobs.KindDefer, until: at("1 23:30:00"), why: "nothing is begun any more",
			change: func(s *stand, spec *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("30 23", "1h", "cutoff: 35m"))
			}},
		{name: "history knows better", kind: jobs.KindDefer, until: at("1 23:30:00"), why: "the work takes 50m0s",
			change: func(s *stand, spec *jobs.Spec, g *jobs.Grant) {
				s.times.set(daily("30 23", "1h"))
				g.Host.Customer, g.Host.Labels = "acme", map[string]string{"model": "x200"}
				s.times.estimates = map[string]time.Duration{"firmware|x200|acme": 50 * time.Minute,
					"firmware||": time.Minute}
			}},
		{name: "not approved", kind: jobs.KindDefer, delay: verdict.ClosedDelay, why: "no approved window",
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("0 0", "1h", "approval: required"))
			}},
		{name: "not for this runbook", kind: jobs.KindDefer, delay: verdict.ClosedDelay,
			why: "window nightly is not for runbook firmware",
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("0 0", "1h", "runbooks: [patch]"))
			}},
		{name: "frozen", kind: jobs.KindDefer, until: at("1 05:00:00"), why: "frozen by outage (INC-7) until 2000-01-01T05",
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) { s.times.set(daily("0 23", "7h"), night) }},
		{name: "frozen, and needs no window", kind: jobs.KindDefer, until: at("1 05:00:00"), why: "frozen by outage",
			change: func(s *stand, spec *jobs.Spec, _ *jobs.Grant) {
				spec.Window = false
				s.times.set("", night)
			}},
		{name: "frozen until it is lifted", kind: jobs.KindDefer, delay: verdict.ClosedDelay, why: "until that is lifted",
			change: func(s *stand, spec *jobs.Spec, g *jobs.Grant) {
				spec.Window, g.Host.Customer = false, "acme"
				s.times.set("", always)
			}},
		{name: "a freeze of another customer", kind: jobs.KindEnd,
			change: func(s *stand, spec *jobs.Spec, g *jobs.Grant) {
				spec.Window, g.Host.Customer = false, "beta"
				s.times.set("", always)
			}},
		{name: "frozen, with a reason to begin", kind: jobs.KindEnd,
			change: func(s *stand, spec *jobs.Spec, _ *jobs.Grant) {
				spec.Window, spec.Override = false, "ann: the outage is why"
				s.times.set("", night)
			}},
		{name: "frozen after it had begun", kind: jobs.KindEnd,
			change: func(s *stand, spec *jobs.Spec, g *jobs.Grant) {
				spec.Window, g.Step, g.Mode = false, 1, jobs.ModeContinue
				s.times.set("", night)
			}},
		{name: "the clock is wrong", kind: jobs.KindDefer, delay: verdict.DoubtDelay,
			why: "the clock of this node is 2.5s off that of Redis: at most 2s",
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("0 0", "1h"))
				s.times.skew = -2500 * time.Millisecond
			}},
		{name: "the clock is wrong, and no window is needed", kind: jobs.KindEnd,
			change: func(s *stand, spec *jobs.Spec, _ *jobs.Grant) {
				spec.Window, s.times.skew = false, time.Hour
			}},
		{name: "nobody keeps the clock right", kind: jobs.KindEnd,
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("0 0", "1h"))
				s.times.ntp = errors.New("no NTP")
			}},
		{name: "nobody keeps the clock right, and somebody must", kind: jobs.KindDefer, delay: verdict.DoubtDelay,
			why: "not kept right by NTP (no NTP), and windows.require_ntp is set",
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("0 0", "1h"))
				s.times.ntp, s.cfg.RequireNTP = errors.New("no NTP"), true
			}},
		{name: "nothing can be read", kind: jobs.KindDefer, delay: verdict.DoubtDelay,
			why:    "the timetable is not known: connection refused",
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) { s.times.err = errAway }},
		{name: "what is read is of a newer muster", kind: jobs.KindDefer, delay: verdict.DoubtDelay,
			why:    "version 1 cannot be read here",
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) { s.times.set("windows: [{lunar: true}]") }},
		{name: "to read it takes long, and the answer is new all the same", kind: jobs.KindEnd,
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("0 0", "1h"))
				s.times.long = 5 * time.Second
			}},
		{name: "it was set by a muster that keeps no excerpts", kind: jobs.KindEnd,
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("0 0", "1h"))
				s.times.texts = true
			}},
		{name: "to read it takes for ever", kind: jobs.KindDefer, delay: verdict.DoubtDelay,
			why: "the timetable is not known: no answer from Redis within 10s",
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("0 0", "1h"))
				s.times.long = time.Minute
			}},
		{name: "the answer takes too long", kind: jobs.KindDefer, delay: verdict.DoubtDelay,
			why: "the timetable is not known: no answer from Redis within 1.",
			change: func(s *stand, _ *jobs.Spec, _ *jobs.Grant) {
				s.times.set(daily("0 0", "1h"))
				s.times.slow = 3 * time.Second
			}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				spec := windowed(t, 10*time.Minute, shell("one"), shell("two"))
				g := s.q.grant(task1, "fw1", func(g *jobs.Grant) {
					if test.change != nil {
						test.change(s, &spec, g)
					}
				})
				s.q.specs[task1] = spec
				s.start(g)
				s.finish()
				got := s.q.only(g.Job)
				if got.Kind != test.kind || !strings.Contains(got.Error, test.why) || got.Delay != test.delay ||
					!test.until.IsZero() && got.Until != jobs.MicrosOf(test.until) {
					t.Errorf("got  %s until %s, delay %s: %s\nwant %s until %s, delay %s: %s", got.Kind,
						got.Until.Time().UTC(), got.Delay, got.Error, test.kind, test.until, test.delay, test.why)
				}
				if ran := len(s.hosts.started()); (ran > 0) != (test.kind == jobs.KindEnd) {
					t.Errorf("%d steps were started", ran)
				}
				if s.hosts.most > 0 && test.kind == jobs.KindDefer {
					t.Error("the host was called")
				}
			})
		})
	}
}

// Somebody edits the window while the first of two steps runs.
func TestAWindowIsEditedWhileAJobRuns(t *testing.T) {
	t.Parallel()
	stop := "at_end: stop_at_safe_point"
	tests := []struct {
		name, before, after string
		kind                jobs.Kind
		alert               bool
	}{
		{"nothing", daily("0 0", "1h"), "", jobs.KindEnd, false},
		{"it is made shorter", daily("0 0", "1h"), daily("0 0", "1m"), jobs.KindEnd, true},
		{"it is made shorter, and stops", daily("0 0", "1h", stop), daily("0 0", "1m", stop), jobs.KindDefer, false},
		{"it is taken away", daily("0 0", "1h"), "windows: []", jobs.KindEnd, true},
		{"the approval is gone", daily("0 0", "1h"), daily("0 0", "1h", "approval: required"), jobs.KindEnd, true},
		{"the approval is gone, and stops", daily("0 0", "1h"),
			daily("0 0", "1h", stop, "approval: required"), jobs.KindDefer, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.q.specs[task1] = windowed(t, 10*time.Minute, shell("one"), shell("two"))
				s.times.set(test.before)
				s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					r, err := works(ctx, 10*time.Second)
					if test.after != "" && strings.Contains(c.Shell, "one") {
						s.times.set(test.after)
					}
					return r, err
				}
				got := s.one()
				if got.Kind != test.kind || got.Kind == jobs.KindEnd && got.Outcome != jobs.Succeeded {
					t.Errorf("got %s %s: %s", got.Kind, got.Outcome, got.Error)
				}
				if got.Kind == jobs.KindDefer && (got.Step != 1 || got.Release) {
					t.Errorf("it continues at step %d, and releases its group: %t", got.Step, got.Release)
				}
				if n := len(s.times.alerted()); n > 0 != test.alert {
					t.Errorf("%d alerts: %v", n, s.times.alerts)
				}
			})
		})
	}
}

// A slow login to the host may take the time between the take and the end of the window.
func TestAJobDoesNotBeginAfterItsWindowHasEnded(t *testing.T) {
	t.Run("cutoff", func(t *testing.T) { wentBy(t, time.Minute, daily("0 0", "1h", "cutoff: 59m50s")) })
	t.Run("length", func(t *testing.T) { wentBy(t, 59*time.Minute+50*time.Second, daily("0 0", "1h")) })
}

// wentBy runs a job in a window that has enough time at the take, and too little a quarter of a
// minute later.
func wentBy(t *testing.T, expect time.Duration, window string) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.specs[task1] = windowed(t, expect, shell("one"))
		s.times.set(window)
		s.hosts.dial = func(ctx context.Context, _ fleet.Host) error {
			_, err := works(ctx, 15*time.Second)
			return err
		}
		got := s.one()
		if got.Kind != jobs.KindDefer || got.Until != jobs.MicrosOf(at("2 00:00:00")) || !got.Release {
			t.Errorf("got %+v", got)
		}
		if ran := s.hosts.started(); len(ran) > 0 {
			t.Errorf("started: %v", ran)
		}
	})
}

// The attempt rules about the window, and then asks the queue for a go until the queue answers. A
// go that comes after the end of the window starts nothing.
func TestALateGoStartsNothingOutsideOfTheWindow(t *testing.T) {
	look := shell("look")
	look.Kind = scripts.KindCheck
	for name, steps := range map[string][]scripts.Step{
		"at once":                  {shell("one")},
		"behind a step that looks": {look, shell("one")},
	} {
		t.Run(name, func(t *testing.T) { lateGo(t, steps) })
	}
}

func lateGo(t *testing.T, steps []scripts.Step) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.specs[task1] = windowed(t, time.Minute, steps...)
		s.times.set(daily("0 0", "1h", "cutoff: 59m40s"))
		s.hosts.dial = func(ctx context.Context, _ fleet.Host) error {
			_, err := works(ctx, verdict.GoTime+time.Second) // the first step needs a go then
			return err
		}
		began := time.Now()
		s.q.verdict = func(c jobs.Checkpoint) (jobs.Verdict, error) {
			if c.Step == len(steps)-1 && time.Since(began) < time.Minute {
				return "", errAway
			}
			return jobs.Go, nil
		}
		got := s.one(func(g *jobs.Grant) { g.Timeout = time.Hour })
		if got.Kind != jobs.KindDefer || got.Until != jobs.MicrosOf(at("2 00:00:00")) || !got.Release {
			t.Errorf("got %+v", got)
		}
		for _, ran := range s.hosts.started() {
			if strings.Contains(ran, "one") {
				t.Errorf("started: %s", ran)
			}
		}
	})
}

// A job whose worker was lost in a step that disturbs the host may have begun. While it waits for
// the next opening, it keeps its group.
func TestAStepThatMayHaveBegunKeepsItsGroup(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		spec := windowed(t, time.Minute, repeatable("one"))
		spec.Disruptive, spec.Repeatable = true, true
		s.q.specs[task1] = spec
		s.times.set(daily("0 2", "1h"))
		got := s.one(func(g *jobs.Grant) {
			g.Mode, g.Attempt, g.Tries, g.Saved = jobs.ModeContinue, 2, 1, `{"may_have_run":true}`
			host := *g.Host
			host.Fence = fleet.FenceNone
			g.Host = &host
		})
		if got.Kind != jobs.KindDefer || got.Until != jobs.MicrosOf(at("1 02:00:00")) || got.Release {
			t.Errorf("got %+v", got)
		}
	})
}

// The alert also comes in the middle of a long step.
func TestTheEndOfAWindowDuringAJobSendsAnAlert(t *testing.T) {
	t.Parallel()
	for _, longer := range []bool{false, true} {
		bubbled := func(t *testing.T, s *stand) {
			s.q.specs[task1] = windowed(t, time.Second, shell("one"))
			s.times.set(daily("0 0", "10s"))
			s.hosts.run = func(ctx context.Context, _ fleet.Host, _ remote.Command) (remote.Result, error) {
				works(ctx, 5*time.Second)
				if longer {
					s.times.set(daily("0 0", "10m"))
				}
				return works(ctx, 10*time.Second)
			}
			if got := s.one(); got.Outcome != jobs.Succeeded {
				t.Errorf("got %+v", got)
			}
			if n := len(s.times.alerted()); (n == 1) == longer || n > 1 {
				t.Errorf("%d alerts, the window was made longer: %t", n, longer)
			}
		}
		t.Run("", func(t *testing.T) { bubble(t, bubbled) })
	}
}

// The attempt asks the host about a lost job, and starts nothing there.
func TestALostJobIsNotBegunOutsideOfItsWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.specs[task1] = windowed(t, time.Minute, shell("one"))
		s.times.set(daily("0 2", "1h"))
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			if c.Record == nil || !c.Record.Look {
				t.Error("it was started")
			}
			return remote.Result{ExitCode: -1}, fault(remote.KindNever, false, errors.New("never began"))
		}
		got := s.one(func(g *jobs.Grant) {
			g.Mode, g.Host.Fence, g.Saved = jobs.ModeLost, fleet.FenceAuto, `{"may_have_run":true}`
		})
		if got.Kind != jobs.KindDefer || got.Until != jobs.MicrosOf(at("1 02:00:00")) || verdict.Remembered(got.Saved) {
			t.Errorf("got %+v", got)
		}
	})
}

// Many short jobs share one reading of the timetable a second.
func TestTheTimetableIsReadOnceASecond(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.hosts.run = func(ctx context.Context, _ fleet.Host, _ remote.Command) (remote.Result, error) {
			return works(ctx, 10*time.Millisecond)
		}
		for i := range 200 {
			s.q.put(task1, host(i))
		}
		began := time.Now()
		s.start()
		s.finish()
		if most := int(time.Since(began)/time.Second) + 1; s.times.reads > most || s.times.reads < 2 {
			t.Errorf("read %d times in %s", s.times.reads, time.Since(began))
		}
	})
}

// A runbook says which of its steps need the window. A skipped step disturbs nothing, so the next
// step still needs the window to begin. A failed step is undone at any time.
func TestAJobRemembersThatItIsHalfWay(t *testing.T) {
	t.Parallel()
	stop := daily("0 0", "10m", "at_end: stop_at_safe_point")
	harmless := func(name string) scripts.Step {
		s := shell(name)
		s.Disruptive = false
		return s
	}
	harmful := func(name string) scripts.Step {
		s := shell(name)
		s.Disruptive = true
		return s
	}
	skipped := harmful("skipped")
	skipped.When = []scripts.Condition{{Left: scripts.Operand{Text: "a"}, Op: "==", Right: scripts.Operand{Text: "b"}}}
	tests := []struct {
		name  string
		steps []scripts.Step
		want  jobs.Kind
		step  int
	}{
		{"it began", []scripts.Step{harmful("one"), harmful("two")}, jobs.KindDefer, 1},
		{"it brought a file only", []scripts.Step{harmless("one"), harmful("two")}, jobs.KindDefer, 1},
		{"what is left is harmless", []scripts.Step{harmful("one"), harmless("two")}, jobs.KindEnd, 1},
		{"the one before was skipped", []scripts.Step{skipped, harmless("one"), harmful("two")}, jobs.KindDefer, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				spec := windowed(t, time.Minute)
				book := scripts.Frozen{Runbook: "firmware", Disruptive: true, Steps: test.steps, Main: len(test.steps)}
				spec.Action, _ = json.Marshal(book)
				s.q.specs[task1] = spec
				s.times.set(stop)
				s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					if strings.Contains(c.Shell, "one") {
						s.times.set(daily("0 3", "10m", "at_end: stop_at_safe_point"))
						return works(ctx, 5*time.Second)
					}
					return works(ctx, time.Second)
				}
				got := s.one()
				if got.Kind != test.want || got.Step != test.step || got.Kind == jobs.KindDefer &&
					got.Until != jobs.MicrosOf(at("1 03:00:00")) {
					t.Errorf("got %+v", got)
				}
				// A job keeps its group only if it has disturbed its host.
				if began := test.steps[0].Disruptive && test.steps[0].When == nil; got.Kind == jobs.KindDefer &&
					got.Release == began {
					t.Errorf("it releases its group: %t", got.Release)
				}
			})
		})
	}
}
