package remote

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Whatever pieces the output comes in, what is kept is its head and its end.
func TestOutputIsHeadAndTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := 2 * rapid.IntRange(1, 20).Draw(t, "half")
		pieces := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 50)).Draw(t, "pieces")
		r := newRecorder(most, func() {})
		var all []byte
		for _, p := range pieces {
			all = append(all, p...)
			if n, err := r.Write(p); n != len(p) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		out := r.seal()
		if _, err := r.Write([]byte("too late")); err != nil {
			t.Fatal(err)
		}
		if out.Size() != int64(len(all)) {
			t.Errorf("size %d, want %d", out.Size(), len(all))
		}
		if len(all) <= most {
			if !bytes.Equal(out.Bytes(), all) {
				t.Errorf("got %q, want all of %q", out.Bytes(), all)
			}
			return
		}
		head, tail := all[:most/2], all[len(all)-most/2:]
		if !bytes.Equal(out.Head, head) || !bytes.Equal(out.Tail, tail) {
			t.Errorf("got %q … %q, want %q … %q", out.Head, out.Tail, head, tail)
		}
	})
}

func TestOutputSaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		out  Output
		want string
	}{
		{Output{}, ""},
		{Output{Head: []byte("a"), Tail: []byte("b")}, "ab"},
		{Output{Head: []byte("a"), Tail: []byte("b"), Omitted: 1}, "a\n… 1 byte left out …\nb"},
		{Output{Head: []byte("a\n"), Tail: []byte("b"), Omitted: 999}, "a\n… 999 bytes left out …\nb"},
		{Output{Tail: []byte("b"), Omitted: 83_400_000}, "… 83 MB left out …\nb"},
	} {
		if got := string(test.out.Bytes()); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	for n, want := range map[int64]string{
		1000: "1.0 kB", 1949: "1.9 kB", 9949: "9.9 kB", 9950: "10 kB", 999_499: "999 kB",
		999_500: "1.0 MB", 5_000_000_000: "5.0 GB", 5_000_000_000_000_000: "5000 TB",
	} {
		if got := ByteCount(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                         "",
		"plain\ttext\n":            "plain\ttext\n",
		"ümlaut 日本 🔥":              "ümlaut 日本 🔥",
		"dos\r\n":                  "dos\n",
		"\r\r\n":                   `\x0d` + "\n",
		"progress 1%\rdone":        `progress 1%\x0ddone`,
		"\x1b[2J\x1b]0;owned\a":    `\x1b[2J\x1b]0;owned\x07`,
		"\x00\x7f\u0085\u009b":     `\x00\x7f\u0085\u009b`,
		"\xff\xc3(":                `\xff\xc3(`,
		"\xe2\x80":                 `\xe2\x80`,
		"admin\u202enimda":         `admin\u202enimda`,
		"zero\u200bwidth\ufeff":    `zero\u200bwidth\ufeff`,
		"\u2028\u2066\u061c\u00ad": `\u2028\u2066\u061c\u00ad`,
		"\U000e0041\ufe0f\u3164":   `\U000e0041\ufe0f\u3164`,
		"\ufffd":                   "\ufffd",
		`\x1b[2J \u202e`:           `\x5cx1b[2J \x5cu202e`,
		`C:\dir\x \u12 \\ \`:       `C:\dir\x \u12 \\ \`,
		`\\x1b` + "\x1b\\\x1b":     `\\x5cx1b\x1b\\x1b`,
		`\U0001F600 \U0001F60`:     `\x5cU0001F600 \U0001F60`,
	} {
		if got := Printable([]byte(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// unshown reads what Printable has shown: each escape is a byte or rune that the host sent.
func unshown(t *testing.T, text string) []byte {
	t.Helper()
	return regexp.MustCompile(`\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})`).ReplaceAllFunc([]byte(text),
		func(escape []byte) []byte {
			n, err := strconv.ParseUint(string(escape[2:]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			if escape[1] == 'x' {
				return []byte{byte(n)}
			}
			return utf8.AppendRune(nil, rune(n))
		})
}

// Where a host wrote the characters of an escape, and where it sent the byte, differs.
func TestCharactersOfAnEscapeAreNotAnEscape(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	words := []string{`\`, "x", "1b", "5c", "u202e", "\x1b", "\u202e", `\x1b`}
	for _, a := range words {
		for _, b := range words {
			for _, c := range words {
				in := a + b + c
				for _, out := range []string{Printable([]byte(in)), "quoted " + Quote([]byte(in), 99)} {
					if before, twice := seen[out]; twice && before != in {
						t.Errorf("%q and %q are both shown as %s", before, in, out)
					}
					seen[out] = in
				}
			}
		}
	}
}

func TestAQuotationHasOneEnd(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		" \n\t":                     "",
		"no such file":              `"no such file"`,
		"two\r\n  lines\t":          `"two lines"`,
		`x"; done`:                  `"x\"; done"`,
		`ends with \`:               `"ends with \\"`,
		"\x1b[2J \xff":              `"\x1b[2J \xff"`,
		"a line that is too long":   `"a line that is"…`,
		`123456789012 \and`:         `"123456789012 "…`,
		"ümlaute und noch längeres": `"ümlaute und n"…`,
	} {
		if got := Quote([]byte(in), len(`"a line that is"…`)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, text := range append(awkward, "\x9b1m", "\u202e\u2067\u200d", "a\r\nb\rc", "\xed\xa0\x80") {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out := Printable(in)
		if !utf8.ValidString(out) {
			t.Fatalf("%q became %q: not UTF-8", in, out)
		}
		for _, r := range out {
			switch {
			case r == '\n' || r == '\t':
			case unicode.Is(unicode.C, r), unicode.Is(unicode.Bidi_Control, r),
				unicode.In(r, unicode.Zl, unicode.Zp, unicode.Variation_Selector):
				t.Fatalf("%q became %q: it has %U", in, out, r)
			}
		}
		if Harmless(out) != out {
			t.Fatalf("%q became %q, which is not harmless", in, out)
		}
		if plain := bytes.ReplaceAll(in, []byte("\r\n"), []byte("\n")); !bytes.Equal(unshown(t, out), plain) {
			t.Fatalf("%q became %q, which reads %q", in, out, unshown(t, out))
		}
		if strings.Count(out, "\n") != bytes.Count(in, []byte("\n")) {
			t.Fatalf("%q became %q: lines were lost or forged", in, out)
		}
	})
}
