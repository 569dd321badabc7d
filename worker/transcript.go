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
	runs jobs.Runs
	own  ownLines
}

func newTranscript(most int, live *voice) *transcript {
	return &transcript{half: most / 2, live: live}
}

// remark is a line of our own. It is behind the last run.
func (t *transcript) remark(text string) {
	line := t.line(text)
	t.runs.Last, t.own = jobs.Run{}, ownLines{}
	t.write([]byte(line))
	t.live.tell(line, t.runs)
}

func (t *transcript) line(text string) string {
	line := fmt.Sprintf("== %s ==\n", text)
	if end := t.end(); end != 0 && end != '\n' {
		line = "\n" + line
	}
	return line
}

// begins notes that a run begins of which all that follows is told, until the next remark.
func (t *transcript) begins(run jobs.Run) {
	if run.Token != 0 {
		run.At = t.all.Size()
	}
	t.runs.Last = run
	t.live.tell("", t.runs)
}

// takeOver says that a run was taken over. An attempt takes over one at most.
func (t *transcript) takeOver(run jobs.Run) {
	line := t.line("attached to what an earlier attempt started")
	t.runs.Last = jobs.Run{}
	if t.runs.Taken.Token == 0 && run.Token != 0 {
		t.runs.Mark = t.all.Size()
		run.At = t.runs.Mark + int64(len(line))
		t.runs.Taken, t.runs.Last = run, run
	}
	t.own = ownLines{}
	t.write([]byte(line))
	t.live.tell(line, t.runs)
}

// again says that a step runs once more, of which an earlier attempt may have been heard. The
// run that was noted begins behind that line.
func (t *transcript) again(text string) {
	line := t.line(text)
	t.own = ownLines{}
	t.write([]byte(line))
	if t.runs.Last.Token != 0 {
		t.runs.Last.At = t.all.Size()
	}
	t.live.tell(line, t.runs)
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
	t.write(t.own.spare(o.Head))
	if o.Omitted > 0 {
		t.all.Omitted += o.Omitted + int64(len(t.all.Tail))
		t.all.Tail, t.own = nil, ownLines{}
	}
	t.write(t.own.spare(o.Tail))
	t.live.said(t.all.Size())
}

// hears takes what a step said, and what is to be told of that beside the outcome of the job.
func (a *attempt) hears(r *remote.Result) {
	a.said.add(r.Output)
	if r.Lost != "" {
		a.said.remark("what it said from here on is lost: " + r.Lost)
		a.memory.Lost = r.Lost
	}
	a.attached = a.attached || r.Attached
	r.Attached = a.attached
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

// runsFor is what of the runs is worth keeping with a result: which one was taken over
// and, unless the job has ended, which one may be taken over next.
func (t *transcript) runsFor(k jobs.Kind) jobs.Runs {
	runs := t.runs
	if k == jobs.KindEnd {
		runs.Last = jobs.Run{}
	}
	return runs
}
