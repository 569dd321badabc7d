package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/ssh"
)

// margin is the extra time beyond all bounds in which a host may report an end.
const margin = 5 * time.Second

// Command is a command for a host.
type Command struct {
	// Shell is the argument of sh -c on the host, whatever the login shell is. The
	// caller must quote the values in it.
	Shell string

	// Stdin is the input of the command; nil means no input. Its Read must not block
	// for long: if it does, Run returns without waiting for it.
	Stdin io.Reader

	// Bound is the time that the command may take. The host itself enforces it, in whole
	// seconds, rounded up. It must be positive.
	Bound time.Duration

	// Idle bounds the time without output and without reading input; then the
	// connection is closed. 0 means Config.Idle.
	Idle time.Duration

	// Stop, when closed, stops the command on the host: see KindStopped. Run returns
	// within five seconds. nil: nobody stops it.
	Stop <-chan struct{}

	// Record makes the host keep a record of the command, if its fence allows that. nil: the
	// command runs without a record.
	Record *Record

	// Live receives each byte of the output at once, in the order of Result.Output and
	// including the bytes that Result.Output omits. It must not block, because reading from
	// the host waits for it. Its errors are ignored. nil: nobody watches.
	Live io.Writer

	// Attached is called before the first byte of output that an earlier attempt began, with
	// the token of that attempt, or 0 if the host did not say. nil: no call.
	Attached func(token int64)

	// Began is called before the first byte of output if the host keeps records and reports that
	// it starts the command now. nil: no call.
	Began func()

	verb   string // for record.sh; empty: Record decides
	nonce  string // if the command must know it; empty: a new one
	litter string // a file to remove if the command is stopped; may be empty
}

// Result is the end of a command.
type Result struct {
	ExitCode int    // 128 + n if signal n ended it, -1 if no end was seen
	Signal   string // name of the signal, without SIG; mostly empty
	Output   Output
	Took     time.Duration // measured here, with the time on the network

	// Open says that the output was still open when the command had ended, so a part of it
	// may be missing: a process that the command left behind holds it open.
	Open bool

	// Lost says why the host could not keep output behind Output, such as a full disk. It is
	// empty if the host kept all, or keeps no record and sent it directly.
	Lost string

	// Attached says that the command had been started before, by this attempt or another, and
	// this is that result. Unfenced says what the host lacks to keep a record.
	Attached bool
	Unfenced string
}

// Run runs a command and waits for its end. A command that ends by itself, with any exit
// code, is a Result without error. The error is an [Error]; with KindTimeout the Result is
// complete, and with other kinds it has at least the output that arrived. If ctx ends, the
// connection is closed; that does not stop the command on the host.
func (c *Conn) Run(ctx context.Context, cmd Command) (Result, error) {
	if err := c.cannotTell("run", cmd); err != nil {
		return Result{ExitCode: -1}, err
	}
	result, err := c.run(ctx, "run", cmd)
	return c.attach(ctx, cmd, result, err)
}

func (c *Conn) run(ctx context.Context, op string, cmd Command) (Result, error) {
	nothing := Result{ExitCode: -1}
	nonce := cmp.Or(cmd.nonce, newNonce())
	line, err := remoteLine(cmd.Shell, cmd.Bound, nonce)
	verb := c.verb(cmd)
	if verb != "" && err == nil {
		err = cmd.Record.check(cmd)
		line = recordLine
	}
	if err == nil && cmd.Idle < 0 {
		err = fmt.Errorf("idle = %s: it cannot be negative", cmd.Idle)
	}
	if err != nil {
		return nothing, c.to.fault(op, KindInvalid, err)
	}
	if err := c.login.lasts(cmd.Bound); err != nil && !cmd.mayRun() && !cmd.looks() {
		return nothing, c.to.fault(op, KindKey, err)
	}
	if isClosed(cmd.Stop) && !cmd.mayRun() {
		return nothing, c.to.fault(op, KindStopped, errNotStarted)
	}
	if err := c.enter(ctx); err != nil {
		return nothing, c.to.fault(op, cancelledOr(ctx, KindUnreachable), err)
	}
	stop := context.AfterFunc(ctx, func() { c.fail(ended(ctx)) })
	defer stop()
	o := c.obey(cmd.Stop, cmd.mayRun())
	defer o.end()

	idle := cmd.Idle
	if idle == 0 {
		idle = c.cfg.Idle
	}
	s, err := c.openSession(idle, nonce, verb != "")
	if err != nil {
		<-c.slots
		if o.tooLate() {
			return nothing, c.to.fault(op, KindStopped, errNotStarted)
		}
		kind, err := c.explainOpen(err)
		return nothing, c.to.fault(op, cancelledOr(ctx, kind), err)
	}
	if o.tooLate() {
		s.close()
		return nothing, c.to.fault(op, KindStopped, errNotStarted)
	}
	s.out.watch(cmd.Live)
	if s.notes != nil {
		s.notes.attach, s.notes.begin = cmd.Attached, cmd.Began
	}
	limit := cmd.Bound + killAfter + c.cfg.Channel + margin
	if s.porter != nil {
		limit += c.cfg.Auth
	}
	late := c.within(limit,
		fmt.Sprintf("report the end of a command with a bound of %s", cmd.Bound))
	defer late.Stop()

	if verb != "" {
		cmd.Stdin = request{verb, c.keeper.fence, c.cfg.RecordDir, cmd}.reader(nonce)
	}
	if s.porter != nil {
		cmd.Stdin, line = throughSudo(line, cmd.Stdin), c.keeper.sudoLine(s.porter.nonce)
	}
	return s.run(ctx, op, cmd, line)
}

