package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// life leads a job from attempt to attempt, each by a worker of its own, as a queue would. Its time
// is the fake time of the bubble.
type life struct {
	*stand
	t     *testing.T
	grant jobs.Grant
	log   []string      // a line for each attempt: its time and its result
	held  time.Duration // the time for which workers were busy
	ran   []string      // the commands on the hosts
	said  string        // all transcripts
	began time.Time
	lost  map[int]bool  // attempts whose worker vanishes, counted from 1
	late  time.Duration // the time from the due time to the take
}

func newLife(t *testing.T, s *stand) *life {
	return &life{stand: s, t: t, began: time.Now(), grant: jobs.Grant{Job: jobs.NewID(task1, "fw1"),
		Mode: jobs.ModeFresh, Timeout: attemptTime,
		Host: &fleet.Host{Name: "fw1", Address: "127.0.0.1", Port: 22, Zone: "z"}}}
}

// live leads the job to its end, or through a number of attempts.
func (l *life) live(most int) jobs.Result {
	l.t.Helper()
	for n := 1; ; n++ {
		s := stand2(l.t, l.stand)
		l.grant.Attempt++
		l.grant.Token = jobs.Token(jobs.MicrosOf(time.Now()))
		began := time.Now()
		s.start(l.grant)
		if err := s.wait(); err != nil {
			l.t.Fatal(err)
		}
		l.held += time.Since(began)
		for _, shell := range s.hosts.started() {
			l.ran = append(l.ran, strings.TrimPrefix(shell, "fw1: "))
		}
		r := s.q.only(l.grant.Job)
		l.said += string(r.Output)
		l.log = append(l.log, fmt.Sprintf("%s %s %s", began.Sub(l.began).Round(time.Second),
			inWords(r, false), r.Error))
		if r.Kind == jobs.KindEnd || n == most {
			return r
		}
		l.grant.Mode = jobs.ModeContinue
		if l.lost[n] {
			l.grant.Mode, l.grant.Bound = jobs.ModeLost, time.Minute
			if n := len(s.q.asked); n > 0 {
				l.grant.Saved = s.q.asked[n-1].Saved
			}
			continue
		}
		l.grant.Step, l.grant.Saved, l.grant.Spent = r.Step, r.Saved, r.Spent
		l.grant.Due = jobs.MicrosOf(time.Now().Add(r.Delay))
		if r.Kind == jobs.KindRetry {
			l.grant.Tries++
		}
		<-time.After(r.Delay + l.late)
	}
}

const verifying = `
name: verifying
timeout: 20s
steps:
  - name: flash
    run: flash
  - name: back
    verify: {check: well}
    save: {version: {match: 'v(\d+)', default: none}}
    on_fail: [{name: undo, run: undo}]
  - name: tell
    run: tell {{saved.version}}
`

// The numbers of design §5: not reached every 30 s, six times; not ready after 30 s, then
// 10 s more each time, six times and one last.
func TestVerifyCountsItsFindings(t *testing.T) {
	for _, tt := range []struct {
		name  string
		finds string // one letter for each probe: a away, n not ready, r ready, b broken
		want  []string
		ran   string
	}{
		{"ready at once", "r", []string{"0s verify 30s", "30s end succeeded"}, "flash well tell"},
		{"booting", "aannr", []string{"0s verify 30s", "30s verify 30s", "1m0s verify 30s", "1m30s verify 30s",
			"2m0s verify 40s", "2m40s end succeeded"}, "flash well well well tell"},
		{"never back", "aaaaaa", []string{"0s verify 30s", "30s verify 30s", "1m0s verify 30s", "1m30s verify 30s",
			"2m0s verify 30s", "2m30s verify 30s", "3m0s end unknown operator keep"}, "flash"},
		{"never ready", "nnnnnnn", []string{"0s verify 30s", "30s verify 30s", "1m0s verify 40s", "1m40s verify 50s",
			"2m30s verify 1m0s", "3m30s verify 1m10s", "4m40s verify 1m20s", "6m0s end failed transient keep"},
			"flash well well well well well well well undo"},
		{"ready at the last", "nnnnnnr", []string{"0s verify 30s", "30s verify 30s", "1m0s verify 40s", "1m40s verify 50s",
			"2m30s verify 1m0s", "3m30s verify 1m10s", "4m40s verify 1m20s", "6m0s end succeeded"},
			"flash well well well well well well well tell"},
		{"broken", "nb", []string{"0s verify 30s", "30s verify 30s", "1m0s end failed user keep"},
			"flash well well undo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads(verifying)
				spec := s.q.specs[task1]
				spec.Disruptive = true
				s.q.specs[task1] = spec
				l, probes := newLife(t, s), 0
				at := func() byte { return tt.finds[min(probes, len(tt.finds)-1)] }
				s.hosts.dial = func(context.Context, fleet.Host) error {
					if time.Since(l.began) < 10*time.Second || at() != 'a' {
						return nil
					}
					probes++
					return fault(remote.KindUnreachable, false, errAway)
				}
				s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					if c.Shell != "well" {
						return remote.Result{}, nil
					}
					defer func() { probes++ }()
					out := remote.Output{Head: []byte("v7\n")}
					switch at() {
					case 'n':
						return remote.Result{ExitCode: scripts.NotYet, Output: out}, nil
					case 'b':
						return remote.Result{ExitCode: 1, Output: out}, nil
					}
					return remote.Result{Output: out}, nil
				}
				l.live(20)
				var got []string
				for _, line := range l.log {
					words := strings.SplitN(line, " ", 3)
					what, _, _ := strings.Cut(words[2], " step")
					got = append(got, words[0]+" "+words[1]+" "+strings.TrimSpace(what))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("-want +got:\n%s\n%s", diff, strings.Join(l.log, "\n"))
				}
				ran := strings.ReplaceAll(strings.Join(l.ran, " "), "tell '7'", "tell")
				if ran != tt.ran {
					t.Errorf("ran %s, want %s", ran, tt.ran)
				}
				if l.held > 5*time.Second {
					t.Errorf("workers were held for %s", l.held)
				}
			})
		})
	}
}

