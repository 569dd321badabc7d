package jobs

// Gap is a place of an output at which bytes were left out: Left bytes after its first At bytes.
// The zero Gap is no gap.
type Gap struct {
	At   int   `json:"at"`
	Left int64 `json:"left"`
}

// Speech is the output of a running job since the last Speech.
type Speech struct {
	Job   ID
	Token Token
	End   int64   // bytes of output in this attempt so far, with Data
	Data  []byte  // the last of these bytes
	Drop  []int64 // ends of earlier speeches that the queue may drop
	Runs  Runs
}

// Run identifies a run of a step on a host that keeps a record of it: by the attempt that began
// it, and the number of the step in the record. An attempt that attaches to it hears all of it
// anew, from its first byte.
type Run struct {
	Token Token // of the attempt that began it; 0: there is no run
	Step  int
	At    int64 // position of its first byte in the output of the attempt
}

// Is reports whether both are the same run, whichever attempt heard it.
func (r Run) Is(other Run) bool {
	return r.Token != 0 && r.Token == other.Token && r.Step == other.Step
}

// Runs holds the runs in the output of an attempt. The zero value means that none is known.
type Runs struct {
	Taken Run   // the run that it took over from an earlier attempt
	Mark  int64 // position of the line that reports so; the line ends where Taken begins
	Last  Run   // the last run with output
}

// Output is the stored output of all attempts at a job: pieces in order, with gaps between.
type Output []Piece

// Piece is a sequence of bytes without a gap.
type Piece struct {
	At   int64 // position in the whole output, with the bytes that were left out
	Data []byte
	Ours bool // a line of muster: it reports that a run was taken over
}

// End returns the position after the piece.
func (p Piece) End() int64 { return p.At + int64(len(p.Data)) }

// End returns the position after the output, from which a reader continues.
func (o Output) End() int64 {
	if len(o) == 0 {
		return 0
	}
	return o[len(o)-1].End()
}

// From returns the output from a position on.
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

// Cut splits a piece at a position.
func (p Piece) Cut(at int64) (before, behind Piece) {
	n := min(max(at-p.At, 0), int64(len(p.Data)))
	before, behind = p, p
	before.Data, behind.At, behind.Data = p.Data[:n], p.At+n, p.Data[n:]
	return before, behind
}

// With returns the output with the bytes of a piece that it lacks.
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

// Theirs returns the output of the host, without muster's own lines about runs that were taken
// over; positions count as if there were no such lines.
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
