package worker

import (
	"encoding/json"
	"fmt"
	"slices"

	"muster/jobs"
	"muster/worker/attempt"
)

// specsMax bounds the number of tasks whose specs a worker keeps. A worker takes jobs of a few
// tasks in turn. A spec that it has forgotten comes again with the next job of its task.
const specsMax = 16

// specs keeps the plans of the latest tasks.
type specs struct {
	plans map[jobs.TaskID]attempt.Plan
	order []jobs.TaskID // least recently used first
}

// add keeps the specs of an answer; unread says which of them are no use, and why. It forgets no
// other spec, so that all jobs of the answer find the plan of their task; trim does that.
func (s *specs) add(news map[jobs.TaskID]jobs.Spec, unread map[string]string) {
	if s.plans == nil {
		s.plans = map[jobs.TaskID]attempt.Plan{}
	}
	for id, spec := range news {
		p := attempt.Plan{Spec: spec}
		if why := unread[string(id)]; why != "" {
			p.Err = fmt.Errorf("the spec of task %s cannot be read: %s", id, why)
		} else if err := json.Unmarshal(spec.Action, &p.Book); err != nil {
			p.Err = fmt.Errorf("the runbook of task %s cannot be read: %w", id, err)
		} else if len(p.Book.Steps) == 0 {
			p.Err = fmt.Errorf("the runbook of task %s has no steps", id)
		}
		s.plans[id] = p
		s.use(id)
	}
}

// get returns the plan of a task, and notes that the task is in use.
func (s *specs) get(id jobs.TaskID) (attempt.Plan, bool) {
	p, ok := s.plans[id]
	if ok {
		s.use(id)
	}
	return p, ok
}

// use notes that a task is the latest one in use.
func (s *specs) use(id jobs.TaskID) {
	if n := len(s.order); n > 0 && s.order[n-1] == id {
		return
	}
	s.order = slices.DeleteFunc(s.order, func(x jobs.TaskID) bool { return x == id })
	s.order = append(s.order, id)
}

// trim forgets the oldest plans above specsMax.
func (s *specs) trim() {
	for len(s.order) > specsMax {
		delete(s.plans, s.order[0])
		s.order = slices.Delete(s.order, 0, 1)
	}
}

// known lists the tasks whose specs the queue need not send again.
func (s *specs) known() []jobs.TaskID { return slices.Clone(s.order) }