// A host stays away after no step ran there, after a step looked at it, or after a step disturbed
// it. Only in the first case the outcome is unreachable.
func TestAHostThatIsDisturbedAndStaysAwayIsNotUnreachable(t *testing.T) {
	const head = "name: a\ndisruptive: true\ntimeout: 20s\nsteps:\n"
	const back = "  - {name: back, verify: {check: ls}}\n"
	for _, tt := range []struct {
		steps string
		reach int // the number of connections before the host is away
		want  string
	}{
		{back, 0, "unreachable operator keep"},
		{back, 1, "failed operator keep"}, // it was reached, and not ready
		{"  - {name: look, check: ls}\n" + back, 1, "failed operator keep"},
		{"  - {name: bring, disruptive: false, run: ls}\n" + back + "  - {name: flash, run: ls}\n", 1,
			"failed operator keep"},
		{"  - {name: flash, run: ls}\n" + back, 1, "unknown operator keep"},
		{"  - {name: flash, run: ls}\n  - {name: rest, wait: {for: 1m}}\n  - {name: tell, run: ls}\n", 1, "unknown operator"},
		{"  - {name: boot, reboot: {}}\n", 1, "unknown operator keep"},
		{"  - {name: boot, reboot: {}}\n  - {name: rest, wait: {for: 1m}}\n  - {name: tell, run: ls}\n", 2,
			"unknown operator"},
		{"  - name: look\n    check: exit 1\n    on_fail: [{name: boot, reboot: {}}]\n", 1, "unknown operator keep"},
	} {
		t.Run(tt.steps, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads(head + tt.steps)
				spec := s.q.specs[task1]
				spec.Disruptive = true
				s.q.specs[task1] = spec
				l, reached := newLife(t, s), 0
				s.hosts.dial = func(context.Context, fleet.Host) error {
					if reached++; reached > tt.reach {
						return fault(remote.KindUnreachable, false, errAway)
					}
					return nil
				}
				s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					boot := map[bool]string{true: bootB, false: bootA}[reached > 1] + "\n"
					switch {
					case strings.Contains(c.Shell, "boot_id"):
						return remote.Result{Output: remote.Output{Head: []byte(boot)}}, nil
					case c.Shell == "exit 1":
						return remote.Result{ExitCode: 1}, nil
					case tt.steps == back:
						return remote.Result{ExitCode: scripts.NotYet}, nil
					}
					return remote.Result{}, nil
				}
				r := l.live(30)
				if got := strings.TrimPrefix(inWords(r, false), "end "); got != tt.want {
					t.Errorf("%s: %s, want %s\n%s", got, r.Error, tt.want, strings.Join(l.log, "\n"))
				}
			})
		})
	}
}

const waiting = `
name: waiting
arguments: {pause: {type: duration, default: 2h}}
timeout: 20s
steps:
  - name: start
    run: start
    save: {soak: {match: '(\d+)'}}
  - name: soak
    wait: {for: "{{saved.soak}}", release: true}
  - name: until
    wait: {until: status, every: 1m, limit: "{{pause}}"}
    save: {state: {match: '^state (\S+)', default: none}}
  - name: tell
    run: tell {{saved.state}}
`

