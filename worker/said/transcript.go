package said

import (
	"fmt"
	"slices"

	"muster/fleet/remote"
	"muster/jobs"
)

// A Transcript holds the output of a host in all steps of an attempt: its head and its tail, within
// bounds, with at most one gap.
type Transcript struct {
	half int // the most bytes of the head, and of the tail
	all  remote.Output
	Live *Voice // gets the same bytes
	runs jobs.Runs
	own  ownLines
}

// NewTranscript returns an empty transcript of at most so many bytes. Its voice gets the same
// bytes.
func NewTranscript(most int, live *Voice) *Transcript {
	return &Transcript{half: most / 2, Live: live}
}

// Remark adds a line of muster, which ends the last run.
func (t *Transcript) Remark(text string) {
	line := t.line(text)
	t.runs.Last, t.own = jobs.Run{}, ownLines{}
	t.write([]byte(line))
	t.Live.tell(line, t.runs)
}

// line returns a line of muster.
func (t *Transcript) line(text string) string {
	line := fmt.Sprintf("== %s ==\n", text)
	if end := t.end(); end != 0 && end != '\n' {
		line = "\n" + line
	}
	return line
}

// Begins notes the beginning of a run, to which all output belongs until the next remark.
func (t *Transcript) Begins(run jobs.Run) {
	if run.Token != 0 {
		run.At = t.all.Size()
	}
	t.runs.Last = run
	t.Live.tell("", t.runs)
}

// TakeOver adds the line that this attempt is attached to a run. An attempt attaches to at most
// one.
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

// Again adds the line that a step runs once more, although an earlier attempt at it may have made
// output. The noted run begins after that line.
func (t *Transcript) Again(text string) {
	line := t.line(text)
	t.own = ownLines{}
	t.write([]byte(line))
	if t.runs.Last.Token != 0 {
		t.runs.Last.At = t.all.Size()
	}
	t.Live.tell(line, t.runs)
}

// end returns the last byte so far; 0 if there is none.
func (t *Transcript) end() byte {
	for _, part := range [][]byte{t.all.Tail, t.all.Head} {
		if n := len(part); n > 0 {
			return part[n-1]
		}
	}
	return 0
}

// Add appends the output of one step. The voice has it by now, unless muster itself made the
// output. If a part of the output is missing, the gap of the transcript grows up to that part.
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

// Output returns the whole transcript, and the place of its gap.
func (t *Transcript) Output() ([]byte, jobs.Gap) {
	all := slices.Concat(t.all.Head, t.all.Tail)
	if t.all.Omitted == 0 {
		return all, jobs.Gap{}
	}
	return all, jobs.Gap{At: len(t.all.Head), Left: t.all.Omitted}
}

// RunsFor returns the runs to keep with a result: the run to which this attempt is attached and,
// unless the job has ended, the run to which the next attempt may attach.
func (t *Transcript) RunsFor(k jobs.Kind) jobs.Runs {
	runs := t.runs
	if k == jobs.KindEnd {
		runs.Last = jobs.Run{}
	}
	return runs
}
