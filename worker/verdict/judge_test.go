package verdict

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// mayHave is the memory of a step that may have run.
const mayHave = "{" + jobs.MayHaveRun + "}"

var (
	connecting = scripts.Action{}
	once       = scripts.Action{Kind: scripts.KindRun, Name: "s"}
	twice      = scripts.Action{Kind: scripts.KindRun, Name: "s", Repeatable: true}
)

// inWords returns a result on one line, without its texts.
func inWords(r jobs.Result, goOn bool) string {
	if goOn {
		return "go on"
	}
	words := []string{string(r.Kind)}
	for _, w := range []string{string(r.Outcome), string(r.Class)} {
		if w != "" {
			words = append(words, w)
		}
	}
	if r.Delay > 0 {
		words = append(words, r.Delay.String())
	}
	if r.KeepLock {
		words = append(words, "keep")
	}
	return strings.Join(words, " ")
}

// Each case is a kind of trouble at a point of the job. Two tries of the policy's three are left
// ("first"), or this was the last one.
func TestJudge(t *testing.T) {
	const (
		retry  = "retry 5s"
		spread = "retry 6.5s" // with a chance of 0.8
		later  = "retry 12s keep"
	)
	for _, tt := range []struct {
		kind          remote.Kind
		sent          bool
		action        scripts.Action
		first, repeat string // first and last try
	}{
		{remote.KindUnreachable, false, connecting, retry, "end unreachable transient"},
		{remote.KindThrottled, false, connecting, spread, "end unreachable transient"},
		{remote.KindNode, false, connecting, spread, "end failed transient"},
		{remote.KindHostKey, false, connecting, "end failed operator", "end failed operator"},
		{remote.KindAuth, false, connecting, "end failed operator", "end failed operator"},
		{remote.KindKey, false, connecting, "end failed operator", "end failed operator"},
		{remote.KindRefused, false, connecting, "end failed operator", "end failed operator"},
		{remote.KindInvalid, false, connecting, "end failed user", "end failed user"},
		{remote.KindTimeout, false, connecting, retry, "end unreachable transient"},
		{remote.KindLost, false, connecting, retry, "end unreachable transient"},
		{remote.KindCancelled, false, connecting, retry, "end unreachable transient"}, // the bound of connecting
		{"of tomorrow", false, connecting, retry, "end unreachable transient"},

		{remote.KindUnreachable, false, once, retry, "end unreachable transient"},
		{remote.KindThrottled, false, once, spread, "end unreachable transient"},
		{remote.KindNode, false, once, spread, "end failed transient"},
		{remote.KindRefused, false, once, "end failed operator", "end failed operator"},
		{remote.KindInvalid, false, once, "end failed user", "end failed user"},
		{remote.KindLost, false, once, retry, "end unreachable transient"},

		{remote.KindTimeout, true, once, "end timeout", "end timeout"},
		{remote.KindFailed, true, once, "end failed operator", "end failed operator"},
		{remote.KindNode, true, once, "end failed operator", "end failed operator"},
		{remote.KindInvalid, true, once, "end failed user", "end failed user"},
		{remote.KindLost, true, once, "end unknown operator keep", "end unknown operator keep"},
		{remote.KindCancelled, true, once, "end unknown operator keep", "end unknown operator keep"},
		{remote.KindUnreachable, true, once, "end unknown operator keep", "end unknown operator keep"},
		{"of tomorrow", true, once, "end unknown operator keep", "end unknown operator keep"},

		{remote.KindTimeout, true, twice, "end timeout", "end timeout"},
		{remote.KindLost, true, twice, later, "end unknown operator keep"},
		{remote.KindCancelled, true, twice, later, "end unknown operator keep"},
		{remote.KindUnreachable, true, twice, later, "end unknown operator keep"},
		{remote.KindUnreachable, false, twice, retry, "end unreachable transient"},
	} {
		name := fmt.Sprintf("%s/sent=%t/%s/repeatable=%t", tt.kind, tt.sent, tt.action.Kind, tt.action.Repeatable)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for tries, want := range map[int]string{0: tt.first, 1: tt.first, 2: tt.repeat, 9: tt.repeat} {
				f := Evidence{Grant: jobs.Grant{Tries: tries, Job: "j", Token: 9}, Policy: jobs.DefaultPolicy(), Steps: 1,
					Action: tt.action, Err: trouble(tt.kind, tt.sent, errors.New("words")), Busy: 12 * time.Second}
				r, goOn := Judge(f, 0.8)
				if got := inWords(r, goOn); got != want {
					t.Errorf("after %d tries: %s, want %s", tries, got, want)
				}
				if r.Job != "j" || r.Token != 9 || !strings.Contains(r.Error, "words") {
					t.Errorf("after %d tries: %+v", tries, r)
				}
			}
		})
	}
}