func TestAWaitFreesItsWorker(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(waiting)
		l, asked := newLife(t, s), 0
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			switch c.Shell {
			case "start":
				return remote.Result{Output: remote.Output{Head: []byte("86400\n")}}, nil
			case "status":
				if asked++; asked < 5 {
					return remote.Result{ExitCode: 75, Output: remote.Output{Head: []byte("state hidden\n")}}, nil
				}
				return remote.Result{Output: remote.Output{Head: []byte("state omnipresent\n")}}, nil
			}
			return remote.Result{}, nil
		}
		got := l.live(20)
		if got.Outcome != jobs.Succeeded {
			t.Errorf("%+v", got)
		}
		want := []string{
			"0s wait 24h0m0s step 2 (soak): waits until " + jobs.TimeOf(jobs.MicrosOf(l.began).Add(24*time.Hour)).String(),
			"24h0m0s wait 1m0s step 3 (until): waits: the host said: \"state hidden\"",
			"24h1m0s wait 1m0s step 3 (until): waits: the host said: \"state hidden\"",
			"24h2m0s wait 1m0s step 3 (until): waits: the host said: \"state hidden\"",
			"24h3m0s wait 1m0s step 3 (until): waits: the host said: \"state hidden\"",
			"24h4m0s end succeeded ",
		}
		if diff := cmp.Diff(want, l.log); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if ran := strings.Join(l.ran, " "); ran != "start status status status status status tell 'omnipresent'" {
			t.Errorf("ran %s", ran)
		}
		if n := strings.Count(l.said, "state hidden"); n != 1 {
			t.Errorf("what does not change is in the transcript %d times:\n%s", n, l.said)
		}
		if l.held > 5*time.Second {
			t.Errorf("workers were held for %s", l.held)
		}
	})
}

func TestAWaitIsNotCutShort(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads("name: a\ntimeout: 20s\nsteps: [{name: b, wait: {for: 1h, release: true}}, {name: c, run: ls}]\n")
		l := newLife(t, s)
		first := l.live(1)
		if first.Kind != jobs.KindWait || !first.Release || first.Delay != time.Hour || first.Step != 0 {
			t.Fatalf("%+v", first)
		}
		if len(l.ran) != 0 {
			t.Errorf("a wait for a time went to the host: %v", l.ran)
		}
		l.grant.Step, l.grant.Saved, l.grant.Mode = first.Step, first.Saved, jobs.ModeContinue
		<-time.After(20 * time.Minute) // the task was paused, and the job comes back too early
		if r := l.live(1); r.Kind != jobs.KindWait || r.Delay.Round(time.Second) != 40*time.Minute || !r.Release {
			t.Errorf("%+v", r)
		}
	})
}

func TestAWaitHasALimit(t *testing.T) {
	for _, tt := range []struct{ late, want string }{
		{"", "failed operator"}, {", on_late: unknown", "unknown operator"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads("name: a\ntimeout: 20s\nsteps: [{name: b, wait: {until: ls, every: 1m, limit: 150s" + tt.late + "}}]\n")
				s.hosts.run = func(context.Context, fleet.Host, remote.Command) (remote.Result, error) {
					return remote.Result{ExitCode: 75, Output: remote.Output{Head: []byte("hidden")}}, nil
				}
				l := newLife(t, s)
				l.live(20)
				const said = `: the host said: "hidden"`
				want := []string{"0s wait 1m0s waits" + said, "1m0s wait 1m0s waits" + said,
					"2m0s wait 30s waits" + said, "2m30s end " + tt.want + " not so after 2m30s" + said}
				for i := range l.log {
					l.log[i] = strings.Replace(l.log[i], "29.998s", "30s", 1)
				}
				if diff := cmp.Diff(want, l.log); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestAWaitOutlivesAHostThatIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads("name: a\ntimeout: 20s\nsteps: [{name: b, wait: {until: ls, every: 1m, limit: 1h}}]\n")
		l := newLife(t, s)
		s.hosts.dial = func(context.Context, fleet.Host) error {
			if time.Since(l.began) < 30*time.Minute {
				return fault(remote.KindUnreachable, false, errAway)
			}
			return nil
		}
		if got := l.live(100); got.Outcome != jobs.Succeeded || l.grant.Tries != 0 {
			t.Errorf("%+v, %d tries\n%s", got, l.grant.Tries, strings.Join(l.log, "\n"))
		}
	})
}

const rebooting = `
name: rebooting
disruptive: true
timeout: 20s
steps:
  - name: boot
    reboot: {command: begin, ready: up}
  - name: tell
    run: tell
`

const (
	bootA = "11111111-2222-3333-4444-555555555555"
	bootB = "aaaaaaaa-2222-3333-4444-555555555555"
)

// machine is a host that reboots.
type machine struct {
	began  time.Time
	told   time.Time // the time of the command; zero: none yet
	down   time.Duration
	up     time.Duration
	ready  time.Duration // counted from told
	cuts   bool          // the connection is cut, so the command never ends
	boots  int
	key    bool // the host shows another key when it is back
	silent bool // the host cannot read its boot id
}

