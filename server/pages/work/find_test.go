package work

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// plainly writes what a search has found as text, with the hits in brackets.
func plainly(f logFind) string {
	var b strings.Builder
	for _, l := range f.lines {
		if l.apart {
			b.WriteString("--\n")
		}
		fmt.Fprintf(&b, "%d:", l.n)
		for _, p := range l.pieces {
			if p.hit {
				b.WriteString("[" + p.text + "]")
			} else {
				b.WriteString(p.text)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestASearchShowsLinesWithTheirNeighbours(t *testing.T) {
	t.Parallel()
	const log = "a\nb\nError one ERROR\nd\ne\nf\ng\nh\ni\nj error\nk\n"
	const want = "1:a\n2:b\n3:[Error] one [ERROR]\n4:d\n5:e\n--\n8:h\n9:i\n10:j [error]\n11:k\n"
	f := findIn(log, "error")
	if got := plainly(f); got != want || f.hits != 2 || f.shown != 2 {
		t.Errorf("%d hits:\n%s\nwant\n%s", f.hits, got, want)
	}
	if f := findIn("a\nx\nx\nb", "X"); plainly(f) != "1:a\n2:[x]\n3:[x]\n4:b\n" {
		t.Errorf("neighbours twice:\n%s", plainly(f))
	}
	for _, word := range []string{".*", "(", "\\", "[x]", "İ"} { // a text is no pattern
		if f := findIn("a\nab\n"+word+"\n", word); f.hits != 1 || !strings.Contains(plainly(f), "["+word+"]") {
			t.Errorf("%q: %d hits\n%s", word, f.hits, plainly(f))
		}
	}
	if f := findIn("a\n", ""); f.hits != 0 || len(f.lines) != 0 {
		t.Errorf("nothing was looked for, and found: %+v", f)
	}
}

func TestASearchIsBounded(t *testing.T) {
	t.Parallel()
	f := findIn(strings.Repeat("x error\n", 5000), "error")
	if f.hits != 5000 || f.shown != linesMax || len(f.lines) > linesMax*(2*linesRound+1) {
		t.Errorf("%d hits, %d shown in %d lines", f.hits, f.shown, len(f.lines))
	}
	f = findIn(strings.Repeat("é", 10000)+"error"+strings.Repeat("é", 10000), "error")
	if got := plainly(f); len(got) > 3*lineMax || !strings.Contains(got, "é[error]é") || !utf8.ValidString(got) {
		t.Errorf("a long line: %d bytes, valid %t", len(got), utf8.ValidString(got))
	}
	if f := findIn("é", strings.Repeat("é", 300)); len(f.word) > findMax || !utf8.ValidString(f.word) {
		t.Errorf("a long word: %d bytes", len(f.word))
	}
}
