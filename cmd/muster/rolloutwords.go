package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/jobs"
	"muster/server"
)

// rolloutFlags are the flags of run that say how a task goes out.
type rolloutFlags struct{ jobs.RolloutAsk }

func (f *rolloutFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.MaxFailed, "max-failed", "", "stop when more have failed: `N or P%` of the "+
		"hosts; failed and begun together are never more than that and one")
	fl.BoolVar(&f.UnreachableOK, "unreachable-ok", false,
		"a host that is not reached is no failure")
	fl.StringVar(&f.Breaker, "breaker", "",
		"stop when so many fail within a time: `N/T`, such as 3/10m")
}

// ask is what is to be asked for; nil: nothing of it was.
func (f *rolloutFlags) ask() *jobs.RolloutAsk {
	a := f.RolloutAsk
	if a.MaxFailed == "" && !a.UnreachableOK && a.Breaker == "" {
		return nil
	}
	return &a
}

// shortRule is a rule in a few words.
func shortRule(r jobs.Rule) string {
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

// ruleLines say a rule as numbers, before anything starts.
func ruleLines(r jobs.Rollout, total int) []string {
	var lines []string
	if n := r.MaxFailed; n != nil {
		lines = append(lines, fmt.Sprintf("stops when more than %d of %d failed; at most %d at risk",
			*n, total, min(*n+1, total)))
	}
	if b := r.Breaker; b.Failures > 0 {
		within := shortTime(b.Within)
		lines = append(lines, fmt.Sprintf("stops when %d fail within %s", b.Failures, within))
	}
	if r.UnreachableOK {
		lines = append(lines, "a host that is not reached is no failure")
	}
	return lines
}

// sayRule says by which rule a task goes out.
func (s *screen) sayRule(t server.Submitted) {
	if t.Rollout == nil {
		return
	}
	for _, line := range ruleLines(t.Rollout.Rollout, t.Total) {
		s.say("%s", line)
	}
}

// ruleWords say by which rule a task goes out, in a line.
func ruleWords(t jobs.TaskInfo) string {
	if t.Rollout == nil {
		return ""
	}
	return strings.Join(ruleLines(t.Rollout.Rollout, t.Total), "; ")
}

// rolloutLines say how far a rollout is, and what it waits for.
func rolloutLines(t jobs.TaskInfo, _ time.Time) []string {
	r := t.Rollout
	if r == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("%d failed, %d begun", r.Failed, r.Begun)}
	if t.State == jobs.TaskStopped {
		line := "stopped: " + cell(r.Stopped)
		if r.MaxFailed != nil && r.Failed > *r.MaxFailed {
			line += fmt.Sprintf("\nlet it go on with `muster rollout next %s --max-failed N --reason '…'`, "+
				"or end it with `muster cancel %[1]s`", cell(string(t.Task)))
		} else {
			line += fmt.Sprintf("\nlet it go on with `muster rollout next %s --reason '…'`, "+
				"or end it with `muster cancel %[1]s`", cell(string(t.Task)))
		}
		lines = append(lines, strings.Split(line, "\n")...)
	}
	return lines
}
