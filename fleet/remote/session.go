package remote

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// session is the state of one command. It uses a bare channel, because the session type of
// the library reports the end of a command only when all processes that hold its output have
// ended, and has no deadline for anything.
type session struct {
	conn   *Conn
	ch     ssh.Channel
	out    *recorder
	mark   *sieve
	notes  *notes  // of record.sh; nil: the command runs without it
	porter *porter // of sudo; nil: the command runs as the login user

	ended   chan struct{} // closed when the exit is known, or the channel is closed
	exit    exit          // valid after ended
	known   bool          // valid after ended: exit is set
	drained chan struct{} // closed when all output has arrived
	over    chan struct{} // closed when the channel is closed and all goroutines are done

	mu      sync.Mutex
	idleFor time.Duration
	idle    *time.Timer // guarded by mu; nil when silence no longer matters
}

// exit is the exit status of a command.
type exit struct {
	code   int
	signal string
}

// openSession opens a channel and starts to read from it. The caller has taken a slot; the
// session frees it.
func (c *Conn) openSession(idle time.Duration, nonce string, recorded bool) (*session, error) {
	late := c.within(c.cfg.Channel, "open a session")
	defer late.Stop()

	ch, reqs, err := c.openChannel("session", nil)
	if err != nil {
		return nil, err
	}
	s := &session{
		conn:    c,
		ch:      ch,
		ended:   make(chan struct{}),
		drained: make(chan struct{}),
		over:    make(chan struct{}),
		idleFor: idle,
		idle:    c.within(idle, "let anything be heard of the command"),
	}
	s.out = newRecorder(c.cfg.OutputMax, s.touch)
	s.mark = newSieve(s.out, nonce)
	var streams sync.WaitGroup
	stdout := io.Writer(s.mark)
	if recorded {
		s.notes = newNotes(s.out, nonce, s.mark)
		stdout = s.notes
	}
	if c.keeper.becomes() {
		s.porter = newPorter(stdout, newNonce())
		stdout = s.porter
	}
	streams.Go(func() { record(stdout, ch, stdoutBuffer) })
	streams.Go(func() { record(s.out, ch.Stderr(), stderrBuffer) })
	go func() {
		streams.Wait()
		close(s.drained)
	}()
	go func() {
		s.listen(reqs)
		<-s.drained
		close(s.over)
		<-c.slots
	}()
	return s, nil
}

// openChannel opens a channel, or returns why the connection has ended. The library has a gap:
// a request between the moment at which it drops all channels and the end of the connection
// would wait for ever. If reading has failed, wire closes the gap; if the host sent a
// disconnect message, only the goroutine of such a call remains.
func (c *Conn) openChannel(kind string, extra []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	type opened struct {
		ch   ssh.Channel
		reqs <-chan *ssh.Request
		err  error
	}
	answer := make(chan opened, 1)
	go func() {
		ch, reqs, err := c.ssh.OpenChannel(kind, extra)
		answer <- opened{ch, reqs, err}
	}()
	select {
	case o := <-answer:
		return o.ch, o.reqs, o.err
	case <-c.done:
		return nil, nil, c.why()
	}
}

// The buffers between channel and recorder, in bytes. They are half the cost of a short
// session. Hosts join the streams, so stderr carries little.
const (
	stdoutBuffer = 8 << 10
	stderrBuffer = 1 << 10
)

// record copies a stream to its end. An error also ends the channel, and is reported
// there.
func record(to io.Writer, stream io.Reader, buffer int) {
	_, _ = io.CopyBuffer(to, stream, make([]byte, buffer))
}

// seal returns the kept output and drops everything that comes later.
func (s *session) seal() Output {
	s.mark.flush()
	if s.notes != nil {
		s.notes.flush()
	}
	return s.out.seal()
}

// hasEnded reports whether the command or its channel has ended.
func (s *session) hasEnded() bool { return isClosed(s.ended) }

// within closes the connection unless the host does something in time, which frees everybody
// who waits for it. The caller must stop the timer when the host has done it.
func (c *Conn) within(limit time.Duration, what string) *time.Timer {
	return time.AfterFunc(limit, func() {
		c.fail(fmt.Errorf("it did not %s within %s", what, limit))
	})
}

