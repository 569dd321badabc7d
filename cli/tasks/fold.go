package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/cli/watch"
	"muster/fleet/remote"
	"muster/internal/diff"
	"muster/jobs"
)

const (
	// foldExcerpt is the part of a group's output that is requested, in bytes: the whole output of a
	// host, unless output.max is above its default.
	foldExcerpt = 160 << 10
	// glanceExcerpt is the same part while a task is followed.
	glanceExcerpt = 4 << 10
	// diffContext is the number of lines around a change.
	diffContext = 3
)

// foldLogs shows which hosts of a task have the same output; with -f it draws that on a terminal
// until the task has ended, and at the end prints all of it.
func foldLogs(ctx context.Context, s *cli.Session, f logFlags, id jobs.TaskID) error {
	if f.follow {
		if err := watchFolds(ctx, s, f, id); err != nil {
			return err
		}
	}
	sum, err := watch.Summary(ctx, s.Client, id, foldExcerpt)
	if err != nil {
		return err
	}
	groups := compare(sum.Groups, f.diff)
	switch {
	case s.JSON && f.follow:
		return writeLine(s.Screen, FoldedTask{sum.Task, groups})
	case s.JSON:
		return s.WriteJSON(FoldedTask{sum.Task, groups})
	}
	if sum.Task.State != jobs.TaskEnded {
		s.Say("task %s: %s", id, strings.Join(watch.Progress{Task: sum.Task}.Words(false), ", "))
	}
	return s.Write(foldText(groups, s.Colours))
}