func TestJudgeWhenTheContextEnded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		cause  error
		sent   bool
		begun  bool
		action scripts.Action
		want   string
		text   string
	}{
		{"stop, connecting", context.Canceled, false, false, connecting, "back", "the worker was stopped"},
		{"stop, before the first step", context.Canceled, false, false, once, "back", "the worker was stopped"},
		{"stop, before a further step", context.Canceled, false, true, once, "wait", "the worker was stopped"},
		{"stop, in a step", context.Canceled, true, true, once, "end unknown operator keep",
			"the worker was stopped: it is not known whether the step ran to its end"},
		{"stop, in one that may run twice", context.Canceled, true, true, twice, "retry 12s keep",
			"the worker was stopped: it is not known whether the step ran to its end"},
		{"overdue, connecting", ErrOverdue, false, false, connecting, "retry 5s",
			"its deadline was reached: connect 127.0.0.1:22: words"},
		{"overdue, in a step", ErrOverdue, true, false, once, "end unknown operator keep",
			"its deadline was reached: it is not known whether the step ran to its end"},
		{"overdue, in one that may run twice", ErrOverdue, true, false, twice, "retry 12s keep",
			"its deadline was reached: it is not known whether the step ran to its end"},
	} {
		f := Evidence{Policy: jobs.DefaultPolicy(), Steps: 1, Begun: tt.begun, Action: tt.action, Cause: tt.cause,
			Err: trouble(remote.KindCancelled, tt.sent, errors.New("words")), Busy: 12 * time.Second}
		r, goOn := Judge(f, 0)
		if got := inWords(r, goOn); got != tt.want || r.Error != tt.text {
			t.Errorf("%s: %s %q, want %s %q", tt.name, got, r.Error, tt.want, tt.text)
		}
	}
}

func TestJudgeExits(t *testing.T) {
	t.Parallel()
	two, zero := 2, 0
	out := remote.Output{Head: []byte("reading\nline 7: no such table\n\n")}
	for _, tt := range []struct {
		name string
		f    Evidence
		want jobs.Result
		goOn bool
	}{
		{
			name: "the last step succeeds",
			f:    Evidence{Steps: 2, Step: 1, Action: once},
			want: jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Succeeded, ExitCode: &zero, Step: 1},
		},
		{
			name: "an upload has no exit code",
			f:    Evidence{Steps: 1, Action: scripts.Action{Kind: scripts.KindUpload, Name: "u"}},
			want: jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Succeeded},
		},
		{name: "one before it succeeds", f: Evidence{Steps: 2, Action: once}, goOn: true},
		{
			name: "exit code and last line",
			f:    Evidence{Steps: 1, Action: once, Result: remote.Result{ExitCode: 2, Output: out}},
			want: jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Failed, Class: jobs.ClassUser, ExitCode: &two,
				Error: `exit 2; the host said: "line 7: no such table"`},
		},
		{
			name: "one step of many",
			f:    Evidence{Steps: 3, Step: 1, Action: once, Result: remote.Result{ExitCode: 2}},
			want: jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Failed, Class: jobs.ClassUser, ExitCode: &two,
				Step: 1, Error: "step 2 (s): exit 2"},
		},
		{
			name: "a signal",
			f:    Evidence{Steps: 1, Action: once, Result: remote.Result{ExitCode: 2, Signal: "SEGV"}},
			want: jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Failed, Class: jobs.ClassUser, ExitCode: &two,
				Error: "ended by signal SEGV"},
		},
		{
			name: "a timeout says what was heard last",
			f: Evidence{Steps: 1, Action: once, Result: remote.Result{ExitCode: 124, Output: out},
				Err: trouble(remote.KindTimeout, true, errors.New("ran over its bound of 20s"))},
			want: jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Timeout,
				Error: `ran over its bound of 20s; the host said: "line 7: no such table"`},
		},
	} {
		got, goOn := Judge(tt.f, 0)
		if diff := cmp.Diff(tt.want, got); diff != "" || goOn != tt.goOn {
			t.Errorf("%s: go on = %t, (-want +got):\n%s", tt.name, goOn, diff)
		}
	}
}

