package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Terminal is where a shell is used from: the terminal of a person, or pipes.
type Terminal struct {
	Command string // for the login shell of the host; empty: the shell itself

	// Type is that of the terminal, like xterm-256color. Empty: there is none, and
	// the host gives none.
	Type    string
	Size    Size
	Resized <-chan Size // new sizes; nil: it keeps its size

	Stdin  io.Reader // nil: nothing. It may be read once more when Shell has returned
	Stdout io.Writer // with a terminal, Stderr comes here too
	Stderr io.Writer
}

// Size is that of a terminal.
type Size struct{ Columns, Rows int }

// Shell runs a login shell, or a command in it, for a person who looks on: nothing
// is kept of what it says, and nothing bounds it but ctx, whose end closes the
// connection. It returns the exit code, 128 + n if signal n ended it. The error is
// an [Error]. It is the only call that asks a host for a terminal.
func (c *Conn) Shell(ctx context.Context, t Terminal) (code int, err error) {
	const op = "shell"
	if err := c.enter(ctx); err != nil {
		return noExit, c.to.fault(op, cancelledOr(ctx, KindUnreachable), err)
	}
	defer func() { <-c.slots }()
	stop := context.AfterFunc(ctx, func() { c.fail(ended(ctx)) })
	defer stop()

	s, err := c.openShell(t)
	if err != nil {
		kind, err := c.explainOpen(err)
		return noExit, c.to.fault(op, cancelledOr(ctx, kind), err)
	}
	defer s.end()
	if err := s.begin(); err != nil {
		return noExit, c.to.fault(op, cancelledOr(ctx, KindRefused), err)
	}
	if e, known := s.wait(); known {
		return e.code, nil
	}
	if ctx.Err() != nil {
		return noExit, c.to.faultSent(op, KindCancelled, ended(ctx))
	}
	return noExit, c.to.faultSent(op, KindLost, s.whyLost())
}

// noExit is the code of a shell whose end was not seen.
const noExit = -1

// shell is a session of Shell.
type shell struct {
	conn *Conn
	t    Terminal
	ch   ssh.Channel
	reqs <-chan *ssh.Request
	over chan struct{} // closed when the shell has ended
	work sync.WaitGroup

	closing sync.Once
	late    *time.Timer // closes the connection if the host does not close the session
}

func (c *Conn) openShell(t Terminal) (*shell, error) {
	late := c.within(c.cfg.Channel, "open a session")
	defer late.Stop()

	ch, reqs, err := c.openChannel("session", nil)
	if err != nil {
		return nil, err
	}
	return &shell{conn: c, t: t, ch: ch, reqs: reqs, over: make(chan struct{})}, nil
}

// begin asks for a terminal, if there is one on this side, and for the shell.
func (s *shell) begin() error {
	late := s.conn.within(s.conn.cfg.Channel, "start a shell")
	defer late.Stop()

	if s.t.Type != "" {
		const endOfModes = "\x00" // the host's own are good
		size := s.t.Size.clamped()
		err := s.ask("pty-req", ssh.Marshal(struct {
			Type                         string
			Columns, Rows, Width, Height uint32
			Modes                        string
		}{s.t.Type, size[0], size[1], 0, 0, endOfModes}))
		if err != nil {
			return err
		}
	}
	if s.t.Command == "" {
		return s.ask("shell", nil)
	}
	return s.ask("exec", ssh.Marshal(struct{ Line string }{s.t.Command}))
}

func (s *shell) ask(what string, payload []byte) error {
	accepted, err := s.ch.SendRequest(what, true, payload)
	switch {
	case err != nil && s.conn.why() != nil:
		return s.conn.why()
	case err != nil:
		return bare(err)
	case !accepted:
		return fmt.Errorf("it opens sessions, but refuses %q", what)
	}
	return nil
}

// wait passes everything on until the shell has ended.
func (s *shell) wait() (e exit, known bool) {
	var output sync.WaitGroup
	output.Go(func() { s.pass(s.t.Stdout, s.ch) })
	output.Go(func() { s.pass(s.t.Stderr, s.ch.Stderr()) })
	go func() {
		if s.t.Stdin != nil {
			// Its errors are the end of the input; those of the channel are seen below.
			_, _ = io.Copy(s.ch, s.t.Stdin)
		}
		_ = s.ch.CloseWrite()
	}()
	s.work.Go(s.resize)

	drained := make(chan struct{})
	go func() {
		output.Wait()
		close(drained)
	}()
	for req := range s.reqs {
		if got, ok := parseExit(req.Type, req.Payload); ok && !known {
			e, known = got, true
			// What is left behind may hold the output open for ever.
			s.work.Go(func() { s.closeAfter(drained) })
		}
		if req.WantReply {
			_ = req.Reply(false, nil) // an error ends the channel too
		}
	}
	<-drained
	return e, known
}

// closeAfter closes the session when all its output is in, or late.
func (s *shell) closeAfter(drained <-chan struct{}) {
	late := time.NewTimer(s.conn.cfg.Drain)
	defer late.Stop()
	select {
	case <-drained:
	case <-late.C:
	}
	s.close()
}

// pass writes a stream to its end. When nobody takes it any more, the shell is
// of no use.
func (s *shell) pass(to io.Writer, from io.Reader) {
	if to == nil {
		to = io.Discard
	}
	if _, err := io.Copy(to, from); err != nil {
		s.close()
		_, _ = io.Copy(io.Discard, from)
	}
}

// resize passes on every new size of the terminal.
func (s *shell) resize() {
	for {
		select {
		case <-s.over:
			return
		case size, ok := <-s.t.Resized:
			if !ok {
				return
			}
			c := size.clamped()
			_, _ = s.ch.SendRequest("window-change", false, // an error ends the channel too
				ssh.Marshal(struct{ Columns, Rows, Width, Height uint32 }{c[0], c[1], 0, 0}))
		}
	}
}

// close closes the channel, and the connection if the host does not follow.
func (s *shell) close() {
	s.closing.Do(func() {
		s.late = s.conn.within(s.conn.cfg.Channel, "close a session")
		_ = s.ch.Close() // an error is that of the connection, or it is closed already
	})
}

// end ends what is left of the session, whichever way it went.
func (s *shell) end() {
	s.close()
	close(s.over)
	s.work.Wait()
	go ssh.DiscardRequests(s.reqs)
	s.late.Stop()
}

// whyLost says why there is no exit. A connection that ends takes its sessions
// with it first: it gets a moment, to tell that from a session that ended alone.
func (s *shell) whyLost() error {
	c := s.conn
	select {
	case <-c.done:
	case <-time.After(c.cfg.Drain):
	}
	if why := c.why(); why != nil {
		return why
	}
	return errors.New("the session ended without an exit status")
}

// clamped is a size that any host takes.
func (z Size) clamped() [2]uint32 {
	most := func(n int) uint32 { return uint32(min(max(n, 1), 1<<14)) }
	return [2]uint32{most(z.Columns), most(z.Rows)}
}
