// Package zonetest finds contradictions in the state of a zone, for tests.
package zonetest

import (
	"fmt"
	"maps"
	"slices"

	"muster/jobs"
	"muster/jobs/model"
)

const frozen = "frozen" // stands among the holders of a group

// sorted returns the keys of a map in order, because the order of a map is random.
func sorted[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Mistakes reports contradictions in a zone: each unfinished job must be in exactly one of queue,
// again and held, no finished job in any, and the counters of the tasks and the holders of
// semaphores must match the jobs.
func Mistakes(z *model.Zone) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	places := placesOf(z)
	open := map[jobs.TaskID]int{}
	for _, id := range sorted(places) {
		open[id.Task()]++
		state := jobs.State("")
		if j := z.Jobs[id]; j != nil {
			state = j.State
		}
		switch in := places[id]; {
		case len(in) != 1:
			say("job %s is in %v", id, in)
		case state == jobs.Ended, state == jobs.Running && in[0] != "again":
			say("job %s is %s, and in %s", id, state, in[0])
		case z.Tasks[id.Task()] == nil:
			say("job %s is in %s, its task is not there", id, in[0])
		}
	}
	for _, id := range sorted(z.Tasks) {
		if t := z.Tasks[id]; t.Committed != 0 {
			wrong = append(wrong, miscounts(z, id, open[id])...)
		}
	}
	return append(wrong, strayHolders(z)...)
}

// Broken reports contradictions that are forbidden even between two writes of one script: each
// unfinished job must be in at least one place, no job with a record may be in queue, and the
// counters of the tasks must match the jobs.
func Broken(z *model.Zone) (wrong []string) {
	open, places := map[jobs.TaskID]int{}, placesOf(z)
	for _, id := range sorted(places) {
		j := z.Jobs[id]
		if j == nil || j.State != jobs.Ended {
			open[id.Task()]++
		}
		if j != nil && slices.Contains(places[id], "queue") {
			wrong = append(wrong, fmt.Sprintf("job %s is %s, and in queue", id, j.State))
		}
	}
	for _, id := range sorted(z.Tasks) {
		if t := z.Tasks[id]; t.Committed != 0 {
			wrong = append(wrong, miscounts(z, id, open[id])...)
		}
	}
	return wrong
}

func placesOf(z *model.Zone) map[jobs.ID][]string {
	places := map[jobs.ID][]string{}
	add := func(name string, s *model.Set[jobs.ID]) {
		for id := range s.All() {
			places[id] = append(places[id], name)
		}
	}
	add("queue", z.Queue)
	add("again", z.Again)
	for _, task := range sorted(z.Held) {
		add("held:"+string(task), z.Held[task])
	}
	return places
}

func miscounts(z *model.Zone, id jobs.TaskID, open int) (wrong []string) {
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("task %s ", id)+fmt.Sprintf(format, args...))
	}
	t := z.Tasks[id]
	if open != t.Head.Total-t.Done {
		say("has %d jobs that wait or run, and counts %d", open, t.Head.Total-t.Done)
	}
	running, done, ended := 0, 0, map[jobs.Outcome]int{}
	for _, hosts := range t.Chunks {
		for _, host := range hosts {
			switch j := z.Jobs[jobs.NewID(id, host)]; {
			case j == nil:
			case j.State == jobs.Running:
				running++
			case j.State == jobs.Ended:
				ended[j.End.Outcome]++
			}
		}
	}
	if running != t.Running {
		say("has %d jobs that run, and counts %d", running, t.Running)
	}
	for _, o := range jobs.Outcomes() {
		done += t.Outcomes[o]
		if ended[o] > t.Outcomes[o] { // fewer are right: ended jobs are forgotten after a day
			say("has %d %s jobs, and counts %d", ended[o], o, t.Outcomes[o])
		}
	}
	if done != t.Done {
		say("counts %d outcomes, and %d ends", done, t.Done)
	}
	return wrong
}

func strayHolders(z *model.Zone) (wrong []string) {
	s := &z.Semaphores
	if a, b := sorted(s.Holders), sorted(s.Index); !slices.Equal(a, b) {
		wrong = append(wrong, fmt.Sprintf("held are %v, listed are %v", a, b))
	}
	for _, name := range sorted(s.Holders) {
		for _, who := range sorted(s.Holders[name]) {
			j := z.Jobs[jobs.ID(who)]
			if who != frozen && (j == nil || j.State == "" || j.State == jobs.Ended) {
				wrong = append(wrong, fmt.Sprintf("job %s holds %s, and does not run", who, name))
			}
		}
	}
	return wrong
}
