package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"muster/jobs"
	"muster/jobs/model"
)

type zone = model.Zone

// The staff are the operators and the server through which they speak. They repeat
// what was not answered.
type staff struct {
	*client
	plans    map[jobs.TaskID]plan
	accepted map[jobs.TaskID][]string // hosts
	ordered
	limits map[string]int // as people want them to be
	tasks  []jobs.TaskID

	arranged  int                   // how often the timetable was set
	published map[string]bool       // limits that Redis has confirmed once
	freezes   map[int]time.Duration // that were ordered and not lifted: since when each stands; 0: not yet
}

func newStaff(w *world) *staff {
	s := &staff{client: newClient(&process{world: w}, "", ""), plans: map[jobs.TaskID]plan{},
		published: map[string]bool{}, freezes: map[int]time.Duration{},
		accepted: map[jobs.TaskID][]string{}, ordered: ordered{
			paused: map[jobs.TaskID]time.Duration{}, cancelled: map[string]time.Duration{}, opened: map[string]bool{}},
		limits: maps.Clone(limitsMost)}
	s.agree()
	s.duty()
	return s
}

// insist repeats a call until it is answered.
func (s *staff) insist(kind string, f func(*zone, jobs.Micros) any, then func(any)) {
	s.script(call{kind: kind, do: f}, func(v any) bool {
		switch v := v.(type) {
		case model.Moved:
			return v.Status == model.Absent
		case model.Turned:
			return v.Status == model.Absent
		case string:
			return v == model.Absent
		}
		return false
	}, func(v any, err error) {
		if err != nil {
			s.after(s.between(100*time.Millisecond, 2*time.Second), func() { s.insist(kind, f, then) })
			return
		}
		then(v)
	})
}

// duty sweeps, and clears groups when somebody has looked at their hosts.
func (s *staff) duty() {
	s.after(10*time.Second, s.duty)
	s.step(jobs.Step{}, nil, func(jobs.Reply, error) {})
	s.rollOut()
	s.answerGates()
	if s.faults.plot != nil {
		return // somebody looks at a group when the plot says so
	}
	for _, name := range sorted(s.redis.zone.Semaphores.Holders) {
		_, frozen := s.redis.zone.Semaphores.Holders[name]["frozen"]
		if frozen && s.chance(0.05) && s.calm(name) {
			s.clear(name)
		}
	}
}

// calm reports whether nothing runs on the hosts of a group. A person finds that out by a look.
func (s *staff) calm(group string) bool {
	for _, h := range s.hosts {
		for _, e := range h.log {
			if "group/"+h.group == group && e.to > s.now {
				return false
			}
		}
	}
	return true
}

func (s *staff) control(a model.Turn) {
	s.insist(a.Verb, func(z *zone, now jobs.Micros) any { return z.Control(now, a) }, func(any) {})
}

// open reports whether the end of a job is not known, or the job ended unknown and nobody has
// looked at it.
func (s *staff) open(id jobs.ID) bool {
	j := s.redis.zone.Jobs[id]
	return j != nil && j.State != jobs.Ended
}

// submit puts a task on some hosts, and commits it.
func (s *staff) submit() {
	p := plan{repeatable: s.chance(0.3), disruptive: s.chance(0.4)}
	for range 1 + s.rnd.IntN(3) {
		st := stage{takes: s.between(100*time.Millisecond, 40*time.Second), timeout: s.between(20*time.Second, time.Minute)}
		st.expect = st.takes
		if s.chance(0.3) {
			st.expect = s.between(st.takes/4, st.takes)
		}
		switch {
		case s.chance(0.2):
			st.kind = looking
		case p.disruptive && s.chance(0.3):
			st.kind, st.takes, st.expect = reboot, time.Second, time.Second
		case s.chance(0.3):
			st.tries = 2 + s.rnd.IntN(2)
		}
		p.steps = append(p.steps, st)
		if s.chance(0.1) {
			p.steps = slices.Insert(p.steps, len(p.steps)-1, stage{kind: gating,
				pause: s.between(time.Minute, 10*time.Minute)})
		}
		if s.chance(0.2) {
			p.steps = append(p.steps, stage{kind: waiting, pause: s.between(time.Second, time.Minute)})
		}
	}
	if s.chance(0.3) {
		p.unreachable, p.fails = 0.1, 0.1
	}
	p.window = s.chance(0.3)
	if s.chance(0.15) {
		for i := range p.steps {
			if p.steps[i].kind == reboot || !p.steps[i].touches() {
				continue
			}
			p.steps[i].takes = 2 * time.Minute // cut off at its bound, close to the end of its lock
		}
	}
	if s.chance(0.2) {
		p.needs = []string{"lab"}
	}
	spec := p.spec()
	if s.chance(0.2) {
		spec.Expire = s.between(20*time.Second, 5*time.Minute)
	}
	var hosts []string
	for _, name := range sorted(s.hosts) {
		if s.chance(0.5) {
			hosts = append(hosts, name)
		}
	}
	if len(hosts) == 0 {
		return
	}
	put := model.Put{Hosts: hosts}
	spec.Rollout, put.Waves = s.rule(len(hosts))
	s.offer(p, spec, put)
}

