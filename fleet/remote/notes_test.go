package remote

import (
	"bytes"
	"strings"
	"testing"
)

const testNonce = "NONCE"

// heardOf feeds a stream to notes in pieces of so many bytes.
func heardOf(stream string, piece int) (*notes, Output) {
	out := newRecorder(1<<20, func() {})
	n := newNotes(out, testNonce, newSieve(out, testNonce))
	for rest := []byte(stream); len(rest) > 0; {
		size := min(piece, len(rest))
		n.Write(rest[:size])
		rest = rest[size:]
	}
	n.flush()
	return n, out.seal()
}

func TestNotes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, stream string
		output, last string
		fenced       bool
	}{
		{"a step", "NONCE hello fenced\nNONCE began\none\ntwoNONCE end exit 0 0\n", "one\ntwo", "end exit 0 0", true},
		{"noise around",
			"Welcome\nsh: NONCE is none\nNONCE hello fenced\nNONCE began\nxNONCE end exit 3 0\nbye\n",
			"x", "end exit 3 0", true},
		{"a gap", "NONCE hello fenced\nNONCE began\nabNONCE at 5\nfgNONCE end exit 0 0\n", "ab\n… 3 bytes left out …\nfg",
			"end exit 0 0", true},
		{"a gap that goes back", "NONCE hello fenced\nabNONCE at 1\ncdNONCE end exit 0 0\n", "abcd", "end exit 0 0", true},
		{"a command that knows the word", "NONCE hello fenced\nNONCE hello fenced\nNONCE nonsense\nNONCE end exit 0 0\n",
			"NONCE hello fenced\nNONCE nonsense\n", "end exit 0 0", true},
		{"without a record", "NONCE hello plain flock\nNONCE mark 12 11\nNONCE end exit 0 0\n",
			"NONCE end exit 0 0\n", "", false},
		{"refused", "NONCE no lacking flock\n", "", "no lacking flock", false},
		{"no greeting", "sh: not found\n", "sh: not found\n", "", false},
		{"cut in a note", "NONCE hello fenced\nNONCE began\nxNONCE end ex", "xNONCE end ex", "", true},
		{"a note without an end", "NONCE hello fenced\nNONCE " + strings.Repeat("x", noteMax+1),
			"NONCE " + strings.Repeat("x", noteMax+1), "", true},
	} {
		for _, piece := range []int{1, 2, 3, 7, 1 << 20} {
			n, out := heardOf(test.stream, piece)
			if got := string(out.Bytes()); got != test.output || strings.Join(n.last, " ") != test.last ||
				n.fenced != test.fenced {
				t.Errorf("%s, by %d: output %q, last %q, fenced %t", test.name, piece, got, n.last, n.fenced)
			}
		}
	}
}

func FuzzNotes(f *testing.F) {
	f.Add("NONCE hello fenced\nNONCE began\nabNONCE at 5\nfgNONCE end exit 0 0\n", 3)
	f.Add("NONCE hello plain flock\nNONCE mark 12 11\nNO NONCE end exit 0 0 1 2\n", 1)
	f.Add("noise NONCE no busy 12 0abcdefghi:fw1\n", 100)
	f.Fuzz(func(t *testing.T, stream string, piece int) {
		a, whole := heardOf(stream, max(len(stream), 1))
		b, cut := heardOf(stream, max(piece%64, 1))
		if !bytes.Equal(whole.Bytes(), cut.Bytes()) || strings.Join(a.last, " ") != strings.Join(b.last, " ") {
			t.Errorf("%q in one piece is %q and %q, in pieces of %d %q and %q", stream, whole.Bytes(), a.last,
				piece, cut.Bytes(), b.last)
		}
		if len(a.last) > 0 {
			if e, ok := parseEnd(a.last[1:]); ok && (e.code < 0 || e.code > 255) {
				t.Errorf("%q: exit %d", stream, e.code)
			}
			busyWith(a.last[1:])
		}
	})
}
