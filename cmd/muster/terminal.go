package main

import (
	"hash/fnv"
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
	height   func() int // lines of it, likewise
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
	size := func() (columns, lines int) {
		for _, fd := range []int{out, err} {
			if x, y, err := term.GetSize(fd); err == nil && x > 0 {
				return x, y
			}
		}
		return 0, 0
	}
	s.width = func() int { columns, _ := size(); return columns }
	s.height = func() int { _, lines := size(); return lines }
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

// hostColours tell hosts apart. Those of outcomes mean something and are not among
// them.
var hostColours = [...]string{"34", "35", "36", "94", "95", "96"}

// host gives a text the colour of a host, always the same one.
func (p palette) host(name, text string) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, name) // it never fails
	return p.paint(hostColours[h.Sum32()%uint32(len(hostColours))], text)
}

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
