package main

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster/jobs"
)

// screen is where a command says what it found: results on out, everything else
// on err, so that a pipe gets results only.
type screen struct {
	out, err io.Writer
	outTerm  bool       // a person looks at out
	errTerm  bool       // lines on err can be drawn over
	width    func() int // columns of the terminal; 0: there is none
	colours  palette
	json     bool // -o json
	headless bool // tables without headings
	now      func() time.Time
}

// newScreen finds out what the command writes to.
func newScreen(c *cobra.Command) *screen {
	s := &screen{out: c.OutOrStdout(), err: c.ErrOrStderr(), now: time.Now}
	capable := os.Getenv("TERM") != "dumb"
	out, err := descriptor(s.out), descriptor(s.err)
	s.outTerm = term.IsTerminal(out)
	s.errTerm = term.IsTerminal(err) && capable
	s.colours = palette(s.outTerm && capable && os.Getenv("NO_COLOR") == "")
	s.width = func() int {
		for _, fd := range []int{out, err} {
			if n, _, err := term.GetSize(fd); err == nil && n > 0 {
				return n
			}
		}
		return 0
	}
	return s
}

// noDescriptor is what no file has.
const noDescriptor = -1

func descriptor(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		return int(f.Fd())
	}
	return noDescriptor
}

// tableWidth is how wide a table may be; 0: as wide as it is, for a pipe must
// get every word.
func (s *screen) tableWidth() int {
	if !s.outTerm {
		return 0
	}
	return s.width()
}

// palette gives colours, if it is true.
type palette bool

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	dim    = "2"
)

func (p palette) paint(colour, text string) string {
	if !p || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// outcome gives a text the colour of an outcome.
func (p palette) outcome(o jobs.Outcome, text string) string {
	switch o {
	case jobs.Succeeded:
		return p.paint(green, text)
	case jobs.Failed, jobs.Timeout, jobs.RolledBack:
		return p.paint(red, text)
	case jobs.Unreachable, jobs.Unknown:
		return p.paint(yellow, text)
	}
	return p.paint(dim, text)
}
