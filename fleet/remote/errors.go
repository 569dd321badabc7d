package remote

import (
	"errors"
	"fmt"
	"time"
)

// Kind classifies an [Error]; callers decide by it.
type Kind string

// The kinds of trouble. "Never ran" marks those for which it is certain that the failed call
// has done nothing on the host.
const (
	// KindUnreachable: refused, no route, unknown name, or too slow to run anything.
	// Never ran; a later try may succeed.
	KindUnreachable Kind = "unreachable"

	// KindThrottled: the host has too many connections or sessions at the moment
	// (MaxStartups, MaxSessions, penalties). Never ran; retry later.
	KindThrottled Kind = "throttled"

	// KindHostKey: the host could not prove the identity that the inventory expects. Never
	// ran; a person must look.
	KindHostKey Kind = "host_key"

	// KindAuth: the host refuses the login, or its sudo refuses to switch to the user for
	// commands. Never ran; a person must look.
	KindAuth Kind = "auth"

	// KindKey: the private key or the agent on this node cannot be used. Never ran; a
	// person must look at this node.
	KindKey Kind = "key"

	// KindNode: this node lacks a resource, such as file descriptors, or could not read
	// the input of the command. Look at Sent.
	KindNode Kind = "node"

	// KindRefused: the host answers but refuses the operation: no common algorithm, no
	// sessions, no commands. Never ran; a person must look.
	KindRefused Kind = "refused"

	// KindInvalid: the request is invalid, such as a command with a NUL byte.
	// Never ran.
	KindInvalid Kind = "invalid"

	// KindFailed: the host tried and failed. Only for uploads: a command that ends with
	// another code than 0 is a Result and no error.
	KindFailed Kind = "failed"

	// KindTimeout: the command exceeded its bound, and the host stopped it.
	KindTimeout Kind = "timeout"

	// KindLost: the command was sent, and its end was not seen. Nobody knows whether it
	// ran, or still runs.
	KindLost Kind = "lost"

	// KindStopped: the caller stopped the command, see Command.Stop. If it had been
	// sent, its whole process group has ended on the host; otherwise it was never
	// started.
	KindStopped Kind = "stopped"

	// KindRunning: the caller stopped the command, but the host reports that a part of its
	// process group still runs.
	KindRunning Kind = "running"

	// KindRecord: the host cannot keep the record that its fence requires, or could not
	// write it. Never ran; a person must look.
	KindRecord Kind = "record"

	// KindBusy: another step runs on the host, see Error.Wait. Never ran.
	KindBusy Kind = "busy"

	// KindWork: the step in question still runs, see Error.Wait and Record.Glance.
	KindWork Kind = "work"

	// KindStale: the host has seen a newer attempt, or the marker of a newer job of the
	// group. Never ran.
	KindStale Kind = "stale"

	// KindUntold: an earlier attempt may have started the step, and the host cannot tell.
	// This call started nothing. See Record.Again.
	KindUntold Kind = "untold"

	// KindNever: the step never began. See Record.Look.
	KindNever Kind = "never"

	// KindGone: the step began, and its end will never be known: the host has no record of
	// the end, and no process of the step is alive.
	KindGone Kind = "gone"

	// KindMute: the host should have kept a record but answered something else. Nobody
	// knows what it did with the command.
	KindMute Kind = "mute"

	// KindCancelled: the caller's context ended. Look at Sent.
	KindCancelled Kind = "cancelled"
)

// Error is the error of every call that concerns a host.
type Error struct {
	Op   string // connect, run or upload
	Host string // name of the host
	Addr string // its address and port
	Kind Kind
	Wait time.Duration // KindBusy, KindWork: it may take so much longer
	Sent bool          // the command had been sent, so it may have run, whatever Kind is
	Err  error
}

// Error returns a text such as "connect fw001 (10.0.0.1:22): connection refused".
func (e *Error) Error() string {
	return fmt.Sprintf("%s %s (%s): %v", e.Op, e.Host, e.Addr, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err, or "" if err does not come from this package.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// A doubtError wraps the reason why something is not known, and says what that is.
type doubtError struct {
	why           error
	before, after string
}

// Error returns, for example, "nothing was heard of it for 10s: it is not known whether …".
func (e *doubtError) Error() string { return e.before + e.why.Error() + e.after }

// Unwrap returns the reason.
func (e *doubtError) Unwrap() error { return e.why }

// Cause returns the reason inside a doubtError, for callers that phrase the doubt in their own
// words. It returns any other error unchanged.
func Cause(err error) error {
	var doubt *doubtError
	if errors.As(err, &doubt) {
		return Cause(doubt.why)
	}
	return err
}

// target identifies the host of a call in errors.
type target struct {
	name, addr string
	jump       []string // names of the jump hosts
}

func (t target) fault(op string, kind Kind, err error) error {
	return &Error{Op: op, Host: t.name, Addr: t.addr, Kind: kind, Err: err}
}

func (t target) faultSent(op string, kind Kind, err error) error {
	return &Error{Op: op, Host: t.name, Addr: t.addr, Kind: kind, Sent: true, Err: err}
}
