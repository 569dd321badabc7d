package sim

import (
	"fmt"

	"muster/jobs"
	"muster/jobs/model"
)

// This file lets jobs wait for a person.

// answerTo is the order that answers a gate.
func answerTo(id jobs.ID, step int, a jobs.GateAnswer) model.Turn {
	return model.Turn{Verb: "gate", Object: string(id), Number: int64(step), Note: string(a.Word) + " " + a.Note}
}

// answerGates lets people answer some of the gates at which jobs wait.
func (s *staff) answerGates() {
	if s.faults.plot != nil {
		return
	}
	for _, id := range sorted(s.redis.zone.Jobs) {
		j := s.redis.zone.Jobs[id]
		if j.State != jobs.Waiting || jobs.GateOf(j.Step, j.Saved) == nil || !s.chance(0.1) {
			continue
		}
		word := jobs.GateOpen
		if s.chance(0.2) {
			word = jobs.GateRefuse
		}
		s.answerGate(id, j.Step, word)
	}
}

// answerGate answers a gate. The first answer counts.
func (s *staff) answerGate(id jobs.ID, step int, word jobs.GateWord) {
	turn := answerTo(id, step, jobs.GateAnswer{Word: word, Note: "bob: so be it"})
	s.insist("answer", func(z *zone, now jobs.Micros) any {
		turned := z.Control(now, turn)
		if turned.Status == "ok" {
			s.faults.met(map[jobs.GateWord]string{jobs.GateOpen: "a gate is opened",
				jobs.GateRefuse: "a gate is refused"}[word])
		}
		if turned.Status == "ok" && word == jobs.GateOpen {
			s.opened[gateOf(id, step)] = true
		}
		return turned
	}, func(any) {})
}

func gateOf(id jobs.ID, step int) string { return fmt.Sprint(id, " ", step) }

// behindGates judges that a person has opened all gates in front of a step.
func (h *host) behindGates(e *entry) {
	for i, s := range e.steps[:e.step] {
		if s.kind == gating && !h.staff.opened[gateOf(e.job, i)] {
			h.suspect("I15", "%s: step %d of %s begins, and nobody has opened its gate %d", h.name, e.step, e.job, i)
		}
	}
}
