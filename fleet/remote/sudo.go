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

// This file handles hosts on which commands run through sudo as another user. Everything runs
// through it: steps and their records, uploads, markers, and the script that stops a step. So
// one user owns all of these and may end them.
//
// The host gets a line that only starts a small shell behind sudo. That shell reads its real
// command from stdin, after it has reported that it runs. The password of sudo also goes to
// stdin, but only when sudo asks for it, so no other program can read it by mistake. If sudo
// refuses, nothing has run.

// SudoPassword sets the password that answers the host's sudo. Call it before anything runs.
// Without a password, questions of sudo get no answer.
func (c *Conn) SudoPassword(password seal.Text) { c.keeper.password = password }

// sudoLine returns the line for the host. Its shell runs the line that it reads from stdin. The
// output of sudo is joined to that of the shell, so that their order is kept.
func (k keeper) sudoLine(nonce string) string {
	how := "-n"
	if k.password != "" {
		how = "-S -p " + quote(asksWord(nonce))
	}
	inner := "echo " + nonce + " " + thereWord + `; IFS= read -r muster && eval "$muster"`
	outer := "exec sudo " + how + " -H -u " + quote(k.become) + " -- sh -c " + quote(inner) + " 2>&1"
	return "sh -c " + quote(outer)
}

// thereWord follows the nonce when the shell behind sudo runs.
const thereWord = "there"

// asksWord returns the prompt of sudo. It has no character that sudo would expand.
func asksWord(nonce string) string { return nonce + " asks:" }

// A porter reads the output of sudo. Once the shell behind it runs, it passes everything on.
type porter struct {
	to    io.Writer
	nonce string
	asked chan struct{} // holds one item for each question of sudo
	open  chan struct{} // closed when the shell runs

	mu   sync.Mutex
	said []byte // output of sudo; guarded by mu
	done bool   // guarded by mu
}

// Limits for the output of sudo, whose lecture may be long, and for the number of its questions.
const (
	porterMax = 16 << 10 // bytes
	asksMost  = 8
)

func newPorter(to io.Writer, nonce string) *porter {
	return &porter{to: to, nonce: nonce,
		asked: make(chan struct{}, asksMost), open: make(chan struct{})}
}

// Write passes p on, or reads it as output of sudo. It never fails.
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
		default: // further questions get no answer
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

// words returns the last output of sudo.
func (d *porter) words() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return lastWords(Output{Head: d.said})
}

// becomes reports whether commands on the host go through sudo.
func (k keeper) becomes() bool { return k.become != "" }

// throughSudo returns the stdin for the shell behind sudo: the line that it runs, and the
// stdin for that line.
func throughSudo(line string, stdin io.Reader) io.Reader {
	first := strings.NewReader(line + "\n")
	if stdin == nil {
		return first
	}
	return io.MultiReader(first, stdin)
}

// passPorter waits until sudo has started the shell, and answers its question. If it returns an
// error, nothing of the command has run.
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
				_ = s.ch.CloseWrite() // sudo stops asking at the end of its input
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

// turnedAway returns the error if sudo or the connection ended before the shell ran.
func (s *session) turnedAway(ctx context.Context, op string, answered bool) error {
	k, to := s.conn.keeper, s.conn.to
	s.drain()
	if isClosed(s.porter.open) {
		return nil // the shell did run, and the end is that of the command
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
