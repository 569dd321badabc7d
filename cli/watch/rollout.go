package watch

import (
	"fmt"
	"strings"
	"time"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// ShortRule describes a rule in a few words.
func ShortRule(r jobs.Rule) string {
	var list []string
	if r.MaxFailed != nil {
		list = append(list, fmt.Sprintf("max-failed %d", *r.MaxFailed))
	}
	if r.Breaker.Failures > 0 {
		list = append(list, fmt.Sprintf("breaker %d/%s", r.Breaker.Failures, shortTime(r.Breaker.Within)))
	}
	return strings.Join(list, ", ")
}

// shortTime is a time as people write it: 10m, not 10m0s.
func shortTime(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// RuleLines describe a rule in numbers, before anything starts.
func RuleLines(r jobs.Rollout, total int) []string {
	var lines []string
	if n := r.MaxFailed; n != nil {
		lines = append(lines, fmt.Sprintf("stops when more than %d of %d failed; at most %d at risk",
			*n, total, min(*n+1, total)))
	}
	if b := r.Breaker; b.Failures > 0 {
		within := shortTime(b.Within)
		lines = append(lines, fmt.Sprintf("stops when %d fail within %s", b.Failures, within))
	}
	if len(r.Waves) > 0 {
		lines = append(lines, wavesWords(r))
	}
	if r.UnreachableOK {
		lines = append(lines, "a host that is not reached is no failure")
	}
	return lines
}

// SayRule prints the rule of a task.
func SayRule(s *cli.Screen, t api.Submitted) {
	if t.Rollout == nil {
		return
	}
	for _, line := range RuleLines(t.Rollout.Rollout, t.Total) {
		s.Say("%s", line)
	}
}

// wavesShown bounds the waves whose sizes are listed.
const wavesShown = 12

// wavesWords describe the waves, and what happens between them.
func wavesWords(r jobs.Rollout) string {
	var sizes []string
	for _, n := range r.Waves[:min(len(r.Waves), wavesShown)] {
		sizes = append(sizes, fmt.Sprint(n))
	}
	if len(r.Waves) > len(sizes) {
		sizes = append(sizes, "…")
	}
	text := fmt.Sprintf("%s of %s hosts", cli.Count(len(r.Waves), "wave"), strings.Join(sizes, ", "))
	if r.MaxFailed == nil {
		text += "; the next one opens if none failed"
	}
	if r.Soak > 0 {
		text += ", " + shortTime(r.Soak) + " later"
	}
	if r.Health != "" {
		text += ", when " + cli.Cell(r.Health) + " has succeeded on all hosts so far"
	}
	if r.Gate {
		text += ", when a person says so"
	}
	return text
}

// RuleWords describe the rule of a task in a line.
func RuleWords(t jobs.TaskInfo) string {
	if t.Rollout == nil {
		return ""
	}
	return strings.Join(RuleLines(t.Rollout.Rollout, t.Total), "; ")
}

// RolloutLines follow the headline of a task: how much of its rule is used up, and what one can do.
func RolloutLines(t jobs.TaskInfo) []string {
	r := t.Rollout
	if r == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("%d failed, %d begun", r.Failed, r.Begun)}
	if t.State != jobs.TaskStopped {
		return lines
	}
	budget := ""
	if r.MaxFailed != nil && r.Failed > *r.MaxFailed {
		budget = " --max-failed N"
	}
	return append(lines, fmt.Sprintf("continue it with `muster rollout next %s%s --reason '…'`, "+
		"or end it with `muster cancel %[1]s`", cli.Cell(string(t.Task)), budget))
}

// waveWord counts the open waves of a task, and if their jobs have ended says what the next one
// waits for; empty if it has no waves.
func waveWord(t jobs.TaskInfo) string {
	r := t.Rollout
	if r == nil || len(r.Waves) == 0 || t.State == jobs.TaskEnded {
		return ""
	}
	word := fmt.Sprintf("wave %d of %d", r.Wave, len(r.Waves))
	if r.Over.IsZero() || r.Last() || t.State == jobs.TaskStopped {
		return word
	}
	switch soaked := !t.Submitted.Add(cli.Seconds(t.Seconds)).Before(r.Over.Add(r.Soak)); {
	case r.Pass:
	case !soaked:
		word += " soaks"
	case r.Checks != "" && !r.Gate:
		word += " is checked"
	case r.Gate:
		word += fmt.Sprintf(" waits for a person: muster rollout next %s", cli.Cell(string(t.Task)))
	}
	return word
}

// stateWords returns the state of a task, and its wave.
func stateWords(t jobs.TaskInfo) string {
	text := cli.Cell(string(t.State))
	if r := t.Rollout; r != nil && len(r.Waves) > 0 && t.State != jobs.TaskEnded {
		text += fmt.Sprintf(", wave %d/%d", r.Wave, len(r.Waves))
	}
	return text
}

// waveLine names the open wave, and what the next one waits for.
func waveLine(t jobs.TaskInfo) string {
	r := t.Rollout
	begun := 0
	for i, n := range r.Waves {
		if i < r.Wave {
			begun += n
		}
	}
	line := fmt.Sprintf("wave %d of %d, %d of %s", r.Wave, len(r.Waves), begun, cli.Count(t.Total,
		"host"))
	if t.State == jobs.TaskEnded || t.State == jobs.TaskStopped || r.Over.IsZero() || r.Last() {
		return line
	}
	line += ": over since " + cli.Moment(r.Over)
	until := jobs.Time{Time: r.Over.Add(r.Soak)}
	now := t.Submitted.Add(cli.Seconds(t.Seconds)) // by the clock that counts
	switch {
	case r.Pass:
	case now.Before(until.Time):
		line += "; the next one opens at " + cli.Moment(until) + " at the earliest"
	case r.Checks != "":
		line += "; task " + cli.Cell(string(r.Checks)) + " checks its hosts"
	case r.Gate:
		line += fmt.Sprintf("; it waits for a person: muster rollout next %s --reason '…'",
			cli.Cell(string(t.Task)))
	}
	return line
}
