package said

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet/remote"
)

func TestTranscripts(t *testing.T) {
	t.Parallel()
	say := func(s string) remote.Output { return remote.Output{Head: []byte(s)} }
	long := strings.Repeat("x", 30)
	for _, tt := range []struct {
		name  string
		parts []remote.Output
		want  string
	}{
		{"nothing", nil, ""},
		{"short", []remote.Output{say("a\n"), say("b")}, "a\nb"},
		{"all that fits", []remote.Output{say("0123456789"), say("abcdefghij")}, "0123456789abcdefghij"},
		{"one byte more", []remote.Output{say("0123456789abcdefghij!")},
			"0123456789\n… 1 byte left out …\nbcdefghij!"},
		{"a long one between", []remote.Output{say("ab\n"), say(long), say("\nend")},
			"ab\nxxxxxxx\n… 17 bytes left out …\nxxxxxx\nend"},
		{"with a gap of its own", []remote.Output{{Head: []byte("head\n"), Omitted: 5000, Tail: []byte("tail")}},
			"head\n… 5.0 kB left out …\ntail"},
		{"a gap behind much", []remote.Output{say(long), {Head: []byte("h"), Omitted: 100, Tail: []byte("t")}},
			"xxxxxxxxxx\n… 121 bytes left out …\nt"},
		{"two gaps", []remote.Output{{Head: []byte("h"), Omitted: 10, Tail: []byte("t")},
			{Head: []byte("H"), Omitted: 20, Tail: []byte("T")}}, "h\n… 32 bytes left out …\nT"},
	} {
		s := NewTranscript(20, &Voice{})
		var size int64
		for _, p := range tt.parts {
			s.Add(p)
			size += p.Size()
		}
		data, gap := s.Output()
		if int64(len(data))+gap.Left != size || gap.Left == 0 && gap.At != 0 ||
			!bytes.HasPrefix(s.all.Bytes(), data[:gap.At]) || !bytes.HasSuffix(s.all.Bytes(), data[gap.At:]) {
			t.Errorf("%s: %d bytes with the gap %+v", tt.name, len(data), gap)
		}
		if diff := cmp.Diff(tt.want, string(s.all.Bytes())); diff != "" || s.all.Size() != size {
			t.Errorf("%s: size %d of %d (-want +got):\n%s", tt.name, s.all.Size(), size, diff)
		}
	}
}

func TestATitleBeginsALine(t *testing.T) {
	t.Parallel()
	s := NewTranscript(1<<10, &Voice{})
	s.Remark("one")
	s.Add(remote.Output{Head: []byte("no newline")})
	s.Remark("two")
	if got, want := string(s.all.Bytes()), "== one ==\nno newline\n== two ==\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
