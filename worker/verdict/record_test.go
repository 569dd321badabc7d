package verdict

import (
	"errors"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// Each case is an answer of the host. The attempt that asks is the first one, or it comes after a
// lost worker, or after an attempt that did not see the end of its step.
func TestJudgeOfAHostWithRecords(t *testing.T) {
	t.Parallel()
	const (
		wait, keep, operator = "wait 5s", "end unknown operator keep", "end failed operator"
		unknown              = "end unknown operator"
	)
	lost := jobs.Grant{Mode: jobs.ModeLost, Bound: 20 * time.Second, Attempt: 2}
	heard := jobs.Grant{Mode: jobs.ModeContinue, Saved: `{"may_have_run":true,"asked":1}`, Attempt: 2}
	last := jobs.Grant{Mode: jobs.ModeContinue, Saved: `{"may_have_run":true,"asked":2}`, Tries: 2}
	for _, tt := range []struct {
		kind                     remote.Kind
		sent                     bool
		first, lost, heard, last string
	}{
		{remote.KindLost, true, wait, wait, wait, keep},
		{remote.KindCancelled, true, wait, wait, wait, keep},
		{remote.KindGone, true, unknown, unknown, unknown, unknown},
		{remote.KindMute, true, keep, keep, keep, keep},
		{remote.KindRunning, true, keep, keep, keep, keep},
		{remote.KindTimeout, true, "end timeout", "end timeout", "end timeout", "end timeout"},
		{remote.KindStopped, true, "end cancelled", "end cancelled", "end cancelled", "end cancelled"},
		{remote.KindRecord, false, operator, keep, unknown, unknown},
		{remote.KindStale, false, operator, keep, unknown, unknown},
		{remote.KindBusy, false, "retry 8s", "retry 8s keep", "retry 8s", unknown},
		{remote.KindUntold, false, operator, keep, unknown, unknown},
		{remote.KindNever, false, "back", "back", "back", "back"},
		{remote.KindUnreachable, false, "retry 5s", "retry 5s keep", "retry 5s", unknown},
	} {
		for i, g := range []jobs.Grant{{Mode: jobs.ModeFresh}, lost, heard, last} {
			want := []string{tt.first, tt.lost, tt.heard, tt.last}[i]
			g.Host = &fleet.Host{Name: "fw1", Fence: fleet.FenceAuto}
			err := &remote.Error{Op: "run", Kind: tt.kind, Sent: tt.sent, Wait: 8 * time.Second, Err: errors.New("words")}
			f := Evidence{Grant: g, Memory: Recall(g.Saved), Policy: jobs.DefaultPolicy(), Steps: 1, Action: once, Err: err,
				Busy: 12 * time.Second}
			r, goOn := Judge(f, 0.5)
			if got := inWords(r, goOn); got != want {
				t.Errorf("%s, %s %s: %s, want %s", tt.kind, g.Mode, g.Saved, got, want)
			}
			if again := r.Kind == jobs.KindWait || g.Mode == jobs.ModeLost && r.Kind == jobs.KindRetry; again &&
				!Remembered(r.Saved) {
				t.Errorf("%s, %s: it is forgotten that it may have run: %+v", tt.kind, g.Mode, r)
			}
		}
	}
}

// The greeting of the host has said that it keeps no record, so it could not answer later.
func TestAHostWithoutARecordIsNotAskedLater(t *testing.T) {
	t.Parallel()
	f := Evidence{Policy: jobs.DefaultPolicy(), Steps: 1, Action: once,
		Grant:  jobs.Grant{Host: &fleet.Host{Fence: fleet.FenceAuto}},
		Result: remote.Result{Unfenced: "flock"}, Err: trouble(remote.KindLost, true, errors.New("words"))}
	r, goOn := Judge(f, 0)
	if got := inWords(r, goOn); got != "end unknown operator keep" || r.Note != "unfenced: it lacks flock" {
		t.Errorf("%s, note %q", got, r.Note)
	}
}

// After a reboot the host says that nothing of the step is alive. So the step runs again without a
// wait for its bound, and the lock of the host is not kept.
func TestNobodyWaitsForAStepThatItsHostCallsDead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind   remote.Kind
		action scripts.Action
		want   string
	}{
		{remote.KindGone, twice, "retry 5s"},
		{remote.KindGone, once, "end unknown operator"},
		{remote.KindMute, twice, "retry 1h0m0s keep"},
		{remote.KindMute, once, "end unknown operator keep"},
	} {
		for _, mode := range []jobs.Mode{jobs.ModeFresh, jobs.ModeLost} {
			f := Evidence{Policy: jobs.DefaultPolicy(), Steps: 1, Action: tt.action, Busy: time.Hour,
				Grant: jobs.Grant{Mode: mode, Bound: time.Hour, Host: &fleet.Host{Fence: fleet.FenceAuto}},
				Err:   trouble(tt.kind, true, errors.New("words"))}
			r, goOn := Judge(f, 0)
			if got := inWords(r, goOn); got != tt.want || r.Kind == jobs.KindRetry && !Remembered(r.Saved) {
				t.Errorf("%s, %s: %s, kept %s; want %s", tt.kind, mode, got, r.Saved, tt.want)
			}
		}
	}
}
