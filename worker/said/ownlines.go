package said

import "bytes"

// ownLines keeps the lines of a host apart from the lines of muster in a transcript, such as
// "== step 2 of 3: name ==". A line of a host that begins like that gets a bar in place of the
// blank. No byte is added, so every position in the output stays the same.
type ownLines struct {
	seen int  // the number of bytes of ownMark with which this line begins
	past bool // this line does not begin with ownMark
}

const ownMark = "== "

// spare returns p with a bar where a line would look like one of muster. It does not change p. The
// next piece continues at the end of this one.
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