// People read "unreachable" as "nothing ran".
func TestAJobEndsUnreachableOnlyIfNothingRan(t *testing.T) {
	t.Parallel()
	gone := trouble(remote.KindUnreachable, false, errors.New("no route"))
	for _, tt := range []struct {
		name string
		f    Evidence
		want string
	}{
		{"nothing ran", Evidence{Err: gone}, "end unreachable transient"},
		{"earlier steps ran", Evidence{Err: gone, Step: 2, Steps: 3}, "end failed transient"},
		{"a try of the first step ran", Evidence{Err: gone, Memory: Memory{Again: 1}}, "end failed transient"},
		{"it was disturbed before", Evidence{Err: gone, Step: 2, Steps: 3, Disruptive: true,
			Memory: Memory{Disturbed: true}}, "end unknown operator"},
		{"what may not disturb it was done before", Evidence{Err: gone, Step: 2, Steps: 3,
			Memory: Memory{Disturbed: true}}, "end failed transient"},
		{"an earlier attempt may have run", Evidence{Err: gone, Grant: jobs.Grant{Saved: mayHave}},
			"end unknown operator"},
		{"busy, and an earlier attempt may have run", Evidence{Grant: jobs.Grant{Saved: mayHave},
			Err: trouble(remote.KindThrottled, false, errors.New("full"))}, "end unknown operator"},
	} {
		tt.f.Grant.Tries, tt.f.Policy = 2, jobs.DefaultPolicy()
		tt.f.Memory.MayHaveRun = Remembered(tt.f.Grant.Saved)
		r, goOn := Judge(tt.f, 0)
		if got := inWords(r, goOn); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if !strings.HasPrefix(r.Error, "3 tries, the last: connect 127.0.0.1:22: ") {
			t.Errorf("%s: %q", tt.name, r.Error)
		}
	}
}

// A host that was disturbed and then lets nobody in may be in any state.
func TestADisturbedHostThatRefusesALoginFreezesItsGroup(t *testing.T) {
	t.Parallel()
	for _, k := range []remote.Kind{remote.KindHostKey, remote.KindAuth, remote.KindRefused} {
		for _, disturbed := range []bool{true, false} {
			f := Evidence{Err: trouble(k, false, errors.New("no")), Step: 2, Steps: 3, Disruptive: true,
				Memory: Memory{Disturbed: disturbed}}
			r, goOn := Judge(f, 0)
			if goOn || r.Outcome != jobs.Failed || r.Class != jobs.ClassOperator || r.KeepLock != disturbed {
				t.Errorf("%s, disturbed before: %t: %s %s, frozen %t", k, disturbed, r.Outcome, r.Class, r.KeepLock)
			}
		}
	}
}

func TestErrorsWithoutAKind(t *testing.T) {
	t.Parallel()
	strange := errors.New("strange")
	for _, tt := range []struct {
		action scripts.Action
		want   string
	}{
		{connecting, "retry 5s"},
		{once, "end unknown operator keep"},
		{twice, "retry 5s keep"},
	} {
		r, goOn := Judge(Evidence{Policy: jobs.DefaultPolicy(), Steps: 1, Action: tt.action, Err: strange}, 0)
		if got := inWords(r, goOn); got != tt.want || r.Error != "strange" {
			t.Errorf("%+v: %s %q, want %s", tt.action, got, r.Error, tt.want)
		}
	}
}

func TestAStepWithoutEnoughTimeCountsAsATryOnlyAfterAnother(t *testing.T) {
	t.Parallel()
	f := Evidence{Policy: jobs.DefaultPolicy(), Steps: 3, Step: 1, Action: once}
	late := Hindrance{Late: true, Why: "why"}
	if r := f.NotStarted(late); r.Kind != jobs.KindBack || r.Error != "step 2 (s): not started: why" {
		t.Errorf("nothing begun: %+v", r)
	}
	f.Begun = true
	if r := f.NotStarted(late); r.Kind != jobs.KindRetry || r.Step != 1 || r.KeepLock {
		t.Errorf("begun: %+v", r)
	}
	f.Grant.Tries = 2
	if r := f.NotStarted(late); r.Outcome != jobs.Failed || r.Class != jobs.ClassTransient {
		t.Errorf("last try: %+v", r)
	}
}

func TestRetriesOfThrottledHostsAreSpread(t *testing.T) {
	t.Parallel()
	f := Evidence{Policy: jobs.Policy{Tries: 2, Delay: 10 * time.Second},
		Err: trouble(remote.KindThrottled, false, errors.New("full"))}
	for chance, want := range map[float64]time.Duration{0: 5 * time.Second, 0.5: 10 * time.Second,
		1: 15 * time.Second} {
		if r, _ := Judge(f, chance); r.Delay != want {
			t.Errorf("chance %g: %s, want %s", chance, r.Delay, want)
		}
	}
}

// trouble is an error of a connection to a host, or of a command there.
func trouble(k remote.Kind, sent bool, err error) error {
	op := "run"
	if !sent {
		op = "connect"
	}
	return &remote.Error{Op: op, Host: "fw1", Addr: "127.0.0.1:22", Kind: k, Sent: sent, Err: err}
}
