package submit

import (
	"time"

	"muster/jobs"
)

// Turns spreads jobs of one task that are due at the same instant over the microseconds behind it,
// the wider the less weight their task has. So when a window opens for several tasks at once, their
// jobs take turns. Jobs with a time of their own wait in the set again, which is never reordered;
// with equal times the lower id would come first: all jobs of a large task before the first one of
// a later task.
type Turns struct {
	Priority jobs.Priority
	given    map[jobs.Micros]int
}

// turnsWeight is the highest weight. Jobs of that weight are 1 µs apart, others further.
const turnsWeight = 4

// Next returns the time of the next job among those that are due at an instant.
func (t *Turns) Next(at jobs.Micros) jobs.Micros {
	if t.given == nil {
		t.given = map[jobs.Micros]int{}
	}
	n := t.given[at]
	t.given[at]++
	return at.Add(time.Duration(n*turnsWeight/t.Priority.Weight()) * time.Microsecond)
}

// inTurns returns the hosts' own times, spread by Turns.
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
