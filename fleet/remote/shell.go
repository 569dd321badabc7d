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

// Terminal connects a shell to its user: a terminal or pipes.
type Terminal struct {
	Command string // for the login shell of the host; empty: the shell itself

	// Type is the type of the terminal, such as xterm-256color. Empty: there is no terminal,
	// and the host allocates none.
	Type    string
	Size    Size
	Resized <-chan Size // new sizes; nil: the size never changes

	Stdin  io.Reader // nil: no input. One Read may still happen after Shell has returned
	Stdout io.Writer // with a terminal, it also gets standard error
	Stderr io.Writer
}

// Size is the size of a terminal.
type Size struct{ Columns, Rows int }

// Shell runs a login shell, or a command in it, for a person who watches: it keeps no output
// and has no bound except ctx, whose end closes the connection. It returns the exit code,
// 128 + n if signal n ended it. The error is an [Error]. No other call asks a host for a
// terminal.
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
	late    *time.Timer // closes the connection if the host does not confirm the close
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

// begin asks for a terminal, if the user has one, and for the shell.
func (s *shell) begin() error {
	late := s.conn.within(s.conn.cfg.Channel, "start a shell")
	defer late.Stop()

	if s.t.Type != "" {
		const endOfModes = "\x00" // keep the host's own modes
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

// wait passes on input and output until the shell has ended.
func (s *shell) wait() (e exit, known bool) {
	var output sync.WaitGroup
	output.Go(func() { s.pass(s.t.Stdout, s.ch) })
	output.Go(func() { s.pass(s.t.Stderr, s.ch.Stderr()) })
	go func() {
		if s.t.Stdin != nil {
			// An error of Stdin ends the input; the loop below notices those of the channel.
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
			// A remaining process may hold the output open for ever.
			s.work.Go(func() { s.closeAfter(drained) })
		}
		if req.WantReply {
			_ = req.Reply(false, nil) // an error also ends the channel
		}
	}
	<-drained
	return e, known
}

// closeAfter closes the session when all output has arrived, or after Config.Drain.
func (s *shell) closeAfter(drained <-chan struct{}) {
	late := time.NewTimer(s.conn.cfg.Drain)
	defer late.Stop()
	select {
	case <-drained:
	case <-late.C:
	}
	s.close()
}

// pass copies a stream to its end. If writing fails, nobody sees the shell any more, so pass
// closes it.
func (s *shell) pass(to io.Writer, from io.Reader) {
	if to == nil {
		to = io.Discard
	}
	if _, err := io.Copy(to, from); err != nil {
		s.close()
		_, _ = io.Copy(io.Discard, from)
	}
}

// resize passes on each new size of the terminal.
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
			_, _ = s.ch.SendRequest("window-change", false, // an error also ends the channel
				ssh.Marshal(struct{ Columns, Rows, Width, Height uint32 }{c[0], c[1], 0, 0}))
		}
	}
}

// close closes the channel, and the connection if the host does not confirm that.
func (s *shell) close() {
	s.closing.Do(func() {
		s.late = s.conn.within(s.conn.cfg.Channel, "close a session")
		_ = s.ch.Close() // an error also ends the connection, or it is closed already
	})
}

// end releases the rest of the session, however it ended.
func (s *shell) end() {
	s.close()
	close(s.over)
	s.work.Wait()
	go ssh.DiscardRequests(s.reqs)
	s.late.Stop()
}

// whyLost explains why there is no exit status. If the connection ends, its sessions end first,
// so whyLost waits a moment to distinguish that from a session that ended alone.
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

// clamped returns the size within limits that any host accepts.
func (z Size) clamped() [2]uint32 {
	most := func(n int) uint32 { return uint32(min(max(n, 1), 1<<14)) }
	return [2]uint32{most(z.Columns), most(z.Rows)}
}
