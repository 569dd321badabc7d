package worker

import (
	"fmt"
	"slices"

	"muster/fleet/remote"
	"muster/jobs"
)

// A transcript is what a host said in all steps of an attempt: the head and the
// tail of it, within bounds, with one gap at most.
type transcript struct {
	half int // bytes of the head, and of the tail
	all  remote.Output
	live *voice // hears the same
}

func newTranscript(most int, live *voice) *transcript {
	return &transcript{half: most / 2, live: live}
}

// remark is a line of our own.
func (t *transcript) remark(text string) {
	line := fmt.Sprintf("== %s ==\n", text)
	if end := t.end(); end != 0 && end != '\n' {
		line = "\n" + line
	}
	t.write([]byte(line))
	_, _ = t.live.Write([]byte(line)) // it never fails
}

// end is the last byte so far, 0 if there is none.
func (t *transcript) end() byte {
	for _, part := range [][]byte{t.all.Tail, t.all.Head} {
		if n := len(part); n > 0 {
			return part[n-1]
		}
	}
	return 0
}

// add appends what one step said. The voice has heard it by now, unless it was nobody
// but ourselves who said it. If something was left out, the gap of the whole grows to
// there.
func (t *transcript) add(o remote.Output) {
	if t.live.heard() == t.all.Size() {
		_, _ = t.live.Write(o.Head)
		t.live.Skip(o.Omitted)
		_, _ = t.live.Write(o.Tail)
	}
	t.write(o.Head)
	if o.Omitted > 0 {
		t.all.Omitted += o.Omitted + int64(len(t.all.Tail))
		t.all.Tail = nil
	}
	t.write(o.Tail)
	t.live.said(t.all.Size())
}

func (t *transcript) write(p []byte) {
	if t.all.Omitted == 0 && len(t.all.Tail) == 0 {
		n := min(len(p), t.half-len(t.all.Head))
		t.all.Head = append(t.all.Head, p[:n]...)
		p = p[n:]
	}
	t.all.Tail = append(t.all.Tail, p...)
	if over := len(t.all.Tail) - t.half; over > 0 {
		t.all.Tail = append([]byte(nil), t.all.Tail[over:]...)
		t.all.Omitted += int64(over)
	}
}

// output is all of it, and where the gap is.
func (t *transcript) output() ([]byte, jobs.Gap) {
	all := slices.Concat(t.all.Head, t.all.Tail)
	if t.all.Omitted == 0 {
		return all, jobs.Gap{}
	}
	return all, jobs.Gap{At: len(t.all.Head), Left: t.all.Omitted}
}