// watchFolds shows the groups while the task runs: on a terminal a picture of as many as fit,
// elsewhere lines of JSON or nothing.
func watchFolds(ctx context.Context, s *cli.Session, f logFlags, id jobs.TaskID) error {
	q := url.Values{"excerpt": {strconv.Itoa(glanceExcerpt)}}
	path := "/v1/tasks/" + url.PathEscape(string(id)) + "/summaries"
	err := persist(ctx, s, "summaries", func() (bool, error) {
		return readStream(ctx, s.Client, cli.Call{Path: path, Query: q}, func(e event) error {
			switch e.name {
			case api.EventOver:
				return errOver
			case api.EventSummary:
				var sum api.Summary
				if err := readEvent(s.Client, e, &sum); err != nil || sum.Task.State == jobs.TaskEnded {
					return err // the end is shown in full
				}
				return showFolds(s.Screen, FoldedTask{sum.Task, compare(sum.Groups, f.diff)})
			}
			return showTrouble(s.Screen, e)
		})
	})
	if s.OutTerm && !s.JSON {
		err = errors.Join(err, s.Write(cli.EraseScreen))
	}
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

func showFolds(s *cli.Screen, t FoldedTask) error {
	switch {
	case s.JSON:
		return writeLine(s, t)
	case !s.OutTerm:
		return nil
	}
	text := watch.Headline(t.Task, s.Colours) + "\n\n" + foldText(t.Groups, s.Colours)
	return s.Write(cli.EraseScreen + window(text, s.Width(), s.Height()))
}

// window returns the part of a text that a terminal of this size can show.
func window(text string, width, height int) string {
	if width <= 0 || height <= 1 {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	var b strings.Builder
	for i, line := range lines {
		if i == height-2 && len(lines) > height {
			fmt.Fprintf(&b, "… %s more\n", cli.Count(len(lines)-1-i, "line"))
			break
		}
		b.WriteString(cli.Fit(strings.TrimSuffix(line, "\n"), width-1))
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// writeLine writes a value as a line of JSON.
func writeLine(s *cli.Screen, v any) error {
	line, err := cli.Encode(v, "")
	if err != nil {
		return err
	}
	return s.Write(line)
}

// FoldedTask is a task whose hosts are folded.
type FoldedTask struct {
	Task   jobs.TaskInfo `json:"task"`
	Groups []folded      `json:"groups"`
}

// folded is a group of hosts, and its difference from the majority.
type folded struct {
	api.Alike
	Majority bool   `json:"majority,omitempty"` // the others are compared with it
	Diff     string `json:"diff,omitempty"`     // unified; only with --diff

	hunks    []diff.Hunk
	compared bool
}

// compare compares groups with the majority: the biggest one that succeeded, or the biggest of all
// if none did. The group that holds the rest is not compared.
func compare(list []api.Alike, differ bool) []folded {
	out := make([]folded, len(list))
	majority := -1
	for i, g := range list {
		out[i].Alike = g
		if g.Outcome == jobs.Succeeded && (majority < 0 || list[majority].Outcome != jobs.Succeeded) ||
			majority < 0 && g.Example != "" {
			majority = i
		}
	}
	if !differ || majority < 0 {
		return out
	}
	most := &out[majority]
	most.Majority = true
	for i := range out {
		g := &out[i]
		if i == majority || g.Example == "" || len(g.Output) == 0 {
			continue // without output its error says more
		}
		g.compared, g.hunks = true, diff.Texts(most.Output, g.Output, diffContext)
		if len(g.hunks) > 0 {
			g.Diff = unified(most.Hosts, *g)
		}
	}
	return out
}

// unified returns a diff in the form of patch(1), of any bytes.
func unified(majority string, g folded) string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", majority, g.Hosts)
	for _, h := range g.hunks {
		b.WriteString(h.String() + "\n")
		for _, l := range h.Lines {
			b.WriteString(string(l.Op) + l.Text)
			if !strings.HasSuffix(l.Text, "\n") {
				b.WriteString("\n" + noNewline + "\n")
			}
		}
	}
	return b.String()
}

const noNewline = `\ No newline at end of file`

// foldText shows groups, the biggest first. Output of hosts stands behind a bar, so that none of it
// looks like a message of muster.
func foldText(groups []folded, colours cli.Palette) string {
	var b strings.Builder
	for i, g := range groups {
		if i > 0 {
			b.WriteByte('\n')
		}
		head := colours.Outcome(g.Outcome, fmt.Sprintf("%d %s", g.Count, cli.Cell(string(g.Outcome))))
		if g.ExitCode != nil && *g.ExitCode != 0 {
			head += fmt.Sprintf(", exit code %d", *g.ExitCode)
		}
		if g.Majority {
			head += ", the majority"
		}
		b.WriteString(head + ": " + cli.Cell(g.Hosts) + "\n")
		if g.Error != "" {
			b.WriteString("  " + cli.Cell(g.Error) + "\n")
		}
		if g.compared {
			g.writeDiff(&b, colours)
		} else {
			writeBarred(&b, g.Output)
		}
		if g.LeftOut > 0 {
			fmt.Fprintf(&b, "  | … %s more: muster logs %s\n", cli.Count(g.LeftOut, "byte"),
				cli.Cell(string(g.Example)))
		}
	}
	return b.String()
}

// writeBarred writes an output line by line behind a bar.
func writeBarred(b *strings.Builder, output []byte) {
	for line := range bytes.Lines(output) {
		b.WriteString("  | " + shownLine(string(line)) + "\n")
	}
}

// writeDiff writes the difference of a group from the majority.
func (g folded) writeDiff(b *strings.Builder, colours cli.Palette) {
	if len(g.hunks) == 0 {
		b.WriteString("  the same output as the majority\n")
		return
	}
	for _, h := range g.hunks {
		b.WriteString("  " + colours.Paint(cli.HostColours[2], h.String()) + "\n")
		for _, l := range h.Lines {
			line := string(l.Op) + shownLine(l.Text)
			switch l.Op {
			case diff.Delete:
				line = colours.Paint(cli.Red, line)
			case diff.Insert:
				line = colours.Paint(cli.Green, line)
			}
			b.WriteString("  |" + line + "\n")
			if !strings.HasSuffix(l.Text, "\n") {
				b.WriteString("  |" + noNewline + "\n")
			}
		}
	}
}

// shownLine returns a line of a host, harmless and without its end.
func shownLine(line string) string {
	shown := strings.TrimSuffix(remote.Printable([]byte(line)), "\n")
	return strings.ReplaceAll(shown, "\t", "    ")
}
