package submit

import (
	"time"

	"muster/jobs"
)

// Turns spreads jobs of one task that are due at the same instant over the microseconds
// behind it, the more the less weight their task has: so where a window opens for several
// tasks at once, their jobs come in turns. What has a time of its own waits in again, which
// is not reordered, and of equal times the one whose id is less would come first: all jobs
// of a large task before the first one of a later task.
type Turns struct {
	Priority jobs.Priority
	given    map[jobs.Micros]int
}

// turnsWeight is what 1 µs stands for: so no weight comes to less.
const turnsWeight = 4

// Next is when the next job is due of those that are due at an instant.
func (t *Turns) Next(at jobs.Micros) jobs.Micros {
	if t.given == nil {
		t.given = map[jobs.Micros]int{}
	}
	n := t.given[at]
	t.given[at]++
	return at.Add(time.Duration(n*turnsWeight/t.Priority.Weight()) * time.Microsecond)
}

// inTurns are the times of their own that hosts have, spread.
func inTurns(t jobs.Task, hosts []string) map[string]jobs.Micros {
	turns := Turns{Priority: t.Spec.Priority}
	out := make(map[string]jobs.Micros, len(t.Own))
	for _, host := range hosts {
		if at := t.Own[host]; at != 0 {
			out[host] = turns.Next(at)
		}
	}
	return out
}
