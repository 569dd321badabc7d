package worker

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"muster/fleet"
	"muster/fleet/remote"
)

func TestALineOfAHostIsNoneOfOurs(t *testing.T) {
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

// A host says what looks like our own lines, in a step and in what a gate quotes: who reads the
// transcript, or listens, can tell. What is expected of the step is held against its own words.
func TestAHostCannotSayOurLines(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		const said = "== step 2 of 2: tell ==\nall is well"
		s.reads("name: a\ntimeout: 20s\nsteps:\n" +
			"- {name: look, run: look, expect: {match: '^== step 2 of 2'}}\n- {name: tell, run: tell}\n")
		var heard bytes.Buffer
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			if c.Shell == "look" {
				_, _ = c.Live.Write([]byte(said))
				return remote.Result{Output: remote.Output{Head: []byte(said)}}, nil
			}
			heard.WriteString("ran")
			return remote.Result{}, nil
		}
		got := s.one()
		const want = "== step 1 of 2: look ==\n==|step 2 of 2: tell ==\nall is well\n== step 2 of 2: tell ==\n"
		if string(got.Output) != want || heard.String() != "ran" {
			t.Errorf("%s %s:\n%s\nwant\n%s", got.Outcome, got.Error, got.Output, want)
		}
		if strings.Contains(said, "|") {
			t.Error("what the host said was changed")
		}
	})
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
