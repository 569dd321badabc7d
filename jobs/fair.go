package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster/internal/wording"
)

// Priority says how large a task's share is while a queue is overloaded. It
// means nothing otherwise: a job runs at its time.
type Priority string

// The priorities.
const (
	PriorityHigh   Priority = "high"
	PriorityNormal Priority = "normal"
	PriorityLow    Priority = "low"
)

// Priorities lists the priorities, the largest share first.
func Priorities() []Priority { return []Priority{PriorityHigh, PriorityNormal, PriorityLow} }

// ParsePriority reads a priority; none is normal.
func ParsePriority(s string) (Priority, error) {
	if s == "" {
		return PriorityNormal, nil
	}
	if p := Priority(s); slices.Contains(Priorities(), p) {
		return p, nil
	}
	return "", fmt.Errorf("priority %q: want high, normal or low", wording.Clip(s))
}

// Weight is how many jobs of a task come to one of a task with priority low.
func (p Priority) Weight() int {
	switch p {
	case PriorityHigh:
		return 4
	case PriorityLow:
		return 1
	}
	return 2
}

// FairBy says between whom an overloaded queue is shared.
type FairBy string

// The ways to share.
const (
	FairByTask     FairBy = "task"          // all tasks alike
	FairByOperator FairBy = "operator,task" // operators alike, and each one's tasks
)

// Overload says what is done about a queue that is overloaded.
type Overload struct {
	After    time.Duration `json:"after"`    // a job that starts so late shows an overload
	Cooldown time.Duration `json:"cooldown"` // between two reorderings, at least
	FairBy   FairBy        `json:"fair_by"`
}

// DefaultOverload reorders when a job is 10 s late, at most every 10 s.
func DefaultOverload() Overload {
	return Overload{After: 10 * time.Second, Cooldown: 10 * time.Second, FairBy: FairByTask}
}

// Validate reports every mistake at once.
func (o Overload) Validate() error {
	var errs []error
	const least, most = 10 * time.Millisecond, time.Hour
	if o.After < least || o.After > most {
		errs = append(errs, fmt.Errorf("overload.after = %s: want %s to %s", o.After, least, most))
	}
	if o.Cooldown < least || o.Cooldown > most {
		errs = append(errs, fmt.Errorf("overload.cooldown = %s: want %s to %s", o.Cooldown, least, most))
	}
	if o.FairBy != FairByTask && o.FairBy != FairByOperator {
		errs = append(errs, fmt.Errorf("overload.fair_by = %q: want task or operator,task", o.FairBy))
	}
	return errors.Join(errs...)
}

// Late tells whether a job that was taken at now shows an overload.
func (o Overload) Late(g Grant, now Micros) bool {
	return g.Due > 0 && now.Sub(g.Due) > o.After
}

// Reordering is what became of an attempt to reorder a queue.
type Reordering struct {
	Did   bool          // it was this one who reordered
	Again time.Duration // it makes no sense to try again before
	Moved int           // jobs
	Took  time.Duration
	Why   ReorderEnd
}

// ReorderEnd is how a reordering came to its end.
type ReorderEnd string

// The ends of a reordering.
const (
	ReorderDone    ReorderEnd = "done"    // all that was due at its start was dealt with
	ReorderMet     ReorderEnd = "met"     // it met a job that a worker had taken
	ReorderStopped ReorderEnd = "stopped" // its worker was told to stop, or lost Redis
	ReorderLost    ReorderEnd = "lost"    // it was so slow that its lock ended
)

// Backlog is what an overloaded queue has of a task.
type Backlog struct {
	Task     TaskID
	Operator string
	Weight   int    // see Priority
	Due      Micros // since when its oldest job is due
	Jobs     int
}

// Places says for every job of an overloaded queue the place where it is fair
// that it stands, from 0. The place of a job follows from its number in its task
// by (number − 1) / weight: so the first job of each task goes to the front, the
// next a bit later, and jobs of one task keep their order. Of equal ones that
// task comes first whose oldest job is due longest; else a stream of small tasks
// would starve a big one.
//
// It takes 4 bytes a job and no ids, so that a queue of a million is no burden.
type Places struct {
	jobs int
	of   map[TaskID][]uint32 // places of a task's jobs, those of the last ones first
}

// Arrange finds the places of all jobs.
func Arrange(all []Backlog, by FairBy) *Places {
	tasks := slices.Clone(all)
	slices.SortFunc(tasks, func(a, b Backlog) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Task, b.Task))
	})
	p := &Places{of: make(map[TaskID][]uint32, len(tasks))}
	for _, t := range tasks {
		p.of[t.Task] = make([]uint32, 0, t.Jobs)
	}
	next := takeTurns(tasks)
	if by == FairByOperator {
		next = operatorTurns(tasks)
	}
	for i, ok := next(); ok; i, ok = next() {
		t := tasks[i].Task
		p.of[t] = append(p.of[t], uint32(p.jobs))
		p.jobs++
	}
	return p
}

// Len is how many places there are.
func (p *Places) Len() int { return p.jobs }

// Next is the place of a job of the task, for one who meets the jobs from the
// back of the queue: that of the last job of the task comes first. It is false
// once the task has no more.
func (p *Places) Next(t TaskID) (int, bool) {
	list := p.of[t]
	if len(list) == 0 {
		return 0, false
	}
	last := len(list) - 1
	p.of[t] = list[:last]
	return int(list[last]), true
}

// turns tells whose turn it is next, as an index; false: all are through.
type turns func() (int, bool)

// takeTurns lets tasks take turns by their weights; those of a round come in the
// order in which they are given.
func takeTurns(tasks []Backlog) turns {
	type entry struct{ index, left, every int }
	const most = 4 // weight; one with weight w has a job in every most/w-th round
	var open []entry
	for i, t := range tasks {
		if t.Jobs > 0 {
			open = append(open, entry{i, t.Jobs, most / min(max(t.Weight, 1), most)})
		}
	}
	round, at, kept := 0, 0, 0
	return func() (int, bool) {
		for len(open) > 0 {
			if at == len(open) {
				// Who has no more jobs has been left out, so nobody looks at them again.
				open, round, at, kept = open[:kept], round+1, 0, 0
				continue
			}
			e := open[at]
			at++
			turn := round%e.every == 0
			if turn {
				e.left--
			}
			if e.left > 0 {
				open[kept] = e
				kept++
			}
			if turn {
				return e.index, true
			}
		}
		return 0, false
	}
}

// operatorTurns lets operators take turns, and each one's tasks among them: an
// operator who splits a task wins nothing. A priority counts among the tasks of
// one operator only; between operators it would be a matter of who shouts.
func operatorTurns(tasks []Backlog) turns {
	var operators []Backlog
	own := map[string]int{} // operator to index
	var indexes [][]int     // of the tasks of each
	for i, t := range tasks {
		n, known := own[t.Operator]
		if !known {
			n = len(operators)
			own[t.Operator] = n
			operators = append(operators, Backlog{Weight: PriorityNormal.Weight()})
			indexes = append(indexes, nil)
		}
		operators[n].Jobs += t.Jobs
		indexes[n] = append(indexes[n], i)
	}
	within := make([]turns, len(operators))
	for n, list := range indexes {
		part := make([]Backlog, len(list))
		for k, i := range list {
			part[k] = tasks[i]
		}
		within[n] = takeTurns(part)
	}
	next := takeTurns(operators)
	return func() (int, bool) {
		n, ok := next()
		if !ok {
			return 0, false
		}
		k, ok := within[n]()
		return indexes[n][k], ok
	}
}