// run sends the command and waits for its end, or for the end of the connection.
func (s *session) run(ctx context.Context, op string, cmd Command, line string) (Result, error) {
	defer s.close()

	to, sent := s.conn.to, time.Now()
	accepted, err := s.exec(line)
	if err == nil && !accepted {
		return Result{ExitCode: -1}, to.fault(op, KindRefused,
			errors.New("it opens sessions, but refuses to run a command"))
	}
	if err == nil && s.porter != nil {
		if err := s.passPorter(ctx, op, cmd); err != nil {
			return Result{ExitCode: -1}, err
		}
		sent = time.Now()
	}
	var input *feed
	if err == nil {
		input = startFeed(s, cmd.Stdin)
	}

	var halted error // why it did not end by itself
	select {
	case <-s.ended:
	case <-s.noted():
	case <-cmd.Stop:
		halted = s.halt(ctx, op, cmd)
	}
	result := Result{ExitCode: -1, Took: time.Since(sent)}
	result.Open = !s.hasEnded() || !s.drain() // remaining processes may write more at any time
	result.Output = s.seal()
	inputErr := input.stop(s.conn.cfg.Drain)
	known := s.hasEnded() && s.known
	if s.notes != nil {
		var plain bool
		result, plain, err = s.recorded(op, cmd, halted, result)
		if !plain && (err != nil || inputErr == nil) {
			return result, err
		}
	}
	if known {
		result.ExitCode, result.Signal = s.exit.code, s.exit.signal
	}
	switch {
	case halted != nil:
		return result, halted
	case !known || s.abandoned():
		return result, s.lost(ctx, op)
	case timedOut(s.exit, result.Took, cmd.Bound):
		return result, to.faultSent(op, KindTimeout,
			overBound(cmd.Bound))
	case inputErr != nil:
		return result, to.faultSent(op, KindNode,
			fmt.Errorf("the input of the command could not be read: %w", inputErr))
	}
	return result, nil
}

func overBound(bound time.Duration) error {
	return fmt.Errorf("the command ran over its bound of %s and was stopped on the host", bound)
}

// lost returns the error for a command whose end was not seen.
func (s *session) lost(ctx context.Context, op string) error {
	c := s.conn
	if ctx.Err() != nil {
		return c.to.faultSent(op, KindCancelled, ended(ctx))
	}
	// If the connection ends, its sessions end first. Wait a moment to distinguish that
	// from a session that ended alone.
	select {
	case <-c.done:
	case <-time.After(c.cfg.Drain):
	}
	why := c.why()
	if why == nil {
		why = errors.New("the session ended without an exit status")
	}
	return c.to.faultSent(op, KindLost,
		&doubtError{why, "", ": it is not known whether the command ran, or runs still"})
}

// explainOpen explains why the host opened no session. Nothing was sent.
func (c *Conn) explainOpen(err error) (Kind, error) {
	var rejected *ssh.OpenChannelError
	if !errors.As(err, &rejected) {
		if why := c.why(); why != nil {
			err = why
		}
		return KindUnreachable, err
	}
	switch rejected.Reason {
	case ssh.ConnectionFailed, ssh.ResourceShortage:
		return KindThrottled, fmt.Errorf("it opens no further session on this connection "+
			"(MaxSessions); %s", hostSaid([]byte(rejected.Message)))
	}
	return KindRefused, fmt.Errorf("it opens no session; %s",
		hostSaid([]byte(rejected.Message)))
}

// timedOut reports whether timeout(1) stopped the command. It exits with 124, or dies of its
// own KILL together with the group, which some shells turn into 137. The timeout of busybox
// reports the TERM. A command may end with any of these codes by itself, but then it ended
// before the bound.
func timedOut(e exit, took, bound time.Duration) bool {
	if took < time.Duration(seconds(bound))*time.Second {
		return false
	}
	return e.code == 124 || e.code == 128+signals["KILL"] || e.code == 128+signals["TERM"]
}
