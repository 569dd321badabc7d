package worker

import (
	"encoding/json"
	"fmt"
	"slices"

	"muster/jobs"
	"muster/worker/attempt"
)

// specsMax is how many tasks' specs are kept. A worker takes turns between a few
// tasks; a spec it forgot comes again with the next job of its task.
const specsMax = 16

// specs keeps the plans of the tasks that were met last.
type specs struct {
	plans map[jobs.TaskID]attempt.Plan
	order []jobs.TaskID // least recently used first
}

// add keeps what came with an answer. Nothing is forgotten before trim, so that
// all jobs of an answer find the plan of their task.
func (s *specs) add(news map[jobs.TaskID]jobs.Spec) {
	if s.plans == nil {
		s.plans = map[jobs.TaskID]attempt.Plan{}
	}
	for id, spec := range news {
		p := attempt.Plan{Spec: spec}
		if err := json.Unmarshal(spec.Action, &p.Book); err != nil {
			p.Err = fmt.Errorf("the runbook of task %s cannot be read: %w", id, err)
		} else if len(p.Book.Steps) == 0 {
			p.Err = fmt.Errorf("the runbook of task %s has no steps", id)
		}
		s.plans[id] = p
		s.use(id)
	}
}

// get finds the plan of a task.
func (s *specs) get(id jobs.TaskID) (attempt.Plan, bool) {
	p, ok := s.plans[id]
	if ok {
		s.use(id)
	}
	return p, ok
}

// use makes a task the one that was used last.
func (s *specs) use(id jobs.TaskID) {
	if n := len(s.order); n > 0 && s.order[n-1] == id {
		return
	}
	s.order = slices.DeleteFunc(s.order, func(x jobs.TaskID) bool { return x == id })
	s.order = append(s.order, id)
}

// trim forgets what is too much.
func (s *specs) trim() {
	for len(s.order) > specsMax {
		delete(s.plans, s.order[0])
		s.order = slices.Delete(s.order, 0, 1)
	}
}

// known lists the tasks whose spec need not be sent again.
func (s *specs) known() []jobs.TaskID { return slices.Clone(s.order) }
