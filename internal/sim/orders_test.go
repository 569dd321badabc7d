package sim

import (
	"time"

	"muster/jobs"
	"muster/jobs/model"
)

// This file is what operators order, in which state of its life each job is met by that, and
// what must not happen behind it.

// ordered holds the answers to orders that must hold. The times are those of the answers.
type ordered struct {
	halts  int64 // id of the last order of a halt, or of its end
	lifted int64 // … of the last lift that was ordered
	halted int64 // … of the last halt that the zone has confirmed …

	haltedAt     time.Duration // … and when
	paused       map[jobs.TaskID]time.Duration
	cancelled    map[string]time.Duration // of a job, or a task
	number       int64                    // of the last pause or resume
	frozenBefore int                      // so many freezes were ordered
	opened       map[string]bool          // gates
}

// met counts in which states jobs of a task are that an order finds.
func (s *staff) met(order string, z *zone, id jobs.TaskID, hosts []string) {
	for _, host := range hosts {
		if state := stateOf(z, jobs.NewID(id, host)); state != "" {
			s.faults.met(order + " when " + state)
		}
	}
}

// stateOf returns the state of a job as people see it; empty: it has ended, or is not known.
func stateOf(z *zone, id jobs.ID) string {
	if _, held := z.Held[id.Task()].Score(id); held {
		if t := z.Tasks[id.Task()]; t == nil || t.Committed == 0 {
			return string(jobs.Held)
		}
		return string(jobs.Paused)
	}
	if _, queued := z.Queue.Score(id); queued {
		return string(jobs.Queued)
	}
	if _, again := z.Again.Score(id); !again {
		return ""
	}
	if j := z.Jobs[id]; j != nil && j.State != "" {
		return string(j.State)
	}
	return string(jobs.Blocked)
}

// act is one of the things that operators do.
func (s *staff) act() {
	if len(s.tasks) == 0 {
		return
	}
	id, host := s.tasks[s.rnd.IntN(len(s.tasks))], ""
	if s.chance(0.5) {
		id, host = s.halfWay(id)
	}
	switch s.faults.act() {
	case pausing:
		s.pause(id)
	case cancelling:
		s.cancel(id, host)
	case freezing:
		s.freeze(s.between(10*time.Second, 5*time.Minute))
	case halting:
		s.halt()
	case limiting:
		s.limit()
	}
}

// halfWay is a job that has begun, if there is one; else any of a task.
func (s *staff) halfWay(id jobs.TaskID) (jobs.TaskID, string) {
	var found []jobs.ID
	for _, task := range s.tasks {
		for _, host := range s.accepted[task] {
			job := jobs.NewID(task, host)
			switch jobs.State(stateOf(s.redis.zone, job)) {
			case jobs.Running, jobs.Retry, jobs.Waiting, jobs.Verify, jobs.Lost:
				found = append(found, job)
			}
		}
	}
	if len(found) == 0 {
		return id, ""
	}
	job := found[s.rnd.IntN(len(found))]
	return job.Task(), job.Host()
}

func (s *staff) pause(id jobs.TaskID) {
	s.number++
	m := model.Move{Task: id, Verb: "pause", Limit: 500, Note: "alice: pause", Order: s.number}
	s.insist("pause", func(z *zone, now jobs.Micros) any {
		s.met("paused", z, id, s.accepted[id])
		return z.Move(now, m)
	}, func(v any) {
		if v.(model.Moved).Status == "ok" && m.Order == s.number {
			s.paused[id] = s.now
		}
	})
	s.later(time.Second, func() { s.resume(id) })
}

// later takes an order back in some minutes, if no plot does.
func (s *staff) later(least time.Duration, back func()) {
	if s.faults.plot == nil {
		s.in(s.between(least, 5*time.Minute), back)
	}
}

func (s *staff) resume(id jobs.TaskID) {
	s.number++
	delete(s.paused, id)
	s.move(model.Move{Task: id, Verb: "resume", Limit: 500, Note: "alice: resume", Order: s.number},
		func(model.Moved) {})
}

func (s *staff) cancel(id jobs.TaskID, host string) {
	e := model.Ending{Task: id, Note: "alice: cancel"}
	hosts := s.accepted[id]
	if len(hosts) > 0 && s.chance(0.7) {
		e.Hosts = hosts[s.rnd.IntN(len(hosts)):][:1]
		if host != "" {
			e.Hosts = []string{host}
		}
	}
	s.end(e)
}

