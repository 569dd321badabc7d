package plan

import (
	"slices"
	"time"
)

// AfterNever is the reason for jobs whose wave never opens.
const AfterNever = "a host of an earlier wave is never done"

// openedMax bounds how often a plan begins anew because a wave opens; the rest of the waves then
// opens at once.
const openedMax = 200

// Run predicts the tasks, and returns their forecasts in the same order. A wave opens when all jobs
// of those before it are done, and its pause is over; a person who must open it is taken to do so
// at once, and health checks to take no time. Each opening lets the prediction begin anew: jobs
// that become due later change nothing that was before, so the earliest opening is always right.
func Run(w World) []Forecast {
	part := w
	part.Tasks = slices.Clone(w.Tasks)
	opened := make([]int, len(w.Tasks)) // waves
	for i, t := range w.Tasks {
		part.Tasks[i].Jobs = slices.Clone(t.Jobs)
		if len(t.Waves) > 0 {
			opened[i] = 1
			part.Tasks[i].Jobs = part.Tasks[i].Jobs[:upTo(t, 1)]
		}
	}
	for n := 0; ; n++ {
		out := run(part)
		i, at := nextWave(w, opened, out)
		if i < 0 {
			return whole(w, out)
		}
		t := w.Tasks[i]
		from := len(part.Tasks[i].Jobs)
		if opened[i]++; n >= openedMax {
			opened[i] = len(t.Waves)
		}
		more := slices.Clone(t.Jobs[from:upTo(t, opened[i])])
		for k := range more {
			if more[k].Due.Before(at) {
				more[k].Due = at
			}
		}
		part.Tasks[i].Jobs = append(part.Tasks[i].Jobs, more...)
	}
}

// upTo returns how many jobs so many waves of a task have.
func upTo(t Task, waves int) int {
	if waves >= len(t.Waves) {
		return len(t.Jobs)
	}
	n := 0
	for _, size := range t.Waves[:waves] {
		n += size
	}
	return min(n, len(t.Jobs))
}

// nextWave returns the task whose next wave opens first, and when; -1: no further wave opens.
func nextWave(w World, opened []int, out []Forecast) (task int, at time.Time) {
	task = -1
	for i, t := range w.Tasks {
		if opened[i] >= len(t.Waves) || slices.ContainsFunc(out[i].Jobs,
			func(f Fate) bool { return f.Never != "" }) {
			continue
		}
		if opens := out[i].Done.Add(t.Soak); task < 0 || opens.Before(at) {
			task, at = i, opens
		}
	}
	return task, at
}

// whole adds the jobs whose wave never opens.
func whole(w World, out []Forecast) []Forecast {
	for i, t := range w.Tasks {
		for len(out[i].Jobs) < len(t.Jobs) {
			out[i].Jobs = append(out[i].Jobs, Fate{Never: AfterNever})
		}
	}
	return out
}
