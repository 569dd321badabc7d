package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"muster/jobs"
)

// progress is what is known of a task at a moment.
type progress struct {
	task    jobs.TaskInfo
	rate    float64       // jobs ended a second, lately
	quiet   time.Duration // since the last one
	elapsed time.Duration // since the submit
	trouble string        // why nothing newer is known; empty: all is well
	stands  string        // the order by which nothing of it starts; empty: none
}

func (p progress) done() int { return p.task.Outcomes.Sum() }

// left is how long the task still takes at this rate; 0: not known. When no job
// has ended for that long, those that are left are slower than the others were.
func (p progress) left() time.Duration {
	rest := p.task.Total - p.done()
	if p.rate <= 0 || rest <= 0 {
		return 0
	}
	d := seconds(float64(rest) / p.rate)
	if d < p.quiet {
		return 0
	}
	return d
}

// meterSpan is how far back the rate looks: long enough to be calm, short
// enough to follow.
const meterSpan = 20 * time.Second

// meter measures how fast jobs end.
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

// rate is how many jobs ended a second until now; 0: not known yet.
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

// quiet is how long no job has ended.
func (m *meter) quiet(now time.Time) time.Duration { return now.Sub(m.since) }

// words tells in a line how far the task is.
func (p progress) words(colours palette) []string {
	t := p.task
	list := outcomeWords(t.Outcomes, colours)
	switch {
	case t.Running > 0:
		list = append(list, fmt.Sprintf("%d running", t.Running))
	case t.State != jobs.TaskRunning && t.State != jobs.TaskEnded:
		list = append(list, cell(string(t.State)))
	}
	if wave := waveWord(t); wave != "" {
		list = append(list, wave)
	}
	if p.trouble != "" {
		return append(list, colours.paint(yellow, p.trouble))
	}
	if p.stands != "" {
		return append(list, colours.paint(yellow, "waits: "+p.stands))
	}
	if p.rate > 0 {
		list = append(list, rateWords(p.rate))
	}
	if left := p.left(); left > 0 {
		list = append(list, span(left)+" left")
	}
	return list
}

// outcomeWords names the outcomes that occurred.
func outcomeWords(c jobs.Counts, colours palette) []string {
	var list []string
	for _, o := range jobs.Outcomes() {
		if n := c[o]; n > 0 {
			list = append(list, colours.outcome(o, fmt.Sprintf("%d %s", n, o)))
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

// plainLine is the progress for a log.
func plainLine(p progress) string {
	list := append([]string{fmt.Sprintf("%d of %d done", p.done(), p.task.Total)}, p.words(false)...)
	return fmt.Sprintf("task %s: %s", cell(string(p.task.Task)), strings.Join(list, ", "))
}

const (
	barMost  = 30 // columns
	barLeast = 8
)

// barLine is the progress for a terminal of so many columns, never longer.
func barLine(p progress, width int, colours palette) string {
	done, total := p.done(), max(p.task.Total, 1)
	share := min(max(float64(done)/float64(total), 0), 1)
	head := fmt.Sprintf("%d/%d %3d%% ", done, p.task.Total, int(share*100))
	tail := strings.Join(p.words(colours), "  ")
	// A line as long as the terminal is wide would go on to the next one.
	room := width - 1
	bar := ""
	free := room - text.StringWidthWithoutEscSequences(head+tail) - len("[] ")
	if columns := min(free, barMost); columns >= barLeast {
		full := int(share * float64(columns))
		bar = "[" + strings.Repeat("#", full) + strings.Repeat("-", columns-full) + "] "
	}
	return fit(bar+head+tail, room)
}

// display shows how a task goes on.
type display interface {
	show(p progress) // what is known now, several times a second
	close()          // gives the screen back
}

// newDisplay chooses how to show progress: a bar that is drawn over where that
// is possible, plain lines elsewhere, and nothing beside JSON in a pipe.
func (s *screen) newDisplay() display {
	switch {
	case s.errTerm:
		return &barDisplay{w: s.err, width: s.width, colours: s.colours}
	case s.json:
		return silence{}
	}
	return &lineDisplay{w: s.err}
}

type barDisplay struct {
	w       io.Writer
	width   func() int
	colours palette
}

// eraseLine moves to the start of the line and clears it.
const eraseLine = "\r\x1b[K"

// show draws over the line before.
func (d *barDisplay) show(p progress) {
	width := d.width()
	if width == 0 {
		width = 80
	}
	fmt.Fprint(d.w, eraseLine+barLine(p, width, d.colours))
}

func (d *barDisplay) close() { fmt.Fprint(d.w, eraseLine) }

// lineDisplay writes a line when there is news, and seldom otherwise.
type lineDisplay struct {
	w    io.Writer
	said lineNews
	at   time.Duration // when it was said, since the submit
}

// lineNews is what makes a new line worth writing.
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

func (d *lineDisplay) show(p progress) {
	now := lineNews{p.done(), p.task.Running, p.task.State, p.trouble != "", p.stands}
	since := p.elapsed - d.at
	switch {
	case d.said == lineNews{}:
		// What has just begun is not worth a line.
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

func (silence) show(progress) {}
func (silence) close()        {}
