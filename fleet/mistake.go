package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one error in an inventory and its position.
type Mistake struct {
	File string // name of the Source; empty when the hosts came from no file
	Line int    // 1 is the first
	Text string // what is wrong and what to do
}

// Error returns the mistake as one line, "file:line: text".
func (m Mistake) Error() string {
	if m.File == "" {
		return m.Text
	}
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Text)
}

// Mistakes is the error of Parse and New: all mistakes, in the order of files and
// lines.
type Mistakes []Mistake

// mistakesShown bounds the text of Mistakes, because more mistakes than these usually have
// one common cause, which gets mended first.
const mistakesShown = 100

// Error returns one line for each mistake, and only a count of those beyond mistakesShown.
func (ms Mistakes) Error() string {
	var b strings.Builder
	for i, m := range ms {
		if i == mistakesShown {
			fmt.Fprintf(&b, "\nand %d more mistakes", len(ms)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(m.Error())
	}
	return b.String()
}

// Sort sorts the mistakes of each file by line; the files keep the order in which they
// were given.
func (ms Mistakes) Sort(files []string) {
	rank := make(map[string]int, len(files))
	for i, f := range files {
		if _, seen := rank[f]; !seen {
			rank[f] = i
		}
	}
	slices.SortStableFunc(ms, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(rank[a.File], rank[b.File]), cmp.Compare(a.Line, b.Line))
	})
}