// offer begins to submit a task.
func (s *staff) offer(p plan, spec jobs.Spec, put model.Put) jobs.TaskID {
	id, hosts := jobs.NewTaskID(start.Add(s.now).Time(), uint16(len(s.tasks))), put.Hosts
	s.plans[id] = p
	s.tasks = append(s.tasks, id)
	put.Task, put.Print = id, "p"
	limited := slices.ContainsFunc(hosts, func(h string) bool { return s.hosts[h].limits != nil })
	put.Head = &model.Head{Spec: spec, Total: len(hosts), Chunks: 1,
		Guarded: p.disruptive || len(p.needs) > 0 || limited || spec.Rollout != nil}
	s.put(put, 0)
	return id
}

// put repeats a submit as a whole until it is accepted. A server submits nothing by an inventory
// whose limits have not all been published: until then it has none (publish of server/inventory.go).
func (s *staff) put(p model.Put, try int) {
	again := func() {
		if try < 50 {
			s.after(time.Second, func() { s.put(p, try+1) })
		}
	}
	if len(s.published) < len(limitsMost) {
		s.after(time.Second, func() { s.put(p, try) })
		return
	}
	s.insist("put", func(z *zone, now jobs.Micros) any {
		traits(z, s.hosts)
		status, _ := z.Put(now, p)
		return status
	}, func(v any) {
		if status := v.(string); status != "ok" && status != "committed" {
			again()
			return
		}
		s.move(model.Move{Task: p.Task, Verb: "commit", Limit: 500, Note: "x"}, func(m model.Moved) {
			if m.Status != "ok" && m.Status != "ended" {
				again()
				return
			}
			s.say("staff: task %s is accepted", p.Task)
			s.accepted[p.Task] = p.Hosts
			if n := len(s.tasks); n > 1 && s.faults.plot == nil && s.chance(0.3) {
				s.supersede(s.tasks[s.rnd.IntN(n-1)], p.Task)
			}
		})
	})
}

// traits are published with the inventory.
func traits(z *zone, hosts map[string]*host) {
	all := map[string]model.Traits{}
	for name, h := range hosts {
		all[name] = model.Traits{Customer: customer, Group: h.group, Limits: h.limits}
	}
	z.Traits["v1"] = all
}

func (s *staff) move(m model.Move, then func(model.Moved)) {
	s.insist(m.Verb, func(z *zone, now jobs.Micros) any { return z.Move(now, m) },
		func(v any) { then(v.(model.Moved)) })
}

// settle lifts and resumes all that stands still.
func (s *staff) settle() {
	s.lift()
	for _, id := range s.tasks {
		s.resume(id)
	}
	s.redis.offset = 0 // somebody has put its clock right
	s.agree()
}

// open work: jobs that were accepted and have no outcome.
func (s *staff) unfinished() (left []string) {
	for _, id := range s.tasks {
		for _, host := range s.accepted[id] {
			j := s.redis.zone.Jobs[jobs.NewID(id, host)]
			if j == nil || j.State != jobs.Ended {
				state := jobs.State("")
				if j != nil {
					state = j.State
				}
				left = append(left, fmt.Sprintf("%s:%s (%q)", id, host, state))
			}
		}
	}
	return left
}
