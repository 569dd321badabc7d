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

// session is one command on its way. It is built on a bare channel: the session
// of the library reports the end of a command only when all that holds its output
// is gone too, and has no deadline for anything.
type session struct {
	conn   *Conn
	ch     ssh.Channel
	out    *recorder
	mark   *sieve
	notes  *notes  // of record.sh; nil: the command comes without it
	porter *porter // of sudo; nil: the command runs as who is logged in

	ended   chan struct{} // closed when the exit is known, or the channel is closed
	exit    exit          // valid after ended
	known   bool          // valid after ended: there is an exit
	drained chan struct{} // closed when all output is in
	over    chan struct{} // closed when the channel is closed and all is done

	mu      sync.Mutex
	idleFor time.Duration
	idle    *time.Timer // guarded by mu; nil when silence is no matter any more
}

// exit is how a command ended.
type exit struct {
	code   int
	signal string
}

// openSession opens a channel and starts to read from it. The caller has entered
// a slot; the session leaves it.
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

// openChannel opens a channel, or says why the connection has ended. The library has a
// gap: who asks after it has let go of all channels, and before it closes the connection,
// would wait for ever. Where reading has failed the wire closes the gap; where the host took
// its leave in words what is left of such a call is a goroutine.
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

// The buffers between channel and recorder, in bytes. They are half of what a
// short session costs. Hosts join the streams, so stderr has little to say.
const (
	stdoutBuffer = 8 << 10
	stderrBuffer = 1 << 10
)

// record reads a stream to its end. An error ends the channel too, and is seen
// there.
func record(to io.Writer, stream io.Reader, buffer int) {
	_, _ = io.CopyBuffer(to, stream, make([]byte, buffer))
}

// seal returns what was kept of the output.
func (s *session) seal() Output {
	s.mark.flush()
	if s.notes != nil {
		s.notes.flush()
	}
	return s.out.seal()
}

// hasEnded tells whether the end was seen, of the command or of the channel.
func (s *session) hasEnded() bool { return isClosed(s.ended) }

// within closes the connection if the host did not do something in time. That
// frees whoever waits for it. The timer must be stopped when it is done.
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

// listen takes the exit from what the host has to say about the channel, until
// that is closed.
func (s *session) listen(reqs <-chan *ssh.Request) {
	for req := range reqs {
		if e, ok := parseExit(req.Type, req.Payload); ok && !s.known {
			s.exit, s.known = e, true
			close(s.ended)
		}
		if req.WantReply {
			_ = req.Reply(false, nil) // an error ends the channel too
		}
	}
	if !s.known {
		close(s.ended)
	}
}

// drain waits for the rest of the output, within bounds: a process that was left
// behind may hold it open for ever. It returns whether that is all.
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

// close closes the channel, and the connection if the host does not follow.
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
	_ = s.ch.Close() // an error is that of the connection, or it is closed already
}

// touch notes that something moves.
func (s *session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		s.idle.Reset(s.idleFor)
	}
}

// feed sends input to a command. It does not touch the source once stop has
// returned, so that the caller may have it back.
type feed struct {
	source  io.Reader
	session *session

	turn    chan struct{} // holds one item while the source is read
	stopped atomic.Bool
	done    chan struct{}
	err     error // of the source; belongs to the turn
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
			// Errors of the channel are seen by those who read from it, those of
			// the source are kept by Read.
			_, _ = io.Copy(s.ch, f)
		}
		_ = s.ch.CloseWrite()
	}()
	return f
}

// Read reads from the source, unless it was given back.
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

// stop gives the source back and returns its error. It does not wait for long:
// a source that waits for a person must not hold up a command that has ended.
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

// signals has the numbers of the signals that SSH knows by name.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9, "USR1": 10,
	"SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
}

// parseExit reads the two requests by which a host reports the end of a command.
// One that is malformed is none: then the end is not known.
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
