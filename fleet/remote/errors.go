package remote

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what sort of trouble an [Error] is; callers decide by it.
type Kind string

// The kinds of trouble. Of those marked "never ran" it is certain that nothing
// was done on the host by the call that failed.
const (
	// KindUnreachable: refused, no route, no such name, or too slow to get as
	// far as running anything. Never ran; later it may work.
	KindUnreachable Kind = "unreachable"

	// KindThrottled: the host has too many connections or sessions at the
	// moment (MaxStartups, MaxSessions, penalties). Never ran; try again later.
	KindThrottled Kind = "throttled"

	// KindHostKey: the host is not who the inventory says. Never ran; a person
	// must look.
	KindHostKey Kind = "host_key"

	// KindAuth: the host does not let us in, or its sudo does not let us become the user whom
	// commands are to run as. Never ran; a person must look.
	KindAuth Kind = "auth"

	// KindKey: our own private key or agent cannot be used. Never ran; a person
	// must look at this node.
	KindKey Kind = "key"

	// KindNode: this node is short of something, like file descriptors, or what
	// it should have sent could not be read. Look at Sent.
	KindNode Kind = "node"

	// KindRefused: the host is there and will not do such a thing: no common
	// algorithm, no sessions, no commands. Never ran; a person must look.
	KindRefused Kind = "refused"

	// KindInvalid: the request makes no sense, like a command with a NUL byte.
	// Never ran.
	KindInvalid Kind = "invalid"

	// KindFailed: the host tried and said no. Only of uploads: a command that
	// ends with another code than 0 is a Result and no error.
	KindFailed Kind = "failed"

	// KindTimeout: the command ran over its bound and was stopped on the host.
	KindTimeout Kind = "timeout"

	// KindLost: the command was sent and no end of it was seen. It is not known
	// whether it ran, or runs still.
	KindLost Kind = "lost"

	// KindStopped: the command was to be stopped, see Command.Stop. If it had been
	// sent, it and all of its process group are gone from the host; else it was
	// never started.
	KindStopped Kind = "stopped"

	// KindRunning: the command was to be stopped, and the host says that something
	// of its process group is there still.
	KindRunning Kind = "running"

	// KindRecord: the host cannot keep the record that its fence requires, or could not
	// write it. Never ran; a person must look.
	KindRecord Kind = "record"

	// KindBusy: another step is at work on the host, see Error.Wait. Never ran.
	KindBusy Kind = "busy"

	// KindWork: the step that was asked about is at work, see Error.Wait and Record.Glance.
	KindWork Kind = "work"

	// KindStale: the host has seen a newer attempt, or the marker of a newer job of the
	// group. Never ran.
	KindStale Kind = "stale"

	// KindUntold: an earlier attempt may have started the step, and the host cannot tell.
	// This call started nothing. See Record.Again.
	KindUntold Kind = "untold"

	// KindNever: the step never began. See Record.Look.
	KindNever Kind = "never"

	// KindGone: the step began, and it will never be known how it ended: there is no end of
	// it on the host, and nothing of it is alive.
	KindGone Kind = "gone"

	// KindMute: the host was asked to keep a record and said something else. It is not known
	// what it made of the command.
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
	Wait time.Duration // KindBusy, KindWork: it may take so long yet
	Sent bool          // the command had been sent: it may have run, whatever Kind is
	Err  error
}

// Error reads like "connect fw001 (10.0.0.1:22): connection refused".
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

// A doubtError says what is not known, around the reason for which it is not.
type doubtError struct {
	why           error
	before, after string
}

// Error reads like "nothing was heard of it for 10s: it is not known whether the command ran".
func (e *doubtError) Error() string { return e.before + e.why.Error() + e.after }

// Unwrap returns the reason.
func (e *doubtError) Unwrap() error { return e.why }

// Cause returns the reason for which it is not known what a command did, without saying that it
// is not known: for who says that in words of his own. Any other error it returns as it is.
func Cause(err error) error {
	var doubt *doubtError
	if errors.As(err, &doubt) {
		return Cause(doubt.why)
	}
	return err
}

// target is the host of a call, as errors name it.
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
