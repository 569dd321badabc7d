package diff

import (
	"bytes"
	"fmt"
)

// Op says whether a line is kept, added or removed.
type Op byte

// The ops of lines.
const (
	Same   Op = ' '
	Delete Op = '-'
	Insert Op = '+'
)

// Line is a line of one text, or of both. A last line that is not ended lacks its
// newline.
type Line struct {
	Op   Op
	Text string
}

// Hunk is a place where two texts differ, with some lines around it.
type Hunk struct {
	A, B           int // first line in each text, from 1
	LinesA, LinesB int // how many lines it has there
	Lines          []Line
}

// String is the head of the hunk in a unified diff.
func (h Hunk) String() string {
	return fmt.Sprintf("@@ -%s +%s @@", extent(h.A, h.LinesA), extent(h.B, h.LinesB))
}

func extent(first, lines int) string {
	switch lines {
	case 0:
		return fmt.Sprintf("%d,0", first-1) // the line before, as diff(1) has it
	case 1:
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d,%d", first, lines)
}

// Texts returns the changes that turn a into b, in hunks with so many lines around each change;
// none if they are equal.
func Texts(a, b []byte, around int) []Hunk {
	x, y := split(a), split(b)
	var hunks []Hunk
	for _, c := range changes(x, y) {
		last := len(hunks) - 1
		if last < 0 || c.a-around > hunks[last].A-1+hunks[last].LinesA+around {
			hunks = append(hunks, begin(c, around))
			last++
		}
		hunks[last].extend(c, x, y)
	}
	for i := range hunks {
		end := hunks[i].A - 1 + hunks[i].LinesA
		hunks[i].same(x[end:min(end+around, len(x))])
	}
	return hunks
}

// begin is an empty hunk some lines before a change.
func begin(c change, around int) Hunk {
	before := min(around, c.a)
	return Hunk{A: c.a - before + 1, B: c.b - before + 1}
}

// extend goes on to the end of a change.
func (h *Hunk) extend(c change, x, y [][]byte) {
	h.same(x[h.A-1+h.LinesA : c.a])
	for _, line := range x[c.a:c.endA] {
		h.Lines = append(h.Lines, Line{Delete, string(line)})
	}
	for _, line := range y[c.b:c.endB] {
		h.Lines = append(h.Lines, Line{Insert, string(line)})
	}
	h.LinesA += c.endA - c.a
	h.LinesB += c.endB - c.b
}

func (h *Hunk) same(lines [][]byte) {
	for _, line := range lines {
		h.Lines = append(h.Lines, Line{Same, string(line)})
	}
	h.LinesA += len(lines)
	h.LinesB += len(lines)
}

// split cuts a text into lines, each with its newline.
func split(text []byte) [][]byte {
	var lines [][]byte
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		lines = append(lines, text[:n])
		text = text[n:]
	}
	return lines
}

// change is a place where lines a to endA of one text are lines b to endB of the
// other; counted from 0, the ends not included.
type change struct{ a, endA, b, endB int }

// changes lists where two texts differ, in order.
func changes(x, y [][]byte) []change {
	first := 0
	for first < len(x) && first < len(y) && bytes.Equal(x[first], y[first]) {
		first++
	}
	endX, endY := len(x), len(y)
	for endX > first && endY > first && bytes.Equal(x[endX-1], y[endY-1]) {
		endX, endY = endX-1, endY-1
	}
	var list []change
	a, b := first, first
	for _, p := range append(common(x[first:endX], y[first:endY]), pair{endX - first, endY - first}) {
		if p.a += first; a < p.a || b < p.b+first {
			list = append(list, change{a, p.a, b, p.b + first})
		}
		a, b = p.a+1, p.b+first+1
	}
	return list
}
