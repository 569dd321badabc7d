package remote

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheFirstMarkIsTakenOut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, in, out string
		want          mark
	}{
		{"alone", "NONCE 12 11\n", "", mark{12, 11}},
		{"before output", "NONCE 12 11\nhello\n", "hello\n", mark{12, 11}},
		{"behind noise", "Welcome!\nNONCE 12 11\nhello\n", "Welcome!\nhello\n", mark{12, 11}},
		{"behind half a line", "motd NONCE 12 11\nhello\n", "motd hello\n", mark{12, 11}},
		{"behind its own text", "echo NONCE $$ $PPID; true\nNONCE 12 11\n", "echo NONCE $$ $PPID; true\n", mark{12, 11}},
		{"behind half a nonce", "NONNONCE 12 11\nhello\n", "NONhello\n", mark{12, 11}},
		{"only the first", "NONCE 12 11\nNONCE 14 13\n", "NONCE 14 13\n", mark{12, 11}},
		{"none", "hello\n", "hello\n", mark{}},
		{"nothing", "", "", mark{}},
		{"without an end", "NONCE 12 11", "NONCE 12 11", mark{}},
		{"half a nonce", "NON", "NON", mark{}},
		{"too long", "NONCE " + strings.Repeat("1", 99) + " 11\n", "NONCE " + strings.Repeat("1", 99) + " 11\n", mark{}},
		{"one number", "NONCE 12\n", "NONCE 12\n", mark{}},
		{"three numbers", "NONCE 12 11 10\n", "NONCE 12 11 10\n", mark{}},
		{"init", "NONCE 12 1\n", "NONCE 12 1\n", mark{}},
		{"everybody", "NONCE 0 11\n", "NONCE 0 11\n", mark{}},
		{"negative", "NONCE -12 11\n", "NONCE -12 11\n", mark{}},
		{"signed", "NONCE +12 11\n", "NONCE +12 11\n", mark{}},
		{"not a number", "NONCE 12 1e3\n", "NONCE 12 1e3\n", mark{}},
	} {
		for size := 1; size <= len(test.in)+1; size++ {
			out, m := sift(test.in, size)
			if out != test.out || m != test.want {
				t.Errorf("%s, in pieces of %d: %q and %+v, want %q and %+v",
					test.name, size, out, m, test.out, test.want)
			}
		}
	}
}

// sift pours text through a sieve, in pieces of some size.
func sift(text string, size int) (string, mark) {
	var out bytes.Buffer
	s := newSieve(&out, "NONCE")
	for text != "" {
		n := min(size, len(text))
		_, _ = s.Write([]byte(text[:n]))
		text = text[n:]
	}
	s.flush()
	if !isClosed(s.found) {
		return out.String(), mark{}
	}
	return out.String(), s.mark
}

// Whatever a host says, nothing of it is lost but one mark, and nothing is held
// back that cannot become one.
func FuzzSieve(f *testing.F) {
	f.Add("noise", "output", 3)
	f.Add("NONNONCE 1", "NONCE 3 2\n", 1)
	f.Fuzz(func(t *testing.T, noise, output string, size int) {
		size = min(max(size, 1), 1000)
		if out, m := sift(noise, size); m == (mark{}) && out != noise {
			t.Errorf("%q became %q", noise, out)
		}
		if strings.Index(noise+"NONCE", "NONCE") != len(noise) {
			return
		}
		out, m := sift(noise+"NONCE 12 11\n"+output, size)
		if out != noise+output || m != (mark{12, 11}) {
			t.Errorf("%q and %+v, want %q", out, m, noise+output)
		}
	})
}

func TestOutputIsNotHeldBack(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newSieve(&out, "NONCE")
	for _, step := range []struct{ in, out string }{
		{"progress 10 %", "progress 10 %"},
		{" NON", "progress 10 % "},
		{"SENSE", "progress 10 % NONSENSE"},
	} {
		_, _ = s.Write([]byte(step.in))
		if out.String() != step.out {
			t.Errorf("after %q there is %q, want %q", step.in, out.String(), step.out)
		}
	}
}
