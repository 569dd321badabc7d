package remote

import (
	"bytes"
	"crypto/rand"
	"io"
	"strconv"
	"strings"
	"sync"
)

// A mark is the line in which sh reports its process, before the command runs: a nonce, its
// process id, and the id of its parent. The command does not exist yet at that time, so its
// output can never be mistaken for the mark. Output of a login shell may come first; if that
// shell echoes the line it was asked to run, the mark in the echo has no
// numbers.
type mark struct {
	shell, parent int
}

// newNonce returns a random word that occurs nowhere else.
func newNonce() string { return rand.Text() }

// markMax bounds the text after the nonce in a mark, in bytes.
const markMax = 48

// parseMark reads the rest of the line after the nonce. It refuses process number 1, because
// a command never has it, and a kill of its group would hit every process.
func parseMark(line []byte) (mark, bool) {
	text, ok := strings.CutPrefix(string(line), " ")
	shell, parent, both := strings.Cut(text, " ")
	m := mark{shell: processID(shell), parent: processID(parent)}
	return m, ok && both && m.shell > 0 && m.parent > 0
}

// processID returns the number of a process, or 0 if text is not one.
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
	kept []byte // held back, because it may be the beginning of a mark; guarded by mu
	done bool   // the mark was found or is no longer expected; guarded by mu
}

func newSieve(to io.Writer, nonce string) *sieve {
	return &sieve{to: to, nonce: []byte(nonce), found: make(chan struct{})}
}

// Write passes p on, except for a mark. It never fails.
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

// sift searches kept for the nonce. It reports whether another search may find
// more.
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
		return false // the line is incomplete
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

// pass passes on the first n bytes of kept.
func (s *sieve) pass(n int) {
	if n > 0 {
		_, _ = s.to.Write(s.kept[:n]) // a recorder: it never fails
		s.kept = s.kept[n:]
	}
}

// flush passes on the bytes that were held back, because no mark will follow.
func (s *sieve) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	s.pass(len(s.kept))
	s.kept = nil
}
