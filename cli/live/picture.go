package live

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/cli/watch"
	"muster/jobs"
)

// signs stand for outcomes in a bar, so that no colour is needed.
var signs = map[jobs.Outcome]string{jobs.Succeeded: "+", jobs.Failed: "x", jobs.Timeout: "t",
	jobs.Unreachable: "o", jobs.RolledBack: "r", jobs.Unknown: "?"}

// The signs of the other jobs of a task.
const (
	signOther   = "-" // cancelled, expired, superseded, skipped
	signRunning = ">"
	signWaiting = "."
)

const (
	widthUnknown = 80  // of a terminal that does not say it
	barMost      = 100 // columns
	heightLeast  = 8
)

// picture draws a task for a terminal, not longer than it.
func picture(s *cli.Screen, f Facts) string {
	width := s.TableWidth()
	if width == 0 {
		width = widthUnknown
	}
	var lines []string
	for _, line := range strings.Split(watch.Headline(f.Task, s.Colours), "\n") {
		lines = append(lines, cli.Fit(line, width))
	}
	bar, key := outcomeBar(f.Task, min(width-1, barMost), s.Colours)
	lines = append(lines, "", bar, cli.Fit(key, width))
	for _, line := range ruleLines(f.Task) {
		lines = append(lines, cli.Fit(line, width))
	}
	for _, line := range f.Stands {
		lines = append(lines, s.Colours.Paint(cli.Yellow, cli.Fit("waits: "+line, width)))
	}
	sum := api.Summary{Task: f.Task, AtGates: f.AtGates, Waits: f.Waits, Awaits: f.Awaits}
	if waits := strings.TrimSuffix(watch.WaitLines(sum, width), "\n"); waits != "" {
		for line := range strings.SplitSeq(waits, "\n") {
			lines = append(lines, cli.Fit(line, width))
		}
	}
	if most := max(s.Height()-1, heightLeast); s.Height() > 0 && len(lines) > most {
		hidden := len(lines) - most + 1
		lines = append(lines[:most-1], fmt.Sprintf("… %s more", cli.Count(hidden, "line")))
	}
	return strings.Join(lines, "\n") + "\n"
}

// A part of a bar is a number of jobs with their sign.
type part struct {
	name, sign string
	n          int
	paint      func(string) string
}

// partsOf returns the jobs of a task by what became of them, in the order in which people read it.
func partsOf(t jobs.TaskInfo, colours cli.Palette) []part {
	var list []part
	for _, o := range jobs.Outcomes() {
		sign := signs[o]
		if sign == "" {
			sign = signOther
		}
		list = append(list, part{string(o), sign, t.Outcomes[o], func(text string) string {
			return colours.Outcome(o, text)
		}})
	}
	plain := func(text string) string { return text }
	waiting := max(0, t.Total-t.Running-t.Outcomes.Sum())
	list = append(list, part{"running", signRunning, t.Running, plain},
		part{"waiting", signWaiting, waiting, plain})
	return slices.DeleteFunc(list, func(p part) bool { return p.n == 0 })
}

// outcomeBar draws the shares of a task's jobs, and says what its signs mean. A share of one job is
// seen, too.
func outcomeBar(t jobs.TaskInfo, columns int, colours cli.Palette) (bar, key string) {
	list := partsOf(t, colours)
	room := columns - len("[]")
	if room < len(list) {
		return "", ""
	}
	cells, all := make([]int, len(list)), 0
	for i, p := range list {
		cells[i] = max(1, p.n*room/max(t.Total, 1))
		all += cells[i]
	}
	if len(list) == 0 {
		return "[]", ""
	}
	// The largest share takes the columns that are left over, or gives those that are missing.
	largest := slices.Index(cells, slices.Max(cells))
	cells[largest] = max(1, cells[largest]+room-all)
	var b strings.Builder
	var keys []string
	for i, p := range list {
		b.WriteString(p.paint(strings.Repeat(p.sign, cells[i])))
		keys = append(keys, p.sign+" "+strconv.Itoa(p.n)+" "+p.name)
	}
	return "[" + b.String() + "]", strings.Join(keys, "  ")
}

// ruleLines describe the waves and the budget of a task.
func ruleLines(t jobs.TaskInfo) []string {
	r := t.Rollout
	if r == nil {
		return nil
	}
	var lines []string
	if words := waves(t); words != "" {
		lines = append(lines, words)
	}
	return append(lines, budget(r))
}

// wavesShown bounds the waves of a line.
const wavesShown = 20

// waves lists the sizes of the waves, each with what became of it.
func waves(t jobs.TaskInfo) string {
	r := t.Rollout
	if len(r.Waves) == 0 {
		return ""
	}
	var out []string
	for i, n := range r.Waves[:min(len(r.Waves), wavesShown)] {
		state := "to come"
		switch {
		case i+1 < r.Wave || i+1 == r.Wave && (!r.Over.IsZero() || t.State == jobs.TaskEnded):
			state = "over"
		case i+1 == r.Wave:
			state = "now"
		}
		out = append(out, fmt.Sprintf("%d %s", n, state))
	}
	if more := len(r.Waves) - wavesShown; more > 0 {
		out = append(out, fmt.Sprintf("… %d more", more))
	}
	return "waves: " + strings.Join(out, " | ")
}

// budget says how many jobs have failed, and how many may.
func budget(r *jobs.RolloutInfo) string {
	if r.MaxFailed == nil {
		return fmt.Sprintf("budget: %d failed, any number may; %d begun", r.Failed, r.Begun)
	}
	return fmt.Sprintf("budget: %d failed, %d may; %d begun", r.Failed, *r.MaxFailed, r.Begun)
}

// line describes a task in one line, for a log.
func line(f Facts) string {
	t := f.Task
	words := []string{fmt.Sprintf("task %s is %s: %d of %d ended", cli.Cell(string(t.Task)),
		cli.Cell(string(t.State)), t.Outcomes.Sum(), t.Total)}
	for _, p := range partsOf(t, false) {
		words[0] += fmt.Sprintf(", %d %s", p.n, p.name)
	}
	words = append(words, ruleLines(t)...)
	if r := t.Rollout; r != nil && r.Stopped != "" {
		words = append(words, "stopped: "+cli.Cell(r.Stopped))
	}
	for _, text := range []string{t.Paused, t.Cancelled} {
		if text != "" {
			words = append(words, cli.Cell(text))
		}
	}
	for _, text := range f.Stands {
		words = append(words, "waits: "+text)
	}
	sum := api.Summary{Task: t, AtGates: f.AtGates, Waits: f.Waits, Awaits: f.Awaits}
	if waits := watch.WaitLines(sum, 0); waits != "" {
		words = append(words, strings.Join(strings.Fields(waits), " "))
	}
	return strings.Join(words, "; ")
}