// exec asks the host to run line.
func (s *session) exec(line string) (accepted bool, err error) {
	late := s.conn.within(s.conn.cfg.Channel, "answer to a command")
	defer late.Stop()

	return s.ch.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{line}))
}

// listen reads the exit status from the host's requests on the channel, until the channel is
// closed.
func (s *session) listen(reqs <-chan *ssh.Request) {
	for req := range reqs {
		if e, ok := parseExit(req.Type, req.Payload); ok && !s.known {
			s.exit, s.known = e, true
			close(s.ended)
		}
		if req.WantReply {
			_ = req.Reply(false, nil) // an error also ends the channel
		}
	}
	if !s.known {
		close(s.ended)
	}
}

// drain waits for the rest of the output, but not for long, because a remaining process may
// hold it open for ever. It reports whether all output has arrived.
func (s *session) drain() bool {
	limit := time.NewTimer(s.conn.cfg.Drain)
	defer limit.Stop()

	select {
	case <-s.drained:
		return true
	case <-limit.C:
		return false
	}
}

// close closes the channel, and the connection if the host does not confirm that.
func (s *session) close() {
	s.mu.Lock()
	s.idle.Stop()
	s.idle = nil
	s.mu.Unlock()

	limit := s.conn.cfg.Channel
	time.AfterFunc(limit, func() {
		select {
		case <-s.over:
		default:
			s.conn.fail(fmt.Errorf("it did not close a session within %s", limit))
		}
	})
	_ = s.ch.Close() // an error also ends the connection, or it is closed already
}

// touch restarts the limit for silence.
func (s *session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		s.idle.Reset(s.idleFor)
	}
}

// feed sends input to a command. Once stop has returned, it does not read from the source
// any more, so the caller may use it again.
type feed struct {
	source  io.Reader
	session *session

	turn    chan struct{} // holds one item while the source is being read
	stopped atomic.Bool
	done    chan struct{}
	err     error // of the source; guarded by turn
}

func startFeed(s *session, source io.Reader) *feed {
	f := &feed{
		source:  source,
		session: s,
		turn:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	go func() {
		defer close(f.done)
		if source != nil {
			// The readers of the channel report its errors, and Read keeps those of
			// the source.
			_, _ = io.Copy(s.ch, f)
		}
		_ = s.ch.CloseWrite()
	}()
	return f
}

// Read reads from the source, unless stop was called.
func (f *feed) Read(p []byte) (int, error) {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()

	if f.stopped.Load() {
		return 0, io.EOF
	}
	n, err := f.source.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	f.session.touch()
	return n, err
}

// stop ends the use of the source and returns its error. It does not wait for long, because
// a source that waits for a person must not delay a command that has ended.
func (f *feed) stop(limit time.Duration) error {
	if f == nil {
		return nil
	}
	f.stopped.Store(true)
	timer := time.NewTimer(limit)
	defer timer.Stop()

	select {
	case f.turn <- struct{}{}:
		err := f.err
		<-f.turn
		return err
	case <-f.done:
		return f.err
	case <-timer.C:
		return nil
	}
}

// signals maps the names of signals in SSH to their numbers.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9, "USR1": 10,
	"SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
}

// parseExit reads the two requests by which a host reports the end of a command. It ignores a
// malformed one; then the end stays unknown.
func parseExit(request string, payload []byte) (exit, bool) {
	switch request {
	case "exit-status":
		if len(payload) < 4 {
			return exit{}, false
		}
		return exit{code: int(binary.BigEndian.Uint32(payload))}, true
	case "exit-signal":
		var died struct {
			Signal string
			Core   bool
			Text   string
			Lang   string
		}
		if err := ssh.Unmarshal(payload, &died); err != nil {
			return exit{}, false
		}
		number, known := signals[died.Signal]
		if !known {
			died.Signal = Quote([]byte(died.Signal), nameMax)
		}
		return exit{code: 128 + number, signal: died.Signal}, true
	}
	return exit{}, false
}
