package sim

import (
	"strings"
	"time"

	"muster/jobs"
	"muster/jobs/model"
)

// This file changes limits while jobs wait, run and are deferred.

// A limitAt is a limit from a time on.
type limitAt struct {
	from time.Duration
	most int
}

// limited is since when each job counts against a limit, and what the limits were. Who
// counts already stays when one is lowered.
type limited struct {
	counts map[string]map[jobs.ID]time.Duration
	log    map[string][]limitAt
}

// count looks at all limits after a call: who is new must have found room.
func (s *server) count() {
	for _, name := range sorted(limitsMost) {
		most, known := s.zone.Semaphores.Max[name]
		if !known {
			continue
		}
		if log := s.limits.log[name]; len(log) == 0 || log[len(log)-1].most != most {
			s.limits.log[name] = append(log, limitAt{s.now, most})
		}
		holders, counts := s.zone.Semaphores.Holders[name], map[jobs.ID]time.Duration{}
		for who := range holders {
			since, before := s.limits.counts[name][jobs.ID(who)]
			if !before {
				since = s.now
			}
			counts[jobs.ID(who)] = since
		}
		n := len(counts)
		if n > len(s.limits.counts[name]) && n > most && !s.faults.forgetful() {
			s.broken("I10: %d jobs count against %s, %d at most", n, name, most)
		}
		s.limits.counts[name] = counts
	}
}

// countsSince is since when a job counts against a limit, whether a step of it has begun or
// not: also while a lost one waits for the bound of what it may have begun.
func (s *server) countsSince(name string, id jobs.ID) time.Duration {
	if since, ok := s.limits.counts[name][id]; ok {
		return since
	}
	return s.now
}

// mostSince is the highest that a limit was since a time.
func (s *server) mostSince(name string, since time.Duration) (most int) {
	log := s.limits.log[name]
	for i, l := range log {
		if i+1 == len(log) || log[i+1].from >= since {
			most = max(most, l.most)
		}
	}
	return most
}

// limit changes one, and takes that back later.
func (s *staff) limit() {
	names := sorted(limitsMost)
	name, most := names[s.rnd.IntN(len(names))], 1+s.rnd.IntN(4)
	order := "limit raised"
	if most < s.limits[name] {
		order = "limit lowered"
	}
	set := func(most int) {
		s.limits[name] = most
		turn := model.Turn{Verb: "limit", Object: name, Number: int64(most)}
		s.insist("limit", func(z *zone, now jobs.Micros) any {
			for _, id := range s.tasks {
				s.met(order, z, id, s.accepted[id])
			}
			return z.Control(now, turn)
		}, func(any) {})
	}
	set(most)
	s.in(s.between(10*time.Second, 5*time.Minute), func() {
		order = "limit as before"
		set(limitsMost[name])
	})
}

// clear says of a group that somebody has looked at its hosts, since it is frozen as they see
// it: what freezes it later, before the order is repeated, they have not looked at.
func (s *staff) clear(name string) {
	seen := strings.Fields(s.redis.zone.Semaphores.Holders[name]["frozen"])
	since, err := jobs.ParseMicros(seen[1])
	if err != nil {
		panic(err)
	}
	turn := model.Turn{Verb: "clear", Object: name[len("group/"):], Note: "looked at it",
		Number: int64(since)}
	s.insist("clear", func(z *zone, now jobs.Micros) any {
		for _, id := range s.tasks {
			for _, host := range s.accepted[id] {
				if "group/"+s.hosts[host].group == name {
					s.met("cleared", z, id, []string{host})
				}
			}
		}
		return z.Control(now, turn)
	}, func(any) {})
}
