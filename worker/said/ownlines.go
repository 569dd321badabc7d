package said

import "bytes"

// ownLines keeps what a host says apart from the lines of our own in a transcript, which are
// "== step 2 of 3: name ==": a line of a host that begins so gets a bar in the place of the
// blank. No byte is added, so that every place in an output stays what it was.
type ownLines struct {
	seen int  // so much of the beginning of our lines stands in this one
	past bool // it cannot be like one of ours any more
}

const ownMark = "== "

// spare returns p with a bar where a line of it would look like one of ours. p itself stays as
// it is. The next piece goes on where this one ends.
func (o *ownLines) spare(p []byte) []byte {
	out, copied := p, false
	for i := 0; i < len(p); i++ {
		switch {
		case o.past:
			end := bytes.IndexByte(p[i:], '\n')
			if end < 0 {
				return out
			}
			i += end
			*o = ownLines{}
		case p[i] != ownMark[o.seen]:
			*o = ownLines{past: p[i] != '\n'}
		case o.seen+1 < len(ownMark):
			o.seen++
		default:
			if !copied {
				out, copied = bytes.Clone(p), true
			}
			out[i] = '|'
			*o = ownLines{past: true}
		}
	}
	return out
}
