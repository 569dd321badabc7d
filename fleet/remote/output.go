package remote

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

// Output is what a command wrote, standard output and standard error in the
// order in which they arrived, as the bytes that came. Of a long one only the
// head and the tail are kept.
type Output struct {
	Head    []byte
	Tail    []byte // what came after Head, or its end
	Omitted int64  // bytes between Head and Tail that were not kept
}

// Size is the number of bytes that the command wrote.
func (o Output) Size() int64 {
	return int64(len(o.Head)) + o.Omitted + int64(len(o.Tail))
}

// Bytes returns what was kept, with a line in the place of what was not.
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

// LeftOut is what stands in the place of n bytes that were not kept.
func LeftOut(n int64) string { return fmt.Sprintf("… %s left out …", ByteCount(n)) }

// ByteCount writes n for people, with at most three digits.
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

// recorder keeps the head and the tail of what is written to it. Two streams
// write at once. It never blocks and never fails: a reader that stops would stop
// the command on the host.
type recorder struct {
	half  int    // how much of the tail is kept
	touch func() // called for all that comes in

	mu      sync.Mutex // guards all below
	headMax int        // how much of the head is kept
	head    []byte
	tail    []byte // a ring once it is full
	next    int    // where the ring goes on
	total   int64
	sealed  bool
	live    io.Writer // gets all that is counted; may be nil
}

func newRecorder(most int, touch func()) *recorder {
	return &recorder{half: most / 2, headMax: most / 2, touch: touch}
}

// Skipper is a Command.Live that hears of bytes which are lost before anybody saw them.
type Skipper interface {
	Skip(n int64)
}

// watch lets live have what comes from now on.
func (r *recorder) watch(live io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = live
}

// Write keeps p, or forgets some of it.
func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	n := len(p)
	if r.sealed {
		return n, nil
	}
	r.touch()
	if r.live != nil {
		_, _ = r.live.Write(p) // what it makes of it is its own business
	}
	r.total += int64(n)
	room := min(n, r.headMax-len(r.head))
	r.head = append(r.head, p[:room]...)
	r.keepEnd(p[room:])
	return n, nil
}

// skip notes that n bytes come that are lost: of what is kept they are the gap, or a part
// of it.
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

// seal returns what was kept. What is written later is forgotten.
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
