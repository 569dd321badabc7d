package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"sync"
)

// A dialog is the client's side of an upload: it reads the output of the script and provides
// its stdin. It sends nothing before the script has reported what the host already has.
type dialog struct {
	nonce  string
	size   int64
	source io.Reader

	answered chan struct{} // closed when the script has answered
	over     chan struct{} // closed when the upload is over

	// For the goroutine that reads; only one does at a time.
	speak func(p []byte) (int, error) // provides the next part of stdin
	start int64                       // where the source began
	sum   hash.Hash                   // hash of the part that the host has
	rest  int64                       // bytes still to hash, then bytes still to send

	mu       sync.Mutex // guards the fields below
	line     []byte     // beginning of an incomplete line
	answer   answer
	state    sight
	progress func(Progress) // nil: the caller wants no reports
}

// answer is the first line of the script.
type answer struct {
	word string // same, no, have
	have int64
	sum  [sha256.Size]byte
}

// sight is the state of an upload as seen so far.
type sight struct {
	done  bool  // the script reported success
	short bool  // the content ended too early …
	read  int64 // … after so many bytes
	from  int64 // the byte from which content was sent

	refused note // "no" and the reason why the host did not put the file in place
}

func newDialog(u Upload, nonce string) *dialog {
	d := &dialog{
		nonce: nonce, size: u.Size, source: u.Content, progress: u.Progress,
		answered: make(chan struct{}),
		over:     make(chan struct{}),
	}
	d.speak = d.begin
	return d
}

// end frees whoever waits for the answer, and stops reports of progress.
func (d *dialog) end() {
	close(d.over)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress = nil
}

// seen returns the state so far.
func (d *dialog) seen() sight {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// answerMost bounds a line of the script, in bytes; longer lines come from other programs.
const answerMost = 200

// Write reads output of the host. It never fails and never blocks.
func (d *dialog) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			end = len(p)
		}
		if room := answerMost + 1 - len(d.line); room > 0 {
			d.line = append(d.line, p[:min(end, room)]...)
		}
		if end == len(p) {
			break
		}
		d.hear(string(d.line))
		d.line, p = d.line[:0], p[end+1:]
	}
	return n, nil
}

// hear handles a line of output. The caller holds mu.
func (d *dialog) hear(line string) {
	text, ours := strings.CutPrefix(line, d.nonce+" ")
	if !ours || len(line) > answerMost {
		return
	}
	if text == "done" {
		d.state.done = true
		return
	}
	if a, ok := parseAnswer(text); ok && d.answer.word == "" {
		d.answer = a
		close(d.answered)
		if a.word == "same" { // report here, because perhaps nobody reads before the end
			d.tell(Progress{Had: d.size})
		}
	} else if words := note(strings.Fields(text)); words.word() == "no" && d.answer.word != "" {
		d.state.refused = words
	}
}

// parseAnswer reads the first line of the script, without its nonce.
func parseAnswer(text string) (answer, bool) {
	word, rest, _ := strings.Cut(text, " ")
	a := answer{word: word}
	switch word {
	case "same", "no":
		return a, rest == ""
	case "have":
	default:
		return answer{}, false
	}
	number, sum, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(number, 10, 62)
	if err != nil {
		return answer{}, false
	}
	if n == 0 {
		return a, sum == "-"
	}
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) != sha256.Size {
		return answer{}, false
	}
	a.have, a.sum = int64(n), [sha256.Size]byte(raw)
	return a, true
}

// Read provides the stdin of the script: nothing, or the position from which content follows,
// and then the content.
func (d *dialog) Read(p []byte) (int, error) { return d.speak(p) }

// begin waits for the answer.
func (d *dialog) begin([]byte) (int, error) {
	select {
	case <-d.answered:
	case <-d.over:
		return 0, io.EOF
	}
	d.mu.Lock()
	a := d.answer
	d.mu.Unlock()
	if a.word != "have" {
		return 0, io.EOF
	}
	place, ok := d.source.(io.Seeker)
	if !ok || a.have == 0 || a.have > d.size {
		return d.from(0)
	}
	var err error
	if d.start, err = place.Seek(0, io.SeekCurrent); err != nil {
		return 0, err
	}
	d.sum, d.rest = sha256.New(), a.have
	d.speak = d.compare
	return 0, nil
}

// compareMost bounds how many bytes one Read hashes, so that it returns soon.
const compareMost = 1 << 20

// compare checks whether the part on the host equals the beginning of the content.
func (d *dialog) compare([]byte) (int, error) {
	n, err := io.CopyN(d.sum, d.source, min(d.rest, compareMost))
	d.rest -= n
	if err != nil && err != io.EOF {
		return 0, err
	}
	if err == nil && d.rest > 0 {
		return 0, nil
	}
	d.mu.Lock()
	a := d.answer
	d.mu.Unlock()
	if err == nil && [sha256.Size]byte(d.sum.Sum(nil)) == a.sum {
		return d.from(a.have)
	}
	if _, err := d.source.(io.Seeker).Seek(d.start, io.SeekStart); err != nil {
		return 0, err
	}
	return d.from(0)
}

// from sends the line with the position from which the content follows.
func (d *dialog) from(at int64) (int, error) {
	d.mu.Lock()
	d.state.from, d.state.read = at, at
	d.mu.Unlock()
	d.rest = d.size - at
	line := strings.NewReader(fmt.Sprintf("%d\n", at))
	d.speak = func(p []byte) (int, error) {
		n, _ := line.Read(p)
		if line.Len() == 0 {
			d.speak = d.send
		}
		return n, nil
	}
	d.report(Progress{Had: at})
	return 0, nil
}

// send provides the content, and at most size bytes.
func (d *dialog) send(p []byte) (int, error) {
	if d.rest == 0 {
		return 0, io.EOF
	}
	n, err := d.source.Read(p[:min(d.rest, int64(len(p)))])
	d.rest -= int64(n)
	d.mu.Lock()
	d.state.read += int64(n)
	d.state.short = err == io.EOF && d.rest > 0
	s := d.state
	d.mu.Unlock()
	if n > 0 {
		d.report(Progress{Had: s.from, Sent: s.read - s.from})
	}
	return n, err
}

func (d *dialog) report(p Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tell(p)
}

// tell is report for a caller that holds mu.
func (d *dialog) tell(p Progress) {
	if d.progress != nil {
		p.Size = d.size
		d.progress(p)
	}
}
