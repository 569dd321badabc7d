package fakefleet

import (
	"bytes"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"muster/internal/fakefleet/machine"
)

// session is one channel with the command that runs behind it. The command belongs to the host: it
// stays when the channel ends.
type session struct {
	line *line
	ch   ssh.Channel
	used bool // a channel runs one command

	in, out, err tap
	gone         chan struct{} // closed when nobody is at the other end any more
	senders      sync.WaitGroup
	record       *record
}

func (l *line) session(c ssh.NewChannel) {
	ch, reqs, err := c.Accept()
	if err != nil {
		return
	}
	s := &session{line: l, ch: ch, gone: make(chan struct{})}
	s.in = s.receiver()
	s.out, s.err = s.sender(ch), s.sender(ch.Stderr())
	for r := range reqs {
		s.request(r)
	}
	s.hangUp()
}

// request handles exec and env. There is no terminal, no login shell, no subsystem, and signals are
// refused as OpenSSH before 9.9 refuses them to root.
func (s *session) request(r *ssh.Request) {
	var exec struct{ Command string }
	ok := r.Type == "env"
	if r.Type == "exec" && !s.used && ssh.Unmarshal(r.Payload, &exec) == nil {
		ok, s.used = true, true
	}
	if s.line.frozen.Load() {
		return
	}
	// The command is inside the host before the client can learn of it.
	start := ok && r.Type == "exec"
	if start {
		s.record = s.host().fleet.log.begin(s.host(), exec.Command)
	}
	if r.WantReply {
		_ = r.Reply(ok, nil)
	}
	if start {
		s.misbehave()
		s.host().fleet.work.Go(func() { s.run(exec.Command) })
	}
}

func (s *session) host() *host { return s.line.host }

// misbehave applies the personality to the line once a command has started.
func (s *session) misbehave() {
	f := s.host().fleet
	switch s.host().personality {
	case Freeze:
		s.line.frozen.Store(true)
	case Cut:
		f.work.Go(func() {
			machine.Pause(f.ctx.Done(), f.config.CutAfter)
			reset(s.line.conn)
		})
	}
}

// hangUp tells the command that nobody is there: it sees the end of stdin, and gets PIPE when it
// writes. The command does not end for that alone. It is marked as an orphan before it can die of
// PIPE.
func (s *session) hangUp() {
	if s.record != nil {
		s.host().fleet.log.orphan(s.record)
	}
	close(s.gone)
	s.in.CloseWrite()
	s.out.CloseRead()
	s.err.CloseRead()
}

// tap is a pipe whose other end is served by a goroutine that starts with the first byte: most
// commands read nothing and write little.
type tap struct {
	*machine.Pipe
	open func()
}

func (t tap) Read(done <-chan struct{}, b []byte) (int, error) {
	t.open()
	return t.Pipe.Read(done, b)
}

func (t tap) Write(done <-chan struct{}, b []byte) error {
	t.open()
	return t.Pipe.Write(done, b)
}

// bufferBytes is the size of one copy between a pipe and a channel.
const bufferBytes = 8 << 10

// receiver returns the pipe of stdin.
func (s *session) receiver() tap {
	p := machine.NewPipe()
	return tap{p, sync.OnceFunc(func() {
		s.host().fleet.work.Go(func() { s.receive(p) })
	})}
}

func (s *session) receive(p *machine.Pipe) {
	defer p.CloseWrite()
	buf := make([]byte, bufferBytes)
	for {
		n, err := s.ch.Read(buf)
		if p.Write(s.gone, buf[:n]) != nil || err != nil {
			return
		}
	}
}

// sender returns the pipe of stdout or stderr.
func (s *session) sender(to io.Writer) tap {
	p := machine.NewPipe()
	return tap{p, sync.OnceFunc(func() {
		s.senders.Add(1)
		s.host().fleet.work.Go(func() {
			defer s.senders.Done()
			s.send(p, to)
		})
	})}
}

// send does not close its end of the pipe when the line is gone: a command that gets PIPE for it
// must be marked as an orphan before.
func (s *session) send(p *machine.Pipe, to io.Writer) {
	buf := make([]byte, bufferBytes)
	for {
		n, err := p.Read(s.gone, buf)
		if err != nil {
			return
		}
		if s.line.frozen.Load() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			<-s.gone
			return
		}
	}
}

// run runs the command to its end, notes the end, and only then tells the client: a client that
// learns of the end may start the next command at once. Only the status of a shell that left
// processes running is sent before, as sshd does.
func (s *session) run(line string) {
	h, told := s.host(), false
	c := machine.Command{Line: line, In: s.in, Out: s.out, Err: s.err}
	c.Left = func(st machine.Status) {
		s.tell(st)
		told = true
	}
	c.Began = func(text string) { h.fleet.log.works(h, s.record, text) }
	how := h.run(c)
	h.fleet.log.end(h, s.record, how)
	s.in.CloseRead()
	s.out.CloseWrite()
	s.err.CloseWrite()
	s.senders.Wait()
	if !told {
		s.tell(how.Status)
	}
	s.close()
}

// run runs a command with the personality of the host.
func (h *host) run(c machine.Command) machine.Result {
	f := h.fleet
	if !machine.Pause(f.ctx.Done(), h.latency) {
		return machine.Result{Status: machine.Status{Signal: "KILL"}}
	}
	switch h.personality {
	case Fail:
		c.Line = "echo 'sh: Input/output error' >&2; exit 1"
	case Flood:
		c.Flood = f.config.FloodBytes
	case NoNewline:
		c.Out, c.Err = endless{c.Out}, endless{c.Err}
	case IgnoreTerm:
		c.Deaf = true
	case Stuck:
		c.Stuck = true
	}
	return h.machine.Run(f.ctx, c)
}

// endless removes the ends of lines.
type endless struct{ machine.Sink }

func (e endless) Write(done <-chan struct{}, b []byte) error {
	return e.Sink.Write(done, bytes.ReplaceAll(b, []byte("\n"), []byte(" ")))
}

// mute reports that the client must not learn of the end.
func (s *session) mute() bool {
	return s.host().personality == Cut || s.line.frozen.Load()
}

// tell sends the status of the command. If the client is gone, nobody misses it.
func (s *session) tell(st machine.Status) {
	if s.mute() || s.host().personality == NoExitStatus {
		return
	}
	kind, payload := "exit-status", ssh.Marshal(struct{ Code uint32 }{uint32(st.Code)})
	if st.Signal != "" {
		kind, payload = "exit-signal", ssh.Marshal(struct {
			Signal         string
			Core           bool
			Text, Language string
		}{Signal: st.Signal})
	}
	_, _ = s.ch.SendRequest(kind, false, payload)
}

func (s *session) close() {
	if s.mute() {
		return
	}
	_ = s.ch.CloseWrite()
	_ = s.ch.Close()
}
