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
}

// Output is what a host said in all attempts at a job, as far as it was kept: in
// order, with gaps between pieces where something was left out.
type Output []Piece

// Piece is bytes that came one after the other.
type Piece struct {
	At   int64 // of what the host said, what was left out included
	Data []byte
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
			p = Piece{at, p.Data[at-p.At:]}
		}
		out = append(out, p)
	}
	return out
}
