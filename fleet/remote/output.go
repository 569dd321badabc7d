package remote

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

// Output is the output of a command: standard output and standard error in the order in
// which they arrived, as unchanged bytes. Only the head and the tail of a long one are
// kept.
type Output struct {
	Head    []byte
	Tail    []byte // the bytes after Head, or the last of them
	Omitted int64  // number of dropped bytes between Head and Tail
}

// Size returns the number of bytes that the command wrote.
func (o Output) Size() int64 {
	return int64(len(o.Head)) + o.Omitted + int64(len(o.Tail))
}

// Bytes returns the kept bytes, with a line in place of the dropped ones.
func (o Output) Bytes() []byte {
	if o.Omitted == 0 {
		return slices.Concat(o.Head, o.Tail)
	}
	mark := LeftOut(o.Omitted) + "\n"
	if len(o.Head) > 0 && o.Head[len(o.Head)-1] != '\n' {
		mark = "\n" + mark
	}
	return slices.Concat(o.Head, []byte(mark), o.Tail)
}

// LeftOut returns the text that replaces n dropped bytes.
func LeftOut(n int64) string { return fmt.Sprintf("… %s left out …", ByteCount(n)) }

// ByteCount formats n for people, with at most three digits.
func ByteCount(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	value, unit := float64(n), ""
	for _, unit = range []string{"kB", "MB", "GB", "TB"} {
		value /= 1000
		if value < 999.5 {
			break
		}
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.0f %s", value, unit)
}

// recorder keeps the head and the tail of everything written to it, by two streams at once.
// It never blocks and never fails, because the command on the host would stop if nobody read
// its output.
type recorder struct {
	half  int    // size of the kept tail
	touch func() // called for everything that arrives

	mu      sync.Mutex // guards the fields below
	headMax int        // size of the kept head
	head    []byte
	tail    []byte // a ring once it is full
	next    int    // index in the ring for the next byte
	total   int64
	sealed  bool
	live    io.Writer // receives everything that is counted; may be nil
}

func newRecorder(most int, touch func()) *recorder {
	return &recorder{half: most / 2, headMax: most / 2, touch: touch}
}

// Skipper is a Command.Live that wants to know about bytes that were lost before arrival.
type Skipper interface {
	Skip(n int64)
}

// watch sets live as receiver of all further output.
func (r *recorder) watch(live io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = live
}

// Write keeps p, or drops a part of it.
func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	n := len(p)
	if r.sealed {
		return n, nil
	}
	r.touch()
	if r.live != nil {
		_, _ = r.live.Write(p) // its errors are its own
	}
	r.total += int64(n)
	room := min(n, r.headMax-len(r.head))
	r.head = append(r.head, p[:room]...)
	r.keepEnd(p[room:])
	return n, nil
}

// skip counts n bytes that were lost on the host. They become a part of the gap between head
// and tail.
func (r *recorder) skip(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed {
		return
	}
	r.touch()
	if live, ok := r.live.(Skipper); ok {
		live.Skip(n)
	}
	r.total += n
	r.headMax = len(r.head)
	r.tail, r.next = r.tail[:0], 0
}

func (r *recorder) keepEnd(p []byte) {
	if len(p) >= r.half {
		r.tail = append(r.tail[:0], p[len(p)-r.half:]...)
		r.next = 0
		return
	}
	room := min(len(p), r.half-len(r.tail))
	r.tail = append(r.tail, p[:room]...)
	for p = p[room:]; len(p) > 0; {
		n := copy(r.tail[r.next:], p)
		p = p[n:]
		r.next = (r.next + n) % r.half
	}
}

// seal returns the kept output. It drops everything that is written later.
func (r *recorder) seal() Output {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.sealed = true
	return Output{
		Head:    r.head,
		Tail:    slices.Concat(r.tail[r.next:], r.tail[:r.next]),
		Omitted: r.total - int64(len(r.head)) - int64(len(r.tail)),
	}
}
