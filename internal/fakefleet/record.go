package fakefleet

import (
	"bytes"
	"fmt"
	"strings"

	"muster/internal/fakefleet/machine"
)

// recordMark stands in the line of who wants a host to keep a record of what it runs.
const recordMark = ": muster-record"

// requestMax bounds what comes before the input of such a command, in bytes.
const requestMax = 256 << 10

// unfenced is what a host without flock does about that: it says so, and runs the command
// as it is, unless that must not be. What is to be run is empty then.
func (s *session) unfenced(c machine.Command) machine.Command {
	in := &rest{Source: c.In}
	c.Line, c.In = "", in
	done := s.host().fleet.ctx.Done()
	first, ok := in.line(done)
	nonce, _, _ := strings.Cut(strings.TrimPrefix(first, "nonce="), ";")
	var lines [4]string
	for i := range lines {
		if ok {
			lines[i], ok = in.line(done)
		}
	}
	// The script follows, up to the nonce, or to the end if the command has no input.
	for line, more := "", ok; more && line != nonce; {
		line, more = in.line(done)
	}
	words := strings.Fields(lines[0])
	if !ok || len(words) != 12 {
		return c
	}
	verb, fence, again, twice, bound := words[0], words[1], words[8], words[9], words[10]
	say := func(text string) { _ = c.Out.Write(done, fmt.Appendf(nil, "%s %s\n", nonce, text)) }
	if fence != "auto" {
		say("no lacking flock")
		return c
	}
	say("hello plain flock")
	if verb != "run" && verb != "put" || again == "1" && twice != "1" {
		say("no untold")
		return c
	}
	c.Line = fmt.Sprintf(`timeout -k 5 %s sh -c 'exec 2>&1; echo %s mark $$ $PPID; `+
		`exec sh -c "$(printf %%b "$1")"' sh '%s'`, bound, nonce, lines[3])
	return c
}

// markerMark stands in the line of who wants a host to carry a marker of its group.
const markerMark = ": muster-marker"

// unmarked is what a host without flock says to that.
func (s *session) unmarked(c machine.Command) machine.Command {
	in := &rest{Source: c.In}
	c.Line, c.In = "", in
	done := s.host().fleet.ctx.Done()
	first, _ := in.line(done)
	fence, ok := in.line(done)
	word := "lacking"
	if fence == "fence='auto'" {
		word = "plain"
	}
	if nonce, found := strings.CutPrefix(first, "nonce="); found && ok {
		_ = c.Out.Write(done, fmt.Appendf(nil, "%s no %s flock\n", nonce, word))
	}
	return c
}

// rest is a source of which the first lines are read here.
type rest struct {
	machine.Source
	kept []byte
	read int
}

// line reads a line. It is false if there is no whole one.
func (r *rest) line(done <-chan struct{}) (string, bool) {
	for {
		if line, after, ok := bytes.Cut(r.kept, []byte("\n")); ok {
			r.kept = after
			return string(line), true
		}
		part := make([]byte, bufferBytes)
		n, err := r.Source.Read(done, part)
		r.kept = append(r.kept, part[:n]...)
		if r.read += n; n == 0 && err != nil || r.read > requestMax {
			return "", false
		}
	}
}

// Read gives what is kept first.
func (r *rest) Read(done <-chan struct{}, p []byte) (int, error) {
	if len(r.kept) > 0 {
		n := copy(p, r.kept)
		r.kept = r.kept[n:]
		return n, nil
	}
	return r.Source.Read(done, p)
}
