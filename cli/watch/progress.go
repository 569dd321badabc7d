package watch

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"muster/cli"
	"muster/jobs"
)

// Progress is the state of a task at a moment.
type Progress struct {
	Task    jobs.TaskInfo
	rate    float64       // recently ended jobs a second
	quiet   time.Duration // since the last one
	elapsed time.Duration // since the submit
	trouble string        // why the state is old; empty: it is new
	stands  string        // the order that stops the task; empty: none
}

func (p Progress) done() int { return p.Task.Outcomes.Sum() }

// left returns the time that the task still takes at this rate; 0: not known. If no job has ended
// for that long, the remaining jobs are slower than the others were.
func (p Progress) left() time.Duration {
	rest := p.Task.Total - p.done()
	if p.rate <= 0 || rest <= 0 {
		return 0
	}
	d := cli.Seconds(float64(rest) / p.rate)
	if d < p.quiet {
		return 0
	}
	return d
}

// meterSpan is the span over which the rate is measured: long enough to be steady, short enough to
// follow changes.
const meterSpan = 20 * time.Second

// meter measures the rate at which jobs end.
type meter struct {
	marks []mark
	since time.Time // when the last job ended
}

type mark struct {
	at   time.Time
	done int
}

// add notes that done jobs had ended at an instant.
func (m *meter) add(at time.Time, done int) {
	if n := len(m.marks); n == 0 || m.marks[n-1].done != done {
		m.since = at
	}
	// One mark a second is enough, and bounds their number.
	if n := len(m.marks); n > 1 && at.Sub(m.marks[n-2].at) < time.Second {
		m.marks = m.marks[:n-1]
	}
	m.marks = append(m.marks, mark{at, done})
	for len(m.marks) > 2 && at.Sub(m.marks[1].at) >= meterSpan {
		m.marks = m.marks[1:]
	}
}

// rate returns the ended jobs a second until now; 0: not known yet.
func (m *meter) rate(now time.Time) float64 {
	if len(m.marks) < 2 {
		return 0
	}
	first, last := m.marks[0], m.marks[len(m.marks)-1]
	d := now.Sub(first.at)
	if d < 200*time.Millisecond || last.done <= first.done {
		return 0
	}
	return float64(last.done-first.done) / d.Seconds()
}

// quiet returns the time since the last job ended.
func (m *meter) quiet(now time.Time) time.Duration { return now.Sub(m.since) }

// Words describes the progress of the task in a line.
func (p Progress) Words(colours cli.Palette) []string {
	t := p.Task
	list := OutcomeWords(t.Outcomes, colours)
	switch {
	case t.Running > 0:
		list = append(list, fmt.Sprintf("%d running", t.Running))
	case t.State != jobs.TaskRunning && t.State != jobs.TaskEnded:
		list = append(list, cli.Cell(string(t.State)))
	}
	if wave := waveWord(t); wave != "" {
		list = append(list, wave)
	}
	if p.trouble != "" {
		return append(list, colours.Paint(cli.Yellow, p.trouble))
	}
	if p.stands != "" {
		return append(list, colours.Paint(cli.Yellow, "waits: "+p.stands))
	}
	if p.rate > 0 {
		list = append(list, rateWords(p.rate))
	}
	if left := p.left(); left > 0 {
		list = append(list, cli.Span(left)+" left")
	}
	return list
}

// OutcomeWords names the outcomes that occurred.
func OutcomeWords(c jobs.Counts, colours cli.Palette) []string {
	var list []string
	for _, o := range jobs.Outcomes() {
		if n := c[o]; n > 0 {
			list = append(list, colours.Outcome(o, fmt.Sprintf("%d %s", n, o)))
		}
	}
	return list
}

func rateWords(rate float64) string {
	switch {
	case rate < 0.1:
		return fmt.Sprintf("%.1f/min", rate*60)
	case rate < 9.95:
		return fmt.Sprintf("%.1f/s", rate)
	}
	return fmt.Sprintf("%.0f/s", rate)
}

// plainLine returns the progress for a log.
func plainLine(p Progress) string {
	list := append([]string{fmt.Sprintf("%d of %d done", p.done(), p.Task.Total)}, p.Words(false)...)
	return fmt.Sprintf("task %s: %s", cli.Cell(string(p.Task.Task)), strings.Join(list, ", "))
}

// The bounds of a bar, in columns.
const (
	BarMost  = 30 // columns
	BarLeast = 8
)

// barLine returns the progress for a terminal of so many columns, never longer.
func barLine(p Progress, width int, colours cli.Palette) string {
	done, total := p.done(), max(p.Task.Total, 1)
	share := min(max(float64(done)/float64(total), 0), 1)
	head := fmt.Sprintf("%d/%d %3d%% ", done, p.Task.Total, int(share*100))
	tail := strings.Join(p.Words(colours), "  ")
	// A line as long as the terminal is wide would continue on the next one.
	room := width - 1
	bar := ""
	free := room - text.StringWidthWithoutEscSequences(head+tail) - len("[] ")
	if columns := min(free, BarMost); columns >= BarLeast {
		full := int(share * float64(columns))
		bar = "[" + strings.Repeat("#", full) + strings.Repeat("-", columns-full) + "] "
	}
	return cli.Fit(bar+head+tail, room)
}

// display shows the progress of a task.
type display interface {
	show(p Progress) // the present state, several times a second
	close()          // releases the screen
}

// newDisplay chooses how to show progress: a bar that is drawn over on a terminal, plain lines
// elsewhere, and nothing beside JSON in a pipe.
func newDisplay(s *cli.Screen) display {
	switch {
	case s.ErrTerm:
		return &barDisplay{w: s.Err, width: s.Width, colours: s.Colours}
	case s.JSON:
		return silence{}
	}
	return &lineDisplay{w: s.Err}
}

type barDisplay struct {
	w       io.Writer
	width   func() int
	colours cli.Palette
}

// EraseLine moves to the start of the line and clears it.
const EraseLine = "\r\x1b[K"

// show draws over the line before.
func (d *barDisplay) show(p Progress) {
	width := d.width()
	if width == 0 {
		width = 80
	}
	fmt.Fprint(d.w, EraseLine+barLine(p, width, d.colours))
}

func (d *barDisplay) close() { fmt.Fprint(d.w, EraseLine) }

// lineDisplay writes a line when there is news, and rarely otherwise.
type lineDisplay struct {
	w    io.Writer
	said lineNews
	at   time.Duration // time of the line since the submit
}

// lineNews holds the values whose change is worth a new line.
type lineNews struct {
	done, running int
	state         jobs.TaskState
	trouble       bool
	stands        string
}

const (
	lineEvery = 5 * time.Second // at most one
	lineQuiet = time.Minute     // at least one
)

func (d *lineDisplay) show(p Progress) {
	now := lineNews{p.done(), p.Task.Running, p.Task.State, p.trouble != "", p.stands}
	since := p.elapsed - d.at
	switch {
	case d.said == lineNews{}:
		// A start of a moment ago is not worth a line.
	case now.trouble && !d.said.trouble, now.stands != d.said.stands,
		since >= lineQuiet, now != d.said && since >= lineEvery:
		fmt.Fprintln(d.w, plainLine(p))
	default:
		return
	}
	d.said, d.at = now, p.elapsed
}

func (d *lineDisplay) close() {}

// silence shows nothing.
type silence struct{}

func (silence) show(Progress) {}

func (silence) close() {}
