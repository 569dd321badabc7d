package diff_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/internal/diff"
)

// unified writes hunks as diff -u does.
func unified(hunks []diff.Hunk) string {
	var b strings.Builder
	for _, h := range hunks {
		fmt.Fprintln(&b, h)
		for _, l := range h.Lines {
			b.WriteString(string(l.Op) + l.Text)
			if !strings.HasSuffix(l.Text, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	return b.String()
}

func TestTextsAreComparedLineByLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, a, b, want string }{
		{"same", "a\nb\n", "a\nb\n", ""},
		{"both empty", "", "", ""},
		{"one empty", "", "a\n", "@@ -0,0 +1 @@\n+a\n"},
		{"the other empty", "a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		{"a changed line", "1\n2\n3\n4\n5\n", "1\n2\nx\n4\n5\n",
			"@@ -2,3 +2,3 @@\n 2\n-3\n+x\n 4\n"},
		{"the end of the last line", "a\nb", "a\nb\n",
			"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"two places", "a\nb\nc\nd\ne\nf\n", "A\nb\nc\nd\ne\nF\n",
			"@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -5,2 +5,2 @@\n e\n-f\n+F\n"},
		{"two places that touch", "a\nb\nc\nd\n", "A\nb\nc\nD\n",
			"@@ -1,4 +1,4 @@\n-a\n+A\n b\n c\n-d\n+D\n"},
		{"a line more", "a\nb\nc\n", "a\nb\nnew\nc\n", "@@ -2,2 +2,3 @@\n b\n+new\n c\n"},
		{"a line less", "a\nb\nc\n", "a\nc\n", "@@ -1,3 +1,2 @@\n a\n-b\n c\n"},
		{"any bytes", "\xff\x00\n", "\xfe\x00\n", "@@ -1 +1 @@\n-\xff\x00\n+\xfe\x00\n"},
	} {
		if d := cmp.Diff(c.want, unified(diff.Texts([]byte(c.a), []byte(c.b), 1))); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// patch makes the second text of the first one and its hunks.
func patch(t interface{ Fatalf(string, ...any) }, a []byte, hunks []diff.Hunk) []byte {
	lines := strings.SplitAfter(string(a), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var out strings.Builder
	at, made := 0, 0
	for _, h := range hunks {
		for ; at < h.A-1; at++ {
			out.WriteString(lines[at])
			made++
		}
		if made != h.B-1 {
			t.Fatalf("%s begins behind %d lines", h, made)
		}
		took, gave := 0, 0
		for _, l := range h.Lines {
			if l.Op != diff.Insert {
				if at >= len(lines) || lines[at] != l.Text {
					t.Fatalf("%s: line %d is not %q", h, at+1, l.Text)
				}
				at++
				took++
			}
			if l.Op != diff.Delete {
				out.WriteString(l.Text)
				made++
				gave++
			}
		}
		if took != h.LinesA || gave != h.LinesB {
			t.Fatalf("%s has %d and %d lines", h, took, gave)
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return []byte(out.String())
}

// shortest returns the number of lines of two series that are not in a longest common one.
func shortest(x, y []string) int {
	row := make([]int, len(y)+1)
	for _, a := range x {
		corner := 0
		for j, b := range y {
			old := row[j+1]
			row[j+1] = max(row[j], row[j+1])
			if a == b {
				row[j+1] = corner + 1
			}
			corner = old
		}
	}
	return len(x) + len(y) - 2*row[len(y)]
}

func TestHunksArePatchesAndNoneIsShorter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n"}), 0, 30)
		x, y := words.Draw(t, "x"), words.Draw(t, "y")
		a, b := []byte(strings.Join(x, "")), []byte(strings.Join(y, ""))
		hunks := diff.Texts(a, b, rapid.IntRange(0, 3).Draw(t, "around"))
		if got := patch(t, a, hunks); !bytes.Equal(got, b) {
			t.Fatalf("patched %q, want %q", got, b)
		}
		n := 0
		for _, h := range hunks {
			for _, l := range h.Lines {
				if l.Op != diff.Same {
					n++
				}
			}
		}
		if want := shortest(x, y); n != want {
			t.Fatalf("%d lines changed, want %d:\n%s", n, want, unified(hunks))
		}
	})
}

// numbers is a text of so many lines in an order of its own.
func numbers(n, step int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintln(&b, i*step%n)
	}
	return b.Bytes()
}

// Too much work is not done; what comes is a patch all the same.
func TestTheWorkIsBounded(t *testing.T) {
	t.Parallel()
	a, b := numbers(20_011, 1), numbers(20_011, 7919)
	hunks := diff.Texts(a, b, 3)
	if got := patch(t, a, hunks); !bytes.Equal(got, b) {
		t.Error("the patch makes something else")
	}
	if len(hunks) != 1 {
		t.Errorf("%d hunks: it was not too much, so this test shows nothing", len(hunks))
	}
}

func FuzzTexts(f *testing.F) {
	f.Add([]byte("a\nb\n"), []byte("a\nc"), 3)
	f.Fuzz(func(t *testing.T, a, b []byte, around int) {
		if around < 0 || around > 100 {
			return
		}
		if got := patch(t, a, diff.Texts(a, b, around)); !bytes.Equal(got, b) {
			t.Errorf("patched %q, want %q", got, b)
		}
	})
}

func BenchmarkTexts(b *testing.B) {
	same := bytes.Repeat([]byte("some line of a host\n"), 3000)
	other := bytes.Replace(same, []byte("some"), []byte("another"), 1)
	shuffled, order := numbers(20_011, 7919), numbers(20_011, 1)
	for _, c := range []struct {
		name string
		x, y []byte
	}{{"one line", same, other}, {"too much", order, shuffled}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				diff.Texts(c.x, c.y, 3)
			}
		})
	}
}
