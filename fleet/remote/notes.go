package remote

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
)

// noteMax bounds a line of record.sh, in bytes.
const noteMax = 4 << 10

// noiseMax bounds how much of the output before the greeting is kept, in bytes.
const noiseMax = 4 << 10

// A note is a line of record.sh, split into words.
type note []string

func (n note) word() string {
	if len(n) == 0 {
		return ""
	}
	return n[0]
}

// notes takes the lines of record.sh out of a stream, and passes on the rest, which is the
// output of the command. It recognizes the lines by a nonce that the command does not know.
type notes struct {
	to    *recorder
	nonce []byte
	hello chan struct{} // closed when the host has greeted
	began chan struct{} // closed when a step with a record runs
	over  chan struct{} // closed when the last line has arrived
	mark  *sieve        // receives the mark of a command without a record

	attach func(token int64) // called when the host says attached; may be nil
	begin  func()            // called when the host says that it starts the command; may be nil

	mu      sync.Mutex
	kept    []byte // held back, because it may be the beginning of a line; guarded by mu
	at      int64  // position in the output of the command; guarded by mu
	noise   []byte // output before the greeting; guarded by mu
	through bool   // pass everything on, because the command has no record; guarded by mu
	tidings
}

// tidings are the facts that a host has reported in notes.
type tidings struct {
	greeted  bool   // guarded by mu
	fenced   bool   // valid after hello
	lack     string // the tools that the host lacks; valid after hello
	attached bool   // to a step of an earlier request; valid after over
	lost     string // why the host could not keep all output; valid after over
	last     note   // valid after over
}

func newNotes(to *recorder, nonce string, mark *sieve) *notes {
	return &notes{to: to, nonce: []byte(nonce), mark: mark, hello: make(chan struct{}),
		began: make(chan struct{}), over: make(chan struct{})}
}

// Write passes p on, except for the notes. It never fails.
func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept = append(n.kept, p...)
	for n.sift() {
	}
	return len(p), nil
}

// sift takes the next note. It reports whether another one may follow.
func (n *notes) sift() bool {
	if n.through || n.last != nil {
		n.pass(len(n.kept))
		return false
	}
	at := bytes.Index(n.kept, n.nonce)
	if at < 0 {
		n.pass(len(n.kept) - begunIn(n.kept, n.nonce))
		return false
	}
	n.pass(at)
	rest := n.kept[len(n.nonce):]
	end := bytes.IndexByte(rest, '\n')
	if end < 0 && len(rest) <= noteMax {
		return false // the line is incomplete
	}
	if end < 0 || !n.take(strings.Fields(string(rest[:end]))) {
		n.pass(len(n.nonce)) // the echo of a login shell
		return true
	}
	n.kept = n.kept[len(n.nonce)+end+1:]
	return true
}

// take handles a note. It returns false if the words are not a note.
func (n *notes) take(words note) bool {
	switch word := words.word(); {
	case word == "hello" && len(words) > 1 && !n.greeted:
		n.greeted, n.fenced = true, words[1] == "fenced"
		n.lack = strings.Join(words[2:], " ")
		close(n.hello)
	case word == "no":
		n.finish(words)
	case !n.greeted:
		return false
	case word == "began" || word == "attached":
		n.start(words)
	case word == "at" && len(words) == 2:
		if at, err := parseCount(words[1]); err == nil && at > n.at {
			n.to.skip(at - n.at)
			n.at = at
		}
	case word == "mark" && len(words) == 3:
		n.through = true
		if n.begin != nil {
			n.begin()
		}
		if m, ok := parseMark([]byte(" " + words[1] + " " + words[2])); ok {
			n.mark.mark = m
			close(n.mark.found)
		}
	case word == "lost" && len(words) == 2:
		n.lost = words[1]
	case word == "end" || word == "stopped":
		n.finish(words)
	default:
		return false
	}
	return true
}

// start handles the note that a step runs.
func (n *notes) start(words note) {
	n.attached = words.word() == "attached"
	switch {
	case n.attached && n.attach != nil:
		n.attach(tokenIn(words))
	case !n.attached && n.begin != nil && !isClosed(n.began):
		n.begin()
	}
	if !isClosed(n.began) {
		close(n.began)
	}
}

func (n *notes) finish(words note) {
	n.last = words
	close(n.over)
}

// pass passes on the first bytes of kept. Before the greeting they are noise from a login
// shell; after the last note they are dropped.
func (n *notes) pass(count int) {
	part := n.kept[:count]
	n.kept = n.kept[count:]
	switch {
	case count == 0 || n.last != nil:
	case n.greeted:
		n.at += int64(count)
		_, _ = n.to.Write(part) // a recorder: it never fails
	default:
		n.to.touch()
		n.noise = append(n.noise, part[:min(len(part), noiseMax-len(n.noise))]...)
	}
}

// flush passes on the bytes that were held back, because no note will follow. Without a
// greeting, the noise is all that there is to show.
func (n *notes) flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pass(len(n.kept))
	if !n.greeted && n.last == nil {
		_, _ = n.to.Write(n.noise)
	}
}

// state reports whether the host has greeted, and whether it keeps a record.
func (n *notes) state() (greeted, fenced bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.greeted, n.fenced
}

// tokenIn returns the token behind the first word, or 0. It may have leading zeros.
func tokenIn(words note) int64 {
	if len(words) < 2 {
		return 0
	}
	token, err := parseCount(words[1])
	if err != nil {
		return 0
	}
	return token
}

// parseCount reads a number of bytes or seconds. Negative numbers become 0.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 62)
	return max(n, 0), err
}

// begunIn returns how many bytes at the end of text may be the beginning of word.
func begunIn(text, word []byte) int {
	for n := min(len(word)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, word[:n]) {
			return n
		}
	}
	return 0
}
