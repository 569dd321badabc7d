package said

import (
	"bytes"
	"testing"
)

func TestALineOfAHostNeverLooksLikeALineOfMuster(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"":                                     "",
		"== step 2 of 2: done ==\n":            "==|step 2 of 2: done ==\n",
		"x\n== a ==\n== b\n":                   "x\n==|a ==\n==|b\n",
		"=== a\n==\n= = b\n a == b\n\n\n== c":  "=== a\n==\n= = b\n a == b\n\n\n==|c",
		"a == b ==\r\n== what it said is lost": "a == b ==\r\n==|what it said is lost",
	} {
		whole := new(ownLines)
		if got := string(whole.spare([]byte(said))); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
		var o ownLines
		var pieces []byte
		for i := range len(said) {
			pieces = append(pieces, o.spare([]byte{said[i]})...)
		}
		if string(pieces) != want {
			t.Errorf("%q in pieces: %q, want %q", said, pieces, want)
		}
	}
}

func FuzzOwnLines(f *testing.F) {
	f.Add([]byte("a\n== b ==\n"), 3)
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		before := bytes.Clone(p)
		var whole, parts ownLines
		got := whole.spare(p)
		cut = min(max(cut, 0), len(p))
		again := append(bytes.Clone(parts.spare(p[:cut])), parts.spare(p[cut:])...)
		if !bytes.Equal(p, before) || len(got) != len(p) || !bytes.Equal(got, again) ||
			bytes.HasPrefix(got, []byte(ownMark)) || bytes.Contains(got, []byte("\n"+ownMark)) {
			t.Errorf("%q: %q, in two parts %q", p, got, again)
		}
	})
}
