package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/fleet/remote"
	"muster/jobs"
)

// The bounds of a summary on a screen; `muster jobs` and `muster logs` have all.
const (
	groupsShown = 20  // groups of one outcome
	linesShown  = 12  // of a group's output
	LineColumns = 400 // of one line, if no terminal is narrower
	HostColumns = 240 // of a list of hosts, likewise
)

// SummaryText describes the end of a task: how many hosts gave which output, and the problems on
// the others.
func SummaryText(s api.Summary, width int, colours cli.Palette) string {
	var b strings.Builder
	b.WriteString(Headline(s.Task, colours) + "\n" + WaitLines(s, width))
	groups := slices.Clone(s.Groups)
	slices.SortStableFunc(groups, func(x, y api.Alike) int {
		return cmp.Or(cmp.Compare(rank(x.Outcome), rank(y.Outcome)), cmp.Compare(y.Count, x.Count))
	})
	for len(groups) > 0 {
		o := groups[0].Outcome
		n := slices.IndexFunc(groups, func(g api.Alike) bool { return g.Outcome != o })
		if n < 0 {
			n = len(groups)
		}
		for _, g := range groups[:min(n, groupsShown)] {
			b.WriteString("\n" + groupText(g, width, colours))
		}
		if n > groupsShown {
			b.WriteString("\n" + restText(s.Task.Task, groups[groupsShown:n]))
		}
		groups = groups[n:]
	}
	return b.String()
}

// WaitLines say what jobs of a task wait for: a person at a gate, something of others, a window.
func WaitLines(s api.Summary, width int) string {
	text := ""
	if s.AtGates > 0 {
		text = atGates(s.AtGates, s.Task.Task) + "\n"
	}
	return text + LackLines(s.Waits, width) + awaitLines(s.Awaits, width)
}

// LackLines list what jobs wait for, a line each.
func LackLines(list []jobs.Lack, width int) string {
	var b strings.Builder
	for _, l := range list {
		fmt.Fprintf(&b, "%s\n  %s\n", cli.Fit(fmt.Sprintf("%d waiting: %s", l.Count, cli.Cell(l.Hosts)),
			narrow(width, HostColumns)), cli.Fit(cli.Cell(l.Why), LineColumns))
	}
	return b.String()
}

// rank returns the position of an outcome in the order in which people read them.
func rank(o jobs.Outcome) int {
	if i := slices.Index(jobs.Outcomes(), o); i >= 0 {
		return i
	}
	return len(jobs.Outcomes())
}

// Headline returns the task and its counts.
func Headline(t jobs.TaskInfo, colours cli.Palette) string {
	first := fmt.Sprintf("task %s: %s on %s for %s", cli.Cell(string(t.Task)), cli.Cell(t.Runbook),
		cli.Count(t.Total, "host"), OperatorWords(t))
	rests := "to come"
	switch {
	case t.Forgotten:
		first += ", forgotten by Redis before it ended"
		rests = "not known"
	case t.State == jobs.TaskEnded:
		first += ", " + cli.Span(cli.Seconds(t.Seconds))
	default:
		first += ", " + cli.Cell(string(t.State))
	}
	list := OutcomeWords(t.Outcomes, colours)
	if t.Running > 0 {
		list = append(list, fmt.Sprintf("%d running", t.Running))
	}
	if rest := t.Total - t.Outcomes.Sum() - t.Running; rest > 0 {
		list = append(list, fmt.Sprintf("%d %s", rest, rests))
	}
	if len(list) > 0 {
		first += "\n" + strings.Join(list, ", ")
	}
	if t.Cancelled != "" {
		first += "\n" + cli.Cell(t.Cancelled)
	}
	if t.Paused != "" && t.State != jobs.TaskEnded {
		first += "\n" + cli.Cell(t.Paused)
	}
	if t.Rollout != nil && len(t.Rollout.Waves) > 0 && t.State != jobs.TaskEnded {
		first += "\n" + waveLine(t)
	}
	if t.Rollout != nil && t.State == jobs.TaskStopped {
		first += "\nstopped: " + cli.Cell(t.Rollout.Stopped)
	}
	return first
}

// OperatorWords names the person who ordered a task.
func OperatorWords(t jobs.TaskInfo) string {
	if t.Proven {
		return cli.Cell(t.Operator)
	}
	return cli.Cell(t.Operator) + " (unproven)"
}

// groupText shows a group of hosts that ended in the same way. Output of hosts stands behind a bar,
// so that none of it looks like a message of muster.
func groupText(g api.Alike, width int, colours cli.Palette) string {
	var b strings.Builder
	head := colours.Outcome(g.Outcome, fmt.Sprintf("%d %s", g.Count, cli.Cell(string(g.Outcome))))
	if g.ExitCode != nil && *g.ExitCode != 0 {
		head += fmt.Sprintf(", exit code %d", *g.ExitCode)
	}
	if g.Proof == api.NotProven {
		head += " (not proven)"
	}
	b.WriteString(cli.Fit(head+": "+cli.Cell(g.Hosts), narrow(width, HostColumns)) + "\n")
	if g.Error != "" {
		b.WriteString("  " + cli.Fit(cli.Cell(g.Error), narrow(width-2, LineColumns)) + "\n")
	}
	lines, hidden := excerpt(g.Output)
	for _, line := range lines {
		b.WriteString("  | " + cli.Fit(line, narrow(width-4, LineColumns)) + "\n")
	}
	if hidden += max(g.LeftOut, 0); hidden > 0 {
		fmt.Fprintf(&b, "  | … %s more: muster logs %s\n", cli.Count(hidden, "byte"),
			cli.Cell(string(g.Example)))
	}
	return b.String()
}

// narrow returns the smaller of a width, if it is known, and a bound.
func narrow(width, most int) int {
	if width <= 0 {
		return most
	}
	return min(width, most)
}

// excerpt returns the first lines of an output and the number of bytes that are left out.
func excerpt(output []byte) (lines []string, hidden int) {
	rest := output
	for len(rest) > 0 && len(lines) < linesShown {
		line := rest
		if i := slices.Index(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		rest = rest[len(line):]
		shown := strings.TrimSuffix(remote.Printable(line), "\n")
		lines = append(lines, strings.ReplaceAll(shown, "\t", "    "))
	}
	return lines, len(rest)
}

// restText counts the groups that are too many to show.
func restText(task jobs.TaskID, groups []api.Alike) string {
	hosts := 0
	for _, g := range groups {
		hosts += g.Count
	}
	o := cli.Cell(string(groups[0].Outcome))
	return fmt.Sprintf("%d more %s in %s: muster jobs %s --outcome %s\n", hosts, o,
		cli.Count(len(groups), "smaller group"), cli.Cell(string(task)), o)
}
