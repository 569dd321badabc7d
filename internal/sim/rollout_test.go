package sim

import (
	"muster/jobs"
	"muster/jobs/model"
)

// rule lets some tasks go out by a rule, and in waves: it returns of which each host is.
func (s *staff) rule(hosts int) (r *jobs.Rollout, waves []int) {
	if s.chance(0.5) {
		return nil, nil
	}
	r = &jobs.Rollout{}
	if s.chance(0.7) {
		n := s.rnd.IntN(3)
		r.MaxFailed = &n
	}
	if s.chance(0.5) && hosts > 1 {
		first := 1 + s.rnd.IntN(hosts-1)
		r.Waves = []int{first, hosts - first}
		for i := range hosts {
			waves = append(waves, 1)
			if i >= first {
				waves[i] = 2
			}
		}
	}
	return r, waves
}

// rollOut is the duty of the server that opens waves, and the person who lets stopped
// tasks go on: some of them while there are accidents, all of them then.
func (s *staff) rollOut() {
	for _, id := range sorted(s.redis.zone.Rollouts) {
		s.roll(model.Roll{Task: id, Verb: "look"})
		s.roll(model.Roll{Task: id, Verb: "open", Number: 2})
		s.move(model.Move{Task: id, Verb: "release", Limit: 500, Note: "x"}, func(model.Moved) {})
		if t := s.redis.zone.Tasks[id]; t != nil && t.Stopped.Note != "" && (s.faults.quiet || s.chance(0.05)) {
			s.roll(model.Roll{Task: id, Verb: "go", Number: t.Head.Total, Note: "bob: so what"})
		}
		if t := s.redis.zone.Tasks[id]; t != nil && t.Cancel != "" {
			e := model.Ending{Task: id, Note: t.Cancel}
			s.insist("cancel", func(z *zone, now jobs.Micros) any { return z.End(now, e) }, func(any) {})
		}
	}
}

func (s *staff) roll(a model.Roll) {
	s.insist("roll "+a.Verb, func(z *zone, now jobs.Micros) any { return z.Roll(now, a) }, func(any) {})
}

// overspent checks that no more jobs of a task have failed than its rule allows: at most one more
// than allowed, as long as Redis has forgotten nothing.
func (s *server) overspent() {
	if s.faults.forgetful() {
		return
	}
	for _, id := range sorted(s.zone.Tasks) {
		t := s.zone.Tasks[id]
		if t.Head.Spec.Rollout == nil || t.Rolling.Allowed < 0 {
			continue
		}
		bad := 0
		for o, n := range t.Outcomes {
			if o.Fails(false) {
				bad += n
			}
		}
		if begun := len(s.zone.Semaphores.Holders["rule:"+string(id)]); bad+begun > t.Rolling.Allowed+1 {
			s.broken("the budget of task %s: %d failed and %d begun, of %d that may fail", id, bad, begun,
				t.Rolling.Allowed)
		}
	}
}
