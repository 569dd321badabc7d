package verdict

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"muster/fleet/remote"
)

func TestLastLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		out  remote.Output
		want string
	}{
		{remote.Output{}, ""},
		{remote.Output{Head: []byte(" \n\n")}, ""},
		{remote.Output{Head: []byte("a\nb")}, "b"},
		{remote.Output{Head: []byte("a\n  b \r\n\n")}, "b"},
		{remote.Output{Head: []byte("a"), Omitted: 3, Tail: []byte("c\nd\n")}, "d"},
		{remote.Output{Head: []byte("a\nb\n"), Omitted: 3, Tail: []byte("\n")}, "b"},
		{remote.Output{Head: []byte(strings.Repeat("y", 99999))}, strings.Repeat("y", lastLineMax)},
	} {
		if got := LastLine(tt.out); got != tt.want {
			t.Errorf("last line of %q… = %q, want %q", string(tt.out.Head[:min(9, len(tt.out.Head))]), got, tt.want)
		}
	}
}

// The words of muster after those of a host stand outside of the quotes, also if the words of the
// host are too long.
func TestAShortenedTextEndsItsQuotes(t *testing.T) {
	t.Parallel()
	long := HostSaid("exit 1", strings.Repeat(`a\"`, 500))
	for most := 40; most < 120; most++ {
		got := Shortened(long, most)
		inside := strings.TrimSuffix(strings.TrimPrefix(got, `exit 1; the host said: `), "…")
		if len(got) > most || !strings.HasPrefix(inside, `"`) {
			t.Fatalf("%d bytes: %s", most, got)
		}
		if said, err := strconv.Unquote(inside); err != nil || !strings.HasPrefix(strings.Repeat(`a\"`, 500), said) {
			t.Errorf("%d bytes: %s is no quotation of the host: %v", most, got, err)
		}
	}
	if got := Shortened(`"quoted" and words behind`, 18); got != `"quoted" and w…` {
		t.Errorf("behind a quotation: %s", got)
	}
}

func FuzzOneLine(f *testing.F) {
	for _, s := range []string{"", "plain", "two\nlines", "\x1b[31mred", "\xff\xfe", strings.Repeat("é", 999),
		"\u202eevil", strings.Repeat("\x00", 5000), "tab\there", "\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := OneLine(s)
		if len(got) > errorMax || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("oneLine(%q) = %q", s, got)
		}
		if plain := strings.TrimSpace(s); len(s) < errorMax && remote.Harmless(s) == s &&
			!strings.ContainsAny(s, "\n\t") && plain != got && strings.Join(strings.Fields(s), " ") != got {
			t.Errorf("oneLine(%q) = %q: a harmless text was changed", s, got)
		}
	})
}
