package programs

import (
	"context"
	"sync"
	"time"
)

// splitter cuts what a program prints into lines. A line that is too long is left out whole.
type splitter struct {
	most  int
	line  func([]byte)
	large func()
	pace  pacer

	mu   sync.Mutex // one stream has one writer; another one is a mistake that must not spoil lines
	kept []byte
	skip bool // the rest of a line that is too long
}

// Write takes more of what a program prints.
func (w *splitter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pace.wait(0, len(p))
	for _, c := range p {
		switch {
		case c == '\n':
			w.pace.wait(1, 0)
			if !w.skip {
				w.line(w.kept)
			}
			w.kept, w.skip = w.kept[:0], false
		case w.skip:
		case len(w.kept) == w.most:
			w.skip = true
			w.large()
		default:
			w.kept = append(w.kept, c)
		}
	}
	return len(p), nil
}

// end takes what is left as a line.
func (w *splitter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept) > 0 && !w.skip {
		w.line(w.kept)
	}
	w.kept = nil
}

// The bounds of a second.
const (
	linesMost = 1000
	bytesMost = 16 << 20
)

// pacer makes a program wait that prints faster than anybody needs.
type pacer struct {
	ctx          context.Context
	now          func() time.Time
	since        time.Time
	lines, bytes int
}

// wait counts what was read, and waits for the next second if it was too much for this one.
func (p *pacer) wait(lines, bytes int) {
	now := p.now()
	if now.Sub(p.since) >= time.Second {
		p.since, p.lines, p.bytes = now, 0, 0
	}
	p.lines, p.bytes = p.lines+lines, p.bytes+bytes
	if p.lines > linesMost || p.bytes > bytesMost {
		sleep(p.ctx, p.since.Add(time.Second).Sub(now))
		p.since, p.lines, p.bytes = p.now(), lines, bytes
	}
}

// The bounds of the log.
const (
	wordsOf   = 500 // bytes of a line
	wordsMost = 20  // lines a minute
)

// sparing writes a few lines a minute into the log.
type sparing struct {
	now   func() time.Time
	say   func(text string)
	since time.Time
	n     int
}

func (s *sparing) note(text string) {
	if now := s.now(); now.Sub(s.since) >= time.Minute {
		s.since, s.n = now, 0
	}
	switch s.n++; {
	case s.n <= wordsMost:
		s.say(text)
	case s.n == wordsMost+1:
		s.say("(there are more in this minute than the log takes)")
	}
}
