package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"muster/internal/seal"
)

// This file is about hosts on which sudo makes our commands those of another user. All that
// is run there goes through it: steps and their records, uploads, markers, and what stops a
// step. So one user owns all of that, and may end it.
//
// The host gets a line that holds no more than a small shell, behind sudo. What that shell is
// to run comes on its stdin, once it has said that it is there. The password of sudo comes on
// stdin as well, and only when sudo asks for it: it is never taken for something else where
// sudo does not ask. Nothing has run if sudo refuses.

// SudoPassword is what the host gets if its sudo asks for the password of who logs in. It must
// be given before anything is run. Without one nothing is answered.
func (c *Conn) SudoPassword(password seal.Text) { c.keeper.password = password }

// sudoLine is the line that is sent. Its shell runs the line that it reads. The output of
// sudo itself is joined to that of the shell, so that what comes first was said first.
func (k keeper) sudoLine(nonce string) string {
	how := "-n"
	if k.password != "" {
		how = "-S -p " + quote(asksWord(nonce))
	}
	inner := "echo " + nonce + " " + thereWord + `; IFS= read -r muster && eval "$muster"`
	outer := "exec sudo " + how + " -H -u " + quote(k.become) + " -- sh -c " + quote(inner) + " 2>&1"
	return "sh -c " + quote(outer)
}

// thereWord follows the nonce when the shell behind sudo is there.
const thereWord = "there"

// asksWord is what sudo asks with. It has no character that means something in a prompt.
func asksWord(nonce string) string { return nonce + " asks:" }

// A porter hears what sudo says. When the shell behind it is there, all else is passed on.
type porter struct {
	to    io.Writer
	nonce string
	asked chan struct{} // holds one item for each time that sudo has asked
	open  chan struct{} // closed when the shell is there

	mu   sync.Mutex
	said []byte // by sudo; guarded by mu
	done bool   // guarded by mu
}

// Bounds of what is heard of sudo, whose lecture may be long, and of how often it asks.
const (
	porterMax = 16 << 10 // bytes
	asksMost  = 8
)

func newPorter(to io.Writer, nonce string) *porter {
	return &porter{to: to, nonce: nonce,
		asked: make(chan struct{}, asksMost), open: make(chan struct{})}
}

// Write passes p on, or hears it. It never fails.
func (d *porter) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		return d.to.Write(p)
	}
	d.said = append(d.said, p...)
	word := []byte(asksWord(d.nonce))
	for at := bytes.Index(d.said, word); at >= 0; at = bytes.Index(d.said, word) {
		d.said = append(d.said[:at], d.said[at+len(word):]...)
		select {
		case d.asked <- struct{}{}:
		default: // who asked that often gets no more answers
		}
	}
	line := []byte(d.nonce + " " + thereWord + "\n")
	if at := bytes.Index(d.said, line); at >= 0 {
		rest := d.said[at+len(line):]
		d.said, d.done = nil, true
		close(d.open)
		_, _ = d.to.Write(rest) // a recorder: it never fails
		return len(p), nil
	}
	if over := len(d.said) - porterMax; over > 0 {
		d.said = d.said[over:]
	}
	return len(p), nil
}

// words are the last ones of sudo.
func (d *porter) words() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return lastWords(Output{Head: d.said})
}

// becomes reports whether commands on the host go through sudo.
func (k keeper) becomes() bool { return k.become != "" }

// throughSudo returns what is to be fed once the shell is there: the line that it runs, and
// what that finds on stdin.
func throughSudo(line string, stdin io.Reader) io.Reader {
	first := strings.NewReader(line + "\n")
	if stdin == nil {
		return first
	}
	return io.MultiReader(first, stdin)
}

// passPorter waits until sudo has let us through, and answers when it asks. An error says that
// nothing of the command has run.
func (s *session) passPorter(ctx context.Context, op string, cmd Command) error {
	stop := cmd.Stop
	if cmd.mayRun() {
		stop = nil // it must be found before it can be stopped
	}
	k, to := s.conn.keeper, s.conn.to
	late := s.conn.within(s.conn.cfg.Auth, fmt.Sprintf("let %s become %s by sudo", k.login, k.become))
	defer late.Stop()
	answered := false
	for {
		select {
		case <-s.porter.open:
			return nil
		case <-stop:
			return to.fault(op, KindStopped, errNotStarted)
		case <-s.porter.asked:
			if answered {
				_ = s.ch.CloseWrite() // sudo asks no more where there is nobody
				wait(s.ended, s.conn.cfg.Drain)
				return to.fault(op, KindAuth, fmt.Errorf("sudo did not take the password that was given "+
					"for %s, so nothing was run", k.login))
			}
			answered = true
			if _, err := s.ch.Write([]byte(string(k.password) + "\n")); err != nil {
				wait(s.ended, s.conn.cfg.Drain)
			}
		case <-s.ended:
			return s.turnedAway(ctx, op, answered)
		}
	}
}

// turnedAway is about sudo that ended, or a connection that did, before the shell was there.
func (s *session) turnedAway(ctx context.Context, op string, answered bool) error {
	k, to := s.conn.keeper, s.conn.to
	s.drain()
	if isClosed(s.porter.open) {
		return nil // it was, and its end is that of the command
	}
	if !s.known {
		wait(s.conn.done, s.conn.cfg.Drain)
		why := s.conn.why()
		if why == nil {
			why = errors.New("the session ended before sudo did")
		}
		return to.fault(op, cancelledOr(ctx, KindUnreachable), fmt.Errorf("%w: nothing was run", why))
	}
	said := s.porter.words()
	switch {
	case s.exit.code == 127 && strings.Contains(said, "not found"):
		return to.fault(op, KindAuth, fmt.Errorf("it has no sudo, by which commands are to run as %s: "+
			"nothing was run (%s)", k.become, said))
	case answered:
		return to.fault(op, KindAuth, fmt.Errorf("sudo was given the password of %s and does not let it "+
			"run sh as %s, so nothing was run: %s", k.login, k.become, said))
	case k.password != "":
		return to.fault(op, KindAuth, fmt.Errorf("sudo does not let %s run sh as %s, so nothing was "+
			"run: %s", k.login, k.become, said))
	}
	return to.fault(op, KindAuth, fmt.Errorf("sudo does not let %s run sh as %s without a password, "+
		"so nothing was run: %s; give the password with --become-password, or that user a line with "+
		"NOPASSWD in sudoers", k.login, k.become, said))
}
