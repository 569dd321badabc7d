package jobs

// Gap is a place of an output from which bytes were left out: behind its first At
// bytes there were Left more. The zero Gap is none.
type Gap struct {
	At   int   `json:"at"`
	Left int64 `json:"left"`
}

// Speech is what the host of a running job said since the last one.
type Speech struct {
	Job   ID
	Token Token
	End   int64   // bytes that the host has said in this attempt, these included
	Data  []byte  // the last of them
	Drop  []int64 // ends of earlier speeches, which are to be forgotten
	Runs  Runs
}

// Run is a run of a step on a host that keeps a record of it: the attempt that began
// it, and the number by which the host knows the step. An attempt that takes it over
// hears all of it anew, from its first byte.
type Run struct {
	Token Token // of the attempt that began it; 0: there is none
	Step  int
	At    int64 // where its first byte stands in what an attempt heard
}

// Is tells whether two runs are the same, wherever they were heard.
func (r Run) Is(other Run) bool {
	return r.Token != 0 && r.Token == other.Token && r.Step == other.Step
}

// Runs are what is known of runs in the output of an attempt. The zero value is nothing.
type Runs struct {
	Taken Run   // over from an earlier attempt
	Mark  int64 // where the line stands that says so; it ends where Taken begins
	Last  Run   // of which the host spoke last
}

// Output is what a host said in all attempts at a job, as far as it was kept: in
// order, with gaps between pieces where something was left out.
type Output []Piece

// Piece is bytes that came one after the other.
type Piece struct {
	At   int64 // of what the host said, what was left out included
	Data []byte
	Ours bool // it says that a run was taken over: a host that was not lost has no such line
}

// End is the place behind the piece.
func (p Piece) End() int64 { return p.At + int64(len(p.Data)) }

// End is the place behind all of it, which is where a reader goes on.
func (o Output) End() int64 {
	if len(o) == 0 {
		return 0
	}
	return o[len(o)-1].End()
}

// From is what stands at a place and behind it.
func (o Output) From(at int64) Output {
	var out Output
	for _, p := range o {
		switch {
		case p.End() <= at:
			continue
		case p.At < at:
			_, p = p.Cut(at)
		}
		out = append(out, p)
	}
	return out
}

// Cut cuts a piece at a place into what stands before it and what stands behind it.
func (p Piece) Cut(at int64) (before, behind Piece) {
	n := min(max(at-p.At, 0), int64(len(p.Data)))
	before, behind = p, p
	before.Data, behind.At, behind.Data = p.Data[:n], p.At+n, p.Data[n:]
	return before, behind
}

// With is an output with what it lacks of a piece.
func (o Output) With(p Piece) Output {
	if len(p.Data) == 0 {
		return o
	}
	if p.At >= o.End() {
		return append(o, p)
	}
	out := make(Output, 0, len(o)+2)
	for _, q := range o {
		var before Piece
		if before, p = p.Cut(q.At); len(before.Data) > 0 {
			out = append(out, before)
		}
		out = append(out, q)
		_, p = p.Cut(q.End())
	}
	if len(p.Data) > 0 {
		out = append(out, p)
	}
	return out
}

// Theirs is what is left without our own lines about runs that were taken over, as if
// none had been.
func (o Output) Theirs() Output {
	var out Output
	ours := int64(0)
	for _, p := range o {
		if p.Ours {
			ours += int64(len(p.Data))
			continue
		}
		p.At -= ours
		out = append(out, p)
	}
	return out
}
