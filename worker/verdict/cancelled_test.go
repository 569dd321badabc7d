package verdict

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

var byBob = &StopOrder{"bob: wrong ruleset"}

// A cancelled job ends whatever goes wrong with it, and however many tries are left.
func TestACancelledJobEndsAtOnceWithATrueOutcome(t *testing.T) {
	t.Parallel()
	const (
		notBegun = "end cancelled: bob: wrong ruleset; stopped before step 1"
		before   = "end cancelled: bob: wrong ruleset; stopped before step 1 (s)"
		unknown  = "end unknown operator keep: cancel requested, not known whether it still runs: " +
			"bob: wrong ruleset; words"
	)
	for _, tt := range []struct {
		kind   remote.Kind
		sent   bool
		action scripts.Action
		want   string
	}{
		{remote.KindStopped, true, once, "end cancelled: bob: wrong ruleset; stopped on the host"},
		{remote.KindStopped, true, twice, "end cancelled: bob: wrong ruleset; stopped on the host"},
		{remote.KindRunning, true, once,
			"end unknown operator keep: cancel requested, still running: bob: wrong ruleset; words"},
		{remote.KindRunning, true, twice,
			"end unknown operator keep: cancel requested, still running: bob: wrong ruleset; words"},
		{remote.KindLost, true, once, unknown},
		{remote.KindLost, true, twice, unknown},
		{remote.KindCancelled, true, twice, unknown},
		{remote.KindUnreachable, true, twice, unknown},
		{"of tomorrow", true, twice, unknown},
		{"", true, once, unknown},
		{remote.KindTimeout, true, twice, "end timeout: words"},
		{remote.KindFailed, true, twice, "end failed operator: words"},
		{remote.KindNode, true, twice, "end failed operator: words"},
		{remote.KindInvalid, true, twice, "end failed user: words"},

		{remote.KindStopped, false, once, before},
		{remote.KindCancelled, false, once, before},
		{remote.KindThrottled, false, twice, before},
		{remote.KindUnreachable, false, connecting, notBegun},
		{remote.KindCancelled, false, connecting, notBegun},
		{"", false, connecting, notBegun},
		{remote.KindAuth, false, connecting, "end failed operator: connect 127.0.0.1:22: words"},
		{remote.KindHostKey, false, connecting, "end failed operator: connect 127.0.0.1:22: words"},
	} {
		for _, tries := range []int{0, 9} {
			err := trouble(tt.kind, tt.sent, errors.New("words"))
			if tt.kind == "" {
				err = errors.New("words") // an error of no kind
			}
			f := Evidence{Grant: jobs.Grant{Tries: tries}, Policy: jobs.DefaultPolicy(), Steps: 1, Order: byBob,
				Action: tt.action, Result: remote.Result{ExitCode: -1}, Err: err}
			r, goOn := Judge(f, 0.8)
			if got := inWords(r, goOn) + ": " + r.Error; got != tt.want || r.ExitCode != nil {
				t.Errorf("%s, sent %t, %+v:\n got %s\nwant %s", tt.kind, tt.sent, tt.action, got, tt.want)
			}
		}
	}
}

func TestTheResultOfACancelledJobSaysHowItsStepEnded(t *testing.T) {
	t.Parallel()
	stopped := trouble(remote.KindStopped, true, errors.New("words"))
	code := 143
	for _, tt := range []struct {
		name string
		f    Evidence
		want jobs.Result
		goOn bool
	}{
		{"the exit code is said",
			Evidence{Steps: 1, Action: once, Err: stopped, Result: remote.Result{ExitCode: code}},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Cancelled, ExitCode: &code,
				Error: "bob: wrong ruleset; stopped on the host"}, false},
		{"a step of many",
			Evidence{Steps: 3, Step: 1, Action: once, Err: stopped, Result: remote.Result{ExitCode: -1}},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Cancelled, Step: 1,
				Error: "bob: wrong ruleset; stopped on the host in step 2 (s)"}, false},
		{"an upload has no exit code",
			Evidence{Steps: 1, Action: scripts.Action{Kind: scripts.KindUpload, Name: "u"}, Err: stopped},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Cancelled,
				Error: "bob: wrong ruleset; stopped on the host"}, false},
		{"it ended by itself", Evidence{Steps: 1, Action: once},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Succeeded, ExitCode: new(int)}, false},
		{"it ended by itself, and there are more steps", Evidence{Steps: 2, Action: once}, jobs.Result{}, true},
		{"its deadline came first", Evidence{Steps: 2, Action: once, Cause: ErrOverdue,
			Err: trouble(remote.KindCancelled, true, errors.New("words"))},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Unknown, Class: jobs.ClassOperator, KeepLock: true,
				Error: "cancel requested, not known whether it still runs: bob: wrong ruleset; " +
					"step 1 (s): its deadline was reached"}, false},
		{"an earlier attempt may have run", Evidence{Steps: 1, Action: once,
			Grant: jobs.Grant{Saved: mayHave}, Err: trouble(remote.KindStopped, false, errors.New("words"))},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Unknown, Class: jobs.ClassOperator, Saved: mayHave,
				Error: "bob: wrong ruleset; stopped before step 1 (s); an earlier attempt may have started the step"},
			false},
	} {
		tt.f.Order, tt.f.Memory = byBob, Recall(tt.f.Grant.Saved)
		got, goOn := Judge(tt.f, 0)
		if diff := cmp.Diff(tt.want, got); diff != "" || goOn != tt.goOn {
			t.Errorf("%s: go on = %t, (-want +got):\n%s", tt.name, goOn, diff)
		}
	}
}

// A long note of the operator does not cut off the words about the job.
func TestALongNoteLeavesRoomForTheEndOfTheJob(t *testing.T) {
	t.Parallel()
	f := Evidence{Steps: 1, Action: once, Order: &StopOrder{"bob: " + strings.Repeat("why ö", 100)},
		Err: trouble(remote.KindStopped, true, errors.New("words"))}
	r, _ := Judge(f, 0)
	if !strings.HasPrefix(r.Error, "bob: why") || !strings.HasSuffix(r.Error, "…; stopped on the host") {
		t.Errorf("%q", r.Error)
	}
	f.Order = &StopOrder{}
	if r, _ := Judge(f, 0); r.Error != "cancelled; stopped on the host" {
		t.Errorf("without a note: %q", r.Error)
	}
}
