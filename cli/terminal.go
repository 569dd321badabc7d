package cli

import (
	"hash/fnv"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster/jobs"
)

// Screen receives the output of a command: results go to out, everything else to err, so that a
// pipe gets results only.
type Screen struct {
	Out, Err io.Writer
	OutTerm  bool       // a person looks at out
	ErrTerm  bool       // lines on err can be drawn over
	Width    func() int // columns of the terminal; 0: there is none
	Height   func() int // lines of it, likewise
	Colours  Palette
	JSON     bool // -o json
	Headless bool // tables without headings
	Now      func() time.Time
}

// NewScreen finds out what the command writes to.
func NewScreen(c *cobra.Command) *Screen {
	s := &Screen{Out: c.OutOrStdout(), Err: c.ErrOrStderr(), Now: time.Now}
	capable := os.Getenv("TERM") != "dumb"
	out, err := descriptor(s.Out), descriptor(s.Err)
	s.OutTerm = term.IsTerminal(out)
	s.ErrTerm = term.IsTerminal(err) && capable
	s.Colours = Palette(s.OutTerm && capable && os.Getenv("NO_COLOR") == "")
	size := func() (columns, lines int) {
		for _, fd := range []int{out, err} {
			if x, y, err := term.GetSize(fd); err == nil && x > 0 {
				return x, y
			}
		}
		return 0, 0
	}
	s.Width = func() int { columns, _ := size(); return columns }
	s.Height = func() int { _, lines := size(); return lines }
	return s
}

// noDescriptor is a number that no open file has.
const noDescriptor = -1

func descriptor(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		return int(f.Fd())
	}
	return noDescriptor
}

// TableWidth returns the greatest width of a table; 0: no limit, because a pipe must get every
// word.
func (s *Screen) TableWidth() int {
	if !s.OutTerm {
		return 0
	}
	return s.Width()
}

// Palette adds colours, if it is true.
type Palette bool

// The colours of a terminal.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Dim    = "2"
)

// HostColours distinguish hosts. The colours of outcomes have a meaning and are not among them.
var HostColours = [...]string{"34", "35", "36", "94", "95", "96"}

// Host colours a text with the colour of a host, always the same one.
func (p Palette) Host(name, text string) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, name) // it never fails
	return p.Paint(HostColours[h.Sum32()%uint32(len(HostColours))], text)
}

// Paint colours a text.
func (p Palette) Paint(colour, text string) string {
	if !p || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Outcome colours a text with the colour of an outcome.
func (p Palette) Outcome(o jobs.Outcome, text string) string {
	switch o {
	case jobs.Succeeded:
		return p.Paint(Green, text)
	case jobs.Failed, jobs.Timeout, jobs.RolledBack:
		return p.Paint(Red, text)
	case jobs.Unreachable, jobs.Unknown:
		return p.Paint(Yellow, text)
	}
	return p.Paint(Dim, text)
}