func (m *machine) dial(context.Context, fleet.Host) error {
	if m.told.IsZero() {
		return nil
	}
	d := time.Since(m.told)
	switch {
	case d >= m.down && d < m.up:
		return fault(remote.KindUnreachable, false, errAway)
	case d >= m.up && m.key:
		return fault(remote.KindHostKey, false, errors.New("another key"))
	}
	return nil
}

func (m *machine) run(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
	say := func(code int, text string) (remote.Result, error) {
		return remote.Result{ExitCode: code, Output: remote.Output{Head: []byte(text + "\n")}}, nil
	}
	back := !m.told.IsZero() && time.Since(m.told) >= m.up
	switch c.Shell {
	case "cat /proc/sys/kernel/random/boot_id":
		switch {
		case m.silent:
			return say(1, "no such file")
		case back:
			return say(0, bootB)
		}
		return say(0, bootA)
	case "begin":
		if m.told.IsZero() {
			m.told = time.Now()
		}
		m.boots++
		if m.cuts {
			return remote.Result{ExitCode: -1}, fault(remote.KindLost, true, errAway)
		}
		return say(0, "")
	case "up":
		if time.Since(m.told) < m.ready {
			return say(75, "starting")
		}
		return say(0, "well")
	}
	return say(0, "")
}

func TestReboots(t *testing.T) {
	far := time.Hour
	for _, tt := range []struct {
		name string
		m    machine
		lost map[int]bool
		want string
		ran  string // how often the host got the command
	}{
		{"and is back", machine{down: 3 * time.Second, up: 70 * time.Second}, nil, "succeeded", "1"},
		{"and cuts the line", machine{up: 70 * time.Second, cuts: true}, nil, "succeeded", "1"},
		{"and takes its time to be ready", machine{up: 40 * time.Second, ready: 2 * time.Minute}, nil, "succeeded", "1"},
		{"and does not go down", machine{down: far, up: far}, nil,
			"failed transient keep step 1 (boot): not ready after 7 probes: it has not gone down yet", "1"},
		{"and is not back", machine{up: far}, nil,
			"unknown operator keep step 1 (boot): not back after 6 probes, away since 2000-01-01T00:00:30Z: " +
				"connect 127.0.0.1:22: connection refused", "1"},
		{"and is back as another", machine{up: 40 * time.Second, key: true}, nil,
			"failed operator keep step 1 (boot): it came back with another host key: connect 127.0.0.1:22: another key", "1"},
		{"without a boot id", machine{silent: true}, nil,
			"failed operator step 1 (boot): its boot id cannot be read; the host said: \"no such file\"", "0"},
		{"and the worker is lost with the command", machine{down: 3 * time.Second, up: 70 * time.Second},
			map[int]bool{1: true}, "succeeded", "2"},
		{"and the worker is lost with a probe", machine{down: 3 * time.Second, up: 70 * time.Second},
			map[int]bool{2: true, 3: true}, "succeeded", "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads(rebooting)
				spec := s.q.specs[task1]
				spec.Disruptive = true
				s.q.specs[task1] = spec
				m := tt.m
				m.began = time.Now()
				s.hosts.dial, s.hosts.run = m.dial, m.run
				l := newLife(t, s)
				l.lost = tt.lost
				r := l.live(30)
				text := strings.TrimSpace(strings.TrimPrefix(inWords(r, false), "end ") + " " + r.Error)
				if text != tt.want || fmt.Sprint(m.boots) != tt.ran {
					t.Errorf("%s, told %d times\n%s", text, m.boots, strings.Join(l.log, "\n"))
				}
				if l.held > 10*time.Second {
					t.Errorf("workers were held for %s", l.held)
				}
			})
		})
	}
}

// The queue has the boot id before the host gets the command: otherwise nobody could find out
// afterwards whether the host has rebooted.
func TestTheBootIsKnownBeforeTheReboot(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(rebooting)
		m := machine{up: time.Minute}
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			if c.Shell == "begin" && (len(s.q.asked) != 1 || !strings.Contains(s.q.asked[0].Saved, bootA)) {
				t.Errorf("asked %+v", s.q.asked)
			}
			return m.run(ctx, h, c)
		}
		if got := s.one(); got.Kind != jobs.KindVerify || got.Delay != 30*time.Second {
			t.Errorf("%+v", got)
		}
	})
	t.Run("and none if that cannot be kept", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *stand) {
			s.reads(rebooting)
			m := machine{up: time.Minute}
			s.hosts.run = m.run
			s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) { return jobs.Stop, nil }
			if got := s.one(); m.boots != 0 || got.Kind != jobs.KindBack {
				t.Errorf("%+v", got)
			}
		})
	})
}
