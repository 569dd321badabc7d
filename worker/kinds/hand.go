package kinds

import (
	"context"
	"io"
	"time"

	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/playbook"
	"muster/worker/said"
	"muster/worker/verdict"
)

// A Hand holds all that an attempt lends to the kind of the step in hand. A kind keeps in Memory
// its state for the next attempt, and in its own struct its state in this one.
type Hand struct {
	Job     Job
	Course  Course
	Notes   Notes
	Host    Host
	Permits Permits
	Times   Times
	Records Records
	Gate    Gate

	Memory  *verdict.Memory
	Said    *said.Transcript
	Stop    context.Context      // ends with the attempt, and when the job is cancelled
	Secrets map[string]seal.Text // by argument
	Alone   bool                 // the runbook has no other step
	Clock   func() time.Duration // CLOCK_BOOTTIME
	Node
}

// A Node holds what the node has for steps.
type Node struct {
	// Blobs opens a stored content of so many bytes by its SHA-256; nil: there are none.
	Blobs func(ctx context.Context, sum string, size int64) (io.ReadSeekCloser, error)

	Player playbook.Player // nil: the node runs no playbooks
}

// A Job knows the job of the attempt.
type Job interface {
	// Evidence returns the evidence of this moment, for decisions about a step.
	Evidence(action scripts.Action) verdict.Evidence

	// Now returns the time of Redis, as far as the attempt knows it.
	Now() jobs.Micros

	// Left returns the rest of the time of the attempt.
	Left() time.Duration

	// Spend counts the time that follows as u, until the caller calls done.
	Spend(u jobs.Use) (done func())

	// Chance returns a number from 0 to 1, which spreads the retries of hosts.
	Chance() float64
}

// A Course leads the job from step to step.
type Course interface {
	// Begin notes that the step begins on the host.
	Begin()

	// Disturb notes that a step began which may disturb the host.
	Disturb(action scripts.Action)

	// GoOn leaves the step behind, with the values that it saved.
	GoOn(saved map[string]string)

	// Rescue leads to the on_fail of a step that failed with r.
	Rescue(action scripts.Action, r jobs.Result)
}

// Notes writes about the step, to the transcript and to the memory of the job.
type Notes interface {
	// Remark puts a line of muster about the step into the transcript.
	Remark(name, more string)

	// Answered notes whether the host said how a command ended, by the error of the command.
	Answered(err error)

	// Hear takes the output of a command, and notes whether a part of it was lost.
	Hear(r *remote.Result)
}

// A Host is the connection to the host of the job. Its errors are those of package remote.
type Host interface {
	Run(ctx context.Context, c remote.Command) (remote.Result, error)
	Upload(ctx context.Context, u remote.Upload) error

	// Reconnect replaces the connection by a new one.
	Reconnect(ctx context.Context) error
}

// Permits asks the queue for a go, for steps that need one right before they begin.
type Permits interface {
	// Ask asks the queue for a go, and keeps the memory of the job there. An error says that the
	// step must not begin.
	Ask() error

	// Refused returns the result of a step that must not begin because of such an error.
	Refused(ctx context.Context, action scripts.Action, err error) jobs.Result
}

// Times decides by windows and freezes whether a step may begin. Admit and AdmitAgain return nil if
// it may.
type Times interface {
	// Admit decides about a step that has not begun.
	Admit(ctx context.Context, action scripts.Action) *verdict.Hindrance

	// AdmitAgain decides about a step that an earlier attempt got a go for, and may have begun.
	AdmitAgain(ctx context.Context, action scripts.Action) *verdict.Hindrance

	// Old reports whether the decision about the step in hand is too old to rely on.
	Old() bool

	// Defer returns the result of a job that waits until its step may begin.
	Defer(f verdict.Evidence, h verdict.Hindrance) jobs.Result
}

// Records makes the records that the host keeps of the step.
type Records interface {
	// Record returns the record of the step; nil if the host keeps none. With look the host starts
	// nothing.
	Record(ctx context.Context, action scripts.Action, look bool) *remote.Record

	// Numbered returns a record of the step under the number of a try.
	Numbered(try int) *remote.Record

	// Run returns the run to which the next attempt may attach; the zero value if it may not attach
	// to this one.
	Run(action scripts.Action, of *remote.Record) jobs.Run
}

// A Gate asks the queue how a person has answered.
type Gate interface {
	// Answer returns the answer; its word is empty if nobody has answered.
	Answer(ctx context.Context) (jobs.GateAnswer, error)

	// Close ends the wait for an answer, and returns the answer if somebody gave one meanwhile.
	Close(ctx context.Context) (jobs.GateAnswer, error)
}

// fresh returns f with the memory of this moment.
func (h Hand) fresh(f verdict.Evidence) verdict.Evidence {
	f.Memory = *h.Memory
	return f
}

// order returns the order that has cancelled the job; nil if nobody has.
func (h Hand) order() *verdict.StopOrder { return verdict.StoppedBy(h.Stop) }

// goCameLate returns the result of a reboot or a change whose go took so long that it must not
// begin any more. The question for the go announced the beginning to the queue; the result retracts
// that.
func (h Hand) goCameLate(action scripts.Action) (r jobs.Result, late bool) {
	if !h.Times.Old() {
		return jobs.Result{}, false
	}
	begun := h.Memory.Probe
	h.Memory.Probe = nil
	if shut := h.Times.Admit(h.Stop, action); shut != nil {
		return h.Times.Defer(h.Job.Evidence(action), *shut), true
	}
	h.Memory.Probe = begun
	return jobs.Result{}, false
}
