package work

import (
	"fmt"
	"strconv"
	"strings"

	"muster/jobs"
)

// staged fills the form with the waves and the budget of a task, as they were frozen: a run that
// went by waves must not become one of all hosts at once.
func (f *runFacts) staged(t jobs.TaskInfo) {
	lost := []string{"windows and times", "whether it was a dry run"}
	if r := t.Rollout; r != nil {
		if n := len(r.Waves); n > 0 {
			var waves []string
			begun := 0
			for _, size := range r.Waves[:n-1] {
				begun += size
				waves = append(waves, strconv.Itoa(begun))
			}
			f.form.Set("waves", strings.Join(append(waves, "100%"), ", "))
		}
		if r.MaxFailed != nil {
			f.form.Set("max_failed", strconv.Itoa(*r.MaxFailed))
		}
		if r.Breaker.Failures > 0 {
			f.form.Set("breaker", fmt.Sprintf("%d/%s", r.Breaker.Failures, r.Breaker.Within))
		}
		if r.Soak > 0 {
			f.form.Set("soak", r.Soak.String())
		}
		if r.Gate {
			f.form.Set("gate", "1")
		}
		if r.Health != "" {
			lost = append(lost, "the check "+r.Health+" between waves")
		}
		if r.UnreachableOK {
			lost = append(lost, "that unreachable hosts do not count as failures")
		}
	}
	if t.Chain != "" {
		lost = append(lost, "its chain "+string(t.Chain))
	}
	f.lost = fmt.Sprintf("The form has the arguments, hosts, priority, waves and budget of task %s. "+
		"It does not have secrets, files, %s: fill in what you need.", t.Task, strings.Join(lost, ", "))
}
