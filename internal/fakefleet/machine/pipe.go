package machine

import (
	"errors"
	"io"
	"sync"
)

// Source is the input of a process. Read fails with ErrKilled when done is closed.
type Source interface {
	Read(done <-chan struct{}, p []byte) (int, error)
}

// Sink is the output of a process: Write writes all of p, or fails, with ErrKilled when done is
// closed and with ErrNoReader when nobody reads any more.
type Sink interface {
	Write(done <-chan struct{}, p []byte) error
}

// The errors of sources and sinks that end a process.
var (
	ErrKilled   = errors.New("killed")
	ErrNoReader = errors.New("nobody reads any more")
)

// A pipe holds at most 16 chunks of 8 KiB: a little more than a pipe of Linux.
const (
	pipeChunks = 16
	chunkMax   = 8 << 10
)

// Pipe carries bytes like a pipe of an operating system: a writer waits when it is full and fails
// without a reader, and a reader gets the rest after the last writer. One may read, several may
// write.
type Pipe struct {
	chunks chan []byte
	unread chan struct{} // closed when nobody reads any more
	ended  chan struct{} // closed when nobody writes any more
	rest   []byte        // the bytes that the last read left

	CloseRead  func() // ends reading
	CloseWrite func() // ends writing
}

// NewPipe makes a pipe.
func NewPipe() *Pipe {
	p := &Pipe{
		chunks: make(chan []byte, pipeChunks),
		unread: make(chan struct{}),
		ended:  make(chan struct{}),
	}
	p.CloseRead = sync.OnceFunc(func() { close(p.unread) })
	p.CloseWrite = sync.OnceFunc(func() { close(p.ended) })
	return p
}

// Write implements Sink.
func (p *Pipe) Write(done <-chan struct{}, b []byte) error {
	for len(b) > 0 {
		chunk := append([]byte(nil), b[:min(len(b), chunkMax)]...)
		select {
		case <-p.unread:
			return ErrNoReader
		default:
		}
		select {
		case p.chunks <- chunk:
			b = b[len(chunk):]
		case <-p.unread:
			return ErrNoReader
		case <-done:
			return ErrKilled
		}
	}
	return nil
}

// Read implements Source.
func (p *Pipe) Read(done <-chan struct{}, b []byte) (int, error) {
	if len(p.rest) == 0 {
		chunk, err := p.next(done)
		if err != nil {
			return 0, err
		}
		p.rest = chunk
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// next takes a chunk that is there before it looks for the end: select has no order.
func (p *Pipe) next(done <-chan struct{}) ([]byte, error) {
	select {
	case chunk := <-p.chunks:
		return chunk, nil
	default:
	}
	select {
	case chunk := <-p.chunks:
		return chunk, nil
	case <-done:
		return nil, ErrKilled
	case <-p.ended:
	}
	select {
	case chunk := <-p.chunks:
		return chunk, nil
	default:
		return nil, io.EOF
	}
}

// nowhere is /dev/null.
type nowhere struct{}

func (nowhere) Read(<-chan struct{}, []byte) (int, error) { return 0, io.EOF }
func (nowhere) Write(<-chan struct{}, []byte) error       { return nil }
