package remote

import (
	"bytes"
	"crypto/rand"
	"io"
	"strconv"
	"strings"
	"sync"
)

// A mark is the line in which sh says which process it is, before the command
// runs: a nonce, its process id, and that of its parent. The command does not
// exist by then, so that what it says itself is never taken for the mark. What a
// login shell says may come first; if that repeats what it was asked to run, the
// mark in there has no numbers.
type mark struct {
	shell, parent int
}

// newNonce returns a word that occurs nowhere else.
func newNonce() string { return rand.Text() }

// markMax bounds what follows the nonce in a mark, in bytes.
const markMax = 48

// parseMark reads what follows the nonce, up to the end of the line. No process of
// a command has the number 1, and a kill of its group would be one of everything.
func parseMark(line []byte) (mark, bool) {
	text, ok := strings.CutPrefix(string(line), " ")
	shell, parent, both := strings.Cut(text, " ")
	m := mark{shell: processID(shell), parent: processID(parent)}
	return m, ok && both && m.shell > 0 && m.parent > 0
}

// processID is 0 for what is none.
func processID(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n <= 1 || text[0] == '0' || text[0] == '+' {
		return 0
	}
	return int(n)
}

// A sieve takes the first mark out of a stream and passes on the rest.
type sieve struct {
	to    io.Writer
	nonce []byte
	found chan struct{} // closed when there is a mark
	mark  mark          // valid after found

	mu   sync.Mutex
	kept []byte // held back: it may be the beginning of a mark; guarded by mu
	done bool   // all is passed on from now; guarded by mu
}

func newSieve(to io.Writer, nonce string) *sieve {
	return &sieve{to: to, nonce: []byte(nonce), found: make(chan struct{})}
}

// Write passes p on, but for a mark. It never fails.
func (s *sieve) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return s.to.Write(p)
	}
	s.kept = append(s.kept, p...)
	for s.sift() {
	}
	if s.done {
		s.pass(len(s.kept))
		s.kept = nil
	}
	return len(p), nil
}

// sift looks for the nonce in what is kept. It returns whether there is more to be
// found there.
func (s *sieve) sift() bool {
	at := bytes.Index(s.kept, s.nonce)
	if at < 0 {
		s.pass(len(s.kept) - begunIn(s.kept, s.nonce))
		return false
	}
	s.pass(at)
	rest := s.kept[len(s.nonce):]
	end := bytes.IndexByte(rest, '\n')
	if end < 0 && len(rest) <= markMax {
		return false // the line is not all here
	}
	if end >= 0 {
		if m, ok := parseMark(rest[:end]); ok {
			s.mark, s.done = m, true
			s.kept = rest[end+1:]
			close(s.found)
			return false
		}
	}
	s.pass(len(s.nonce))
	return true
}

// pass passes on the first n bytes of what is kept.
func (s *sieve) pass(n int) {
	if n > 0 {
		_, _ = s.to.Write(s.kept[:n]) // a recorder: it never fails
		s.kept = s.kept[n:]
	}
}

// flush passes on what is held back: nothing more will come of it.
func (s *sieve) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	s.pass(len(s.kept))
	s.kept = nil
}
