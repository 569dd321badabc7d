package said

import (
	"fmt"
	"slices"

	"muster/fleet/remote"
	"muster/jobs"
)

// A Transcript is what a host said in all steps of an attempt: the head and the
// tail of it, within bounds, with one gap at most.
type Transcript struct {
	half int // bytes of the head, and of the tail
	all  remote.Output
	Live *Voice // hears the same
	runs jobs.Runs
	own  ownLines
}

// NewTranscript returns an empty transcript of at most so many bytes. Its voice hears the same.
func NewTranscript(most int, live *Voice) *Transcript {
	return &Transcript{half: most / 2, Live: live}
}

// Remark is a line of our own. It is behind the last run.
func (t *Transcript) Remark(text string) {
	line := t.line(text)
	t.runs.Last, t.own = jobs.Run{}, ownLines{}
	t.write([]byte(line))
	t.Live.tell(line, t.runs)
}

func (t *Transcript) line(text string) string {
	line := fmt.Sprintf("== %s ==\n", text)
	if end := t.end(); end != 0 && end != '\n' {
		line = "\n" + line
	}
	return line
}

// Begins notes that a run begins of which all that follows is told, until the next remark.
func (t *Transcript) Begins(run jobs.Run) {
	if run.Token != 0 {
		run.At = t.all.Size()
	}
	t.runs.Last = run
	t.Live.tell("", t.runs)
}

// TakeOver says that a run was taken over. An attempt takes over one at most.
func (t *Transcript) TakeOver(run jobs.Run) {
	line := t.line("attached to what an earlier attempt started")
	t.runs.Last = jobs.Run{}
	if t.runs.Taken.Token == 0 && run.Token != 0 {
		t.runs.Mark = t.all.Size()
		run.At = t.runs.Mark + int64(len(line))
		t.runs.Taken, t.runs.Last = run, run
	}
	t.own = ownLines{}
	t.write([]byte(line))
	t.Live.tell(line, t.runs)
}

// Again says that a step runs once more, of which an earlier attempt may have been heard. The
// run that was noted begins behind that line.
func (t *Transcript) Again(text string) {
	line := t.line(text)
	t.own = ownLines{}
	t.write([]byte(line))
	if t.runs.Last.Token != 0 {
		t.runs.Last.At = t.all.Size()
	}
	t.Live.tell(line, t.runs)
}

// end is the last byte so far, 0 if there is none.
func (t *Transcript) end() byte {
	for _, part := range [][]byte{t.all.Tail, t.all.Head} {
		if n := len(part); n > 0 {
			return part[n-1]
		}
	}
	return 0
}

// Add appends what one step said. The voice has heard it by now, unless it was nobody
// but ourselves who said it. If something was left out, the gap of the whole grows to
// there.
func (t *Transcript) Add(o remote.Output) {
	if t.Live.heard() == t.all.Size() {
		_, _ = t.Live.Write(o.Head)
		t.Live.Skip(o.Omitted)
		_, _ = t.Live.Write(o.Tail)
	}
	t.write(t.own.spare(o.Head))
	if o.Omitted > 0 {
		t.all.Omitted += o.Omitted + int64(len(t.all.Tail))
		t.all.Tail, t.own = nil, ownLines{}
	}
	t.write(t.own.spare(o.Tail))
	t.Live.said(t.all.Size())
}

func (t *Transcript) write(p []byte) {
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

// Output is all of it, and where the gap is.
func (t *Transcript) Output() ([]byte, jobs.Gap) {
	all := slices.Concat(t.all.Head, t.all.Tail)
	if t.all.Omitted == 0 {
		return all, jobs.Gap{}
	}
	return all, jobs.Gap{At: len(t.all.Head), Left: t.all.Omitted}
}

// RunsFor returns the runs that are kept with a result: the one that was taken over and, unless
// the job has ended, the one that may be taken over next.
func (t *Transcript) RunsFor(k jobs.Kind) jobs.Runs {
	runs := t.runs
	if k == jobs.KindEnd {
		runs.Last = jobs.Run{}
	}
	return runs
}
