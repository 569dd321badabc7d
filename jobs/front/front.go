// Package front says whose jobs are next in a queue that several tasks share. Pure.
//
// Floor 2: may import jobs and what is below.
package front

import (
	"fmt"
	"strings"

	"muster/internal/wording"
	"muster/jobs"
)

// Of returns the tasks at the front of a queue, a task for each place and at most so many, if the
// tasks take turns by their weights, as a reordering gives them. Jobs that run have no place.
func Of(shares []jobs.Share, places int) []jobs.TaskID {
	var list []jobs.Backlog
	for _, s := range shares {
		if s.Waiting > 0 {
			list = append(list, jobs.Backlog{Task: s.Task, Operator: s.Operator,
				Due: jobs.Micros(s.Due.UnixMicro()), Weight: s.Priority.Weight(),
				Jobs: min(s.Waiting, places)})
		}
	}
	turns := jobs.Arrange(list, jobs.FairByTask)
	at := make([]jobs.TaskID, turns.Len())
	for _, b := range list {
		for {
			n, more := turns.Next(b.Task)
			if !more {
				break
			}
			at[n] = b.Task
		}
	}
	return at[:min(places, len(at))]
}

// Words counts the places of each task at a front, in the order of the shares. It is empty if no
// job waits.
func Words(shares []jobs.Share, at []jobs.TaskID) string {
	if len(at) == 0 {
		return ""
	}
	counts := map[jobs.TaskID]int{}
	for _, id := range at {
		counts[id]++
	}
	var out []string
	for _, s := range shares {
		if n := counts[s.Task]; n > 0 {
			out = append(out, fmt.Sprintf("%d of task %s of %s", n, s.Task, s.Operator))
			delete(counts, s.Task)
		}
	}
	return "the next " + wording.Count(len(at), "place") + ": " + strings.Join(out, ", ")
}