// end cancels a task, or its job on one host.
func (s *staff) end(e model.Ending) {
	id, hosts, what := e.Task, s.accepted[e.Task], string(e.Task)
	if len(e.Hosts) > 0 {
		hosts, what = e.Hosts, string(jobs.NewID(id, e.Hosts[0]))
	}
	s.insist("cancel", func(z *zone, now jobs.Micros) any {
		s.met("cancelled", z, id, hosts)
		return z.End(now, e)
	}, func(v any) {
		if _, before := s.cancelled[what]; !before && v.(model.Ended).Status == "ok" {
			s.cancelled[what] = s.now
		}
	})
}

func (s *staff) halt() {
	s.halts++
	n := s.halts
	turn := model.Turn{Verb: "halt", Note: "alice: halt", Number: n}
	s.insist("halt", func(z *zone, now jobs.Micros) any {
		for _, id := range s.tasks {
			s.met("halted", z, id, s.accepted[id])
		}
		return z.Control(now, turn)
	}, func(v any) {
		if v.(model.Turned).Status != model.Absent && n > s.lifted {
			s.halted, s.haltedAt = n, s.now
		}
	})
	s.later(10*time.Second, s.lift)
}

// lift ends the halts that were ordered before it, whenever it reaches the zone.
func (s *staff) lift() {
	s.halts++
	s.lifted = s.halts
	s.control(model.Turn{Verb: "lift", Note: "alice: lift", Number: s.halts})
}

// supersede ends what an older task has queued on the hosts of a newer one.
func (s *staff) supersede(older, by jobs.TaskID) {
	e := model.Ending{Task: older, Note: "superseded by task " + string(by), By: by}
	s.insist("supersede", func(z *zone, now jobs.Micros) any {
		s.met("superseded", z, older, s.accepted[older])
		return z.End(now, e)
	}, func(any) {})
}

// obeys judges that a step begins in spite of no order: nothing of a job five seconds after
// it was cancelled, or when it has ended, and no job of a paused task is taken, but to look
// what became of one, and behind a reboot.
func (h *host) obeys(e *entry) {
	s := h.staff
	for _, what := range []string{string(e.job), string(e.job.Task())} {
		if at, ok := s.cancelled[what]; ok && h.now > at+5*time.Second {
			h.suspect("I13", "%s: step %d of %s begins %s after it was cancelled", h.name, e.step, e.job, h.now-at)
		}
	}
	if j := h.redis.zone.Jobs[e.job]; j != nil && j.State == jobs.Ended {
		h.suspect("I13", "%s: step %d of %s begins, and it has ended %s", h.name, e.step, e.job, j.End.Outcome)
	}
	// A worker whose answer was lost hears of its attempt when it asks again, perhaps after the order.
	taken, known := h.redis.taken[e.token]
	if !known {
		taken = e.asked
	}
	if s.halted > s.lifted && taken > s.haltedAt {
		h.suspect("I13", "%s: step %d of %s begins, taken %s after a halt that stands", h.name, e.step, e.job,
			taken-s.haltedAt)
	}
	if at, ok := s.paused[e.job.Task()]; ok && taken > at && !e.goes {
		h.suspect("I13", "%s: step %d of %s begins, taken %s after its task was paused", h.name, e.step, e.job,
			taken-at)
	}
}

// truth judges what is said of jobs that have ended: who is said to have succeeded has done
// all steps, and who is said not to have run has begun none but to look.
func (s *staff) truth() {
	for _, id := range s.tasks {
		for _, host := range s.accepted[id] {
			job := jobs.NewID(id, host)
			j := s.redis.zone.Jobs[job]
			if j == nil || j.State != jobs.Ended {
				continue
			}
			s.faults.met("ended " + string(j.End.Outcome))
			s.hosts[host].bearsOut(job, j)
		}
	}
}

func (h *host) bearsOut(id jobs.ID, j *model.Job) {
	steps, touched := map[int]bool{}, false
	for _, e := range h.log {
		if e.job == id {
			steps[e.step] = true
			touched = touched || e.kind != looking
		}
	}
	switch o := j.End.Outcome; {
	case o == jobs.Succeeded:
		if want := h.staff.plans[id.Task()].touching(); len(steps) != want {
			h.suspect("I14", "%s: %s succeeded, and has done %d of %d steps", h.name, id, len(steps), want)
		}
	case !touched:
	case o == jobs.Expired, o == jobs.Superseded, o == jobs.Unreachable,
		o == jobs.Cancelled && j.End.Error == "alice: cancel":
		h.suspect("I14", "%s: %s ended %s (%s), and has begun %d steps", h.name, id, o, j.End.Error, len(steps))
	}
}
