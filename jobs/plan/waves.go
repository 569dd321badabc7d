package plan

import (
	"cmp"
	"slices"
	"time"
)

// AfterNever is the reason for jobs whose wave never opens.
const AfterNever = "a host of an earlier wave is never done"

// openedMax bounds how often a plan begins anew because a wave opens or a turn comes. Afterwards
// all that is left of a task opens at once.
const openedMax = 200

// Run predicts the tasks, and returns their forecasts in the same order. A wave opens when all jobs
// of those before it are done, and its pause is over; a person who must open it is taken to do so
// at once, and health checks to take no time. A task that waits in a lane begins when its turn
// comes. Each opening lets the prediction begin anew: jobs that become due later change nothing
// that was before, so the earliest opening is always right.
func Run(w World) []Forecast {
	p := newProgress(w)
	for n := 0; ; n++ {
		out := run(p.part)
		task, at := p.next(out)
		if task < 0 {
			return p.whole(out)
		}
		waves := p.opened[task] + 1
		if n >= openedMax {
			waves = w.Tasks[task].waves()
		}
		p.open(task, waves, at)
	}
}

// progress says how far the tasks of a world are open.
type progress struct {
	World
	part   World       // with the jobs of the open waves only
	opened []int       // open waves of each task; 0: its turn has not come
	begun  []time.Time // when the first wave of each task opened
}

func newProgress(w World) *progress {
	p := &progress{World: w, part: w, opened: make([]int, len(w.Tasks)),
		begun: make([]time.Time, len(w.Tasks))}
	p.part.Tasks = slices.Clone(w.Tasks)
	for i, t := range w.Tasks {
		p.part.Tasks[i].Jobs = nil
		if !t.Turn.waits() {
			p.open(i, 1, w.Now)
		}
	}
	return p
}

// open opens the first waves of a task at an instant.
func (p *progress) open(task, waves int, at time.Time) {
	if p.opened[task] == 0 {
		p.begun[task] = at
	}
	p.opened[task] = waves
	t, open := p.Tasks[task], &p.part.Tasks[task].Jobs
	more := slices.Clone(t.Jobs[len(*open):upTo(t, waves)])
	for i := range more {
		more[i].Due = later(more[i].Due, at)
	}
	*open = append(*open, more...)
}

// next returns the task of which the next wave opens first, and when; -1: no further wave opens.
func (p *progress) next(out []Forecast) (task int, at time.Time) {
	task = -1
	for i := range p.Tasks {
		if opens, ok := p.opens(i, out); ok && (task < 0 || opens.Before(at)) {
			task, at = i, opens
		}
	}
	return task, at
}

// opens returns when the next wave of a task opens, if that is known.
func (p *progress) opens(task int, out []Forecast) (at time.Time, ok bool) {
	t := p.Tasks[task]
	switch {
	case p.opened[task] == 0:
		return p.turn(t.Turn, out)
	case p.opened[task] >= t.waves() || out[task].stuck():
		return at, false
	}
	return out[task].Done.Add(t.Soak), true
}

// waves returns the number of waves of a task.
func (t Task) waves() int { return max(len(t.Waves), 1) }

// stuck reports whether a job is never done.
func (f Forecast) stuck() bool {
	return slices.ContainsFunc(f.Jobs, func(f Fate) bool { return f.Never != "" })
}

// upTo returns how many jobs so many waves of a task have.
func upTo(t Task, waves int) int {
	if waves >= t.waves() {
		return len(t.Jobs)
	}
	n := 0
	for _, size := range t.Waves[:waves] {
		n += size
	}
	return min(n, len(t.Jobs))
}

// whole adds the jobs whose wave or turn never comes.
func (p *progress) whole(out []Forecast) []Forecast {
	for i, t := range p.Tasks {
		why := AfterNever
		if p.opened[i] == 0 {
			why = cmp.Or(t.Turn.Never, BehindNever)
		}
		for len(out[i].Jobs) < len(t.Jobs) {
			out[i].Jobs = append(out[i].Jobs, Fate{Never: why})
		}
	}
	return out
}
