package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster/internal/wording"
)

// Priority is a task's share of an overloaded queue. It has no effect on a queue that is not
// overloaded, because there each job runs at its time.
type Priority string

// The priorities.
const (
	PriorityHigh   Priority = "high"
	PriorityNormal Priority = "normal"
	PriorityLow    Priority = "low"
)

// Priorities lists the priorities, the largest share first.
func Priorities() []Priority { return []Priority{PriorityHigh, PriorityNormal, PriorityLow} }

// ParsePriority reads a priority; an empty text means normal.
func ParsePriority(s string) (Priority, error) {
	if s == "" {
		return PriorityNormal, nil
	}
	if p := Priority(s); slices.Contains(Priorities(), p) {
		return p, nil
	}
	return "", fmt.Errorf("priority %q: want high, normal or low", wording.Clip(s))
}

// Weight returns how many jobs of a task run for each job of a task with priority low.
func (p Priority) Weight() int {
	switch p {
	case PriorityHigh:
		return 4
	case PriorityLow:
		return 1
	}
	return 2
}

// FairBy names the parties that share an overloaded queue.
type FairBy string

// The ways to share.
const (
	FairByTask     FairBy = "task"          // each task has the same share
	FairByOperator FairBy = "operator,task" // same share an operator, then a task
)

// Overload says how to treat an overloaded queue.
type Overload struct {
	After    time.Duration `json:"after"`    // a job that starts so late shows an overload
	Cooldown time.Duration `json:"cooldown"` // least time between two reorderings
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

// Late reports whether the start of a job at now shows an overload.
func (o Overload) Late(g Grant, now Micros) bool {
	return g.Due > 0 && now.Sub(g.Due) > o.After
}

// Reordering is the result of an attempt to reorder a queue.
type Reordering struct {
	Did   bool          // this caller has reordered it
	Again time.Duration // time before another attempt makes sense
	Moved int           // number of jobs moved
	Took  time.Duration
	Why   ReorderEnd
}

// ReorderEnd says why a reordering ended.
type ReorderEnd string

// The ends of a reordering.
const (
	ReorderDone    ReorderEnd = "done"    // all jobs that were due at its start have their places
	ReorderMet     ReorderEnd = "met"     // it met a job that a worker had taken
	ReorderStopped ReorderEnd = "stopped" // its worker had to stop, or lost Redis
	ReorderLost    ReorderEnd = "lost"    // it was so slow that its lock ended
)

// Backlog describes the waiting jobs of a task in an overloaded queue.
type Backlog struct {
	Task     TaskID
	Operator string
	Weight   int    // see Priority
	Due      Micros // when its oldest job was due
	Jobs     int
}

// Places holds the fair place of each job in an overloaded queue, from 0. The place of a job
// follows from its number in its task by (number − 1) / weight: so the first job of each task goes
// to the front, the next a bit later, and jobs of one task keep their order. Among equal jobs, the
// task whose oldest job has been due longest comes first; otherwise a stream of small tasks would
// starve a big one.
//
// It takes 4 bytes a job and no ids, so that a queue of a million jobs needs little memory.
type Places struct {
	jobs int
	of   map[TaskID][]uint32 // places of a task's jobs, last jobs first
}

// Arrange computes the places of all jobs.
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

// Len returns the number of places.
func (p *Places) Len() int { return p.jobs }

// Next returns the place of a job of the task, for a caller that walks through the queue from the
// back: so it returns the place of the task's last job first. It returns false after them.
func (p *Places) Next(t TaskID) (int, bool) {
	list := p.of[t]
	if len(list) == 0 {
		return 0, false
	}
	last := len(list) - 1
	p.of[t] = list[:last]
	return int(list[last]), true
}

// turns returns the index of the party whose turn is next; false if no job is left.
type turns func() (int, bool)

// takeTurns lets tasks take turns by their weights; the tasks of a round keep the given order.
func takeTurns(tasks []Backlog) turns {
	type entry struct{ index, left, every int }
	const most = 4 // greatest weight; a task with weight w has a job in every most/w-th round
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
				// Tasks without jobs were dropped, so no later round looks at them.
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

// operatorTurns lets operators take turns, and within each turn the tasks of the operator: so an
// operator gains nothing by splitting a task. A priority counts only among the tasks of one
// operator, because each operator could claim a high one.
func operatorTurns(tasks []Backlog) turns {
	var operators []Backlog
	own := map[string]int{} // index by operator
	var indexes [][]int     // of the tasks of each operator
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
