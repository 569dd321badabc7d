package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"muster/jobs"
)

// take hands out due jobs: started jobs first, but every fourth from the queue.
func (s *stepping) take() {
	again := s.Again.Until(s.now, math.MaxInt)
	queue := s.Queue.Until(s.now, math.MaxInt)
	for s.looks < s.Want+looksMax && len(s.grants) < s.Want {
		from, fresh := &again, false
		if len(again) == 0 {
			from, fresh = &queue, true
		} else if s.flags.Turn++; s.flags.Turn%4 == 0 && len(queue) > 0 {
			from, fresh = &queue, true
		}
		if len(*from) == 0 {
			break
		}
		id := (*from)[0]
		*from = (*from)[1:]
		s.looks++
		s.consider(id, fresh)
	}
	s.flags.Turn %= 4
}

// sweep examines the front of both sources without taking. It reports whether it changed all jobs
// of a full page.
func (s *stepping) sweep() (more bool) {
	for _, set := range []*Set[jobs.ID]{s.Again, s.Queue} {
		changed := 0
		for _, id := range set.Until(s.now, looksMax) {
			before := s.planned()
			s.consider(id, set == s.Queue)
			if s.planned() > before {
				changed++
			}
		}
		more = more || changed == looksMax
	}
	return more
}

// consider handles one due job. A job that cannot run is moved, so that it does not block the
// front.
func (s *stepping) consider(id jobs.ID, fresh bool) {
	if s.seen[id] {
		return
	}
	s.seen[id] = true
	t := s.task(id.Task())
	if t == nil {
		s.write(func() { s.source(fresh).Remove(id) })
		s.event("orphan", id)
		return
	}
	j := Job{} // a job in queue has never started
	if !fresh {
		j = s.job(id)
	}
	s.anew[id] = fresh
	if j.State == jobs.Ended {
		t.reopen()
		s.drop(id)
		return
	}
	host := id.Host()
	lock := s.locked(host)
	mine := lock.holds(id, j.Token)
	if j.State == jobs.Running && mine {
		at := s.now.Add(s.left(host) + lockDelay(t.Head.Spec.Timeout))
		s.move(writing, id, at) // its lock ends later than its score says: it moves behind that end
		return
	}
	var list []string
	if t.Head.Guarded {
		list = s.needs(id, t)
	}
	lost := j.State == jobs.Running || j.State == jobs.Lost
	lack := ""
	if !lost && s.laidAside(id, j, t, fresh) {
		lack = "aside"
	} else {
		if lock != (Lock{}) && !mine || !mine && !lost && j.State != jobs.Verify &&
			s.Semaphores.Aside.Keeps(host, t.Head.Quarantine) {
			lack = "host/" + host
		} else if !lost {
			lack = s.lacks(id, list, fresh)
		}
		switch {
		case lack != "":
			s.block(id, j, t, blocked{lack, fresh})
		case s.Want > 0:
			s.grant(id, j, t, granting{fresh, lost, mine, list})
		case lost:
			s.see(id, j, t)
		}
	}
	if lack != "" && !fresh {
		s.passOn(list)
	}
}

func (c *call) source(fresh bool) *Set[jobs.ID] {
	if fresh {
		return c.Queue
	}
	return c.Again
}

// laidAside ends a job that must not run, or moves it aside, and reports whether it did.
func (c *call) laidAside(id jobs.ID, j Job, t *task, fresh bool) bool {
	expiry := t.Expiry.Add(j.Later)
	customer := false
	if len(c.Customers) > 0 {
		_, customer = c.Customers[c.traits(id, t).Customer]
	}
	o, d := End{}, sure
	switch {
	case t.Cancel != "":
		o, d = cancelled(j, t.Cancel)
	case j.Cancel != "":
		o, d = cancelled(j, j.Cancel)
	case t.By != "" && j.Started == 0 && c.has(t.By, id.Host()):
		o = End{Outcome: jobs.Superseded, Error: "superseded by task " + string(t.By)}
	case c.unproven(id, t) != "":
		o = End{Outcome: jobs.Skipped, Error: c.unproven(id, t)}
		if j.Step > 0 {
			o.Error = fmt.Sprintf("stopped after step %d: %s", j.Step, o.Error)
		}
	case j.State != jobs.Verify && (t.Paused.Note != "" || customer || c.stands(id, t)):
		c.write(func() { c.Held.put(t.id, id, c.now) })
		c.write(func() { c.Parked[t.id] = true })
		c.after(func() { c.source(fresh).Remove(id) })
		return true
	case j.Counts.Attempt == 0 && expiry <= c.now:
		o = End{Outcome: jobs.Expired, Error: "did not start before its expiry"}
	default:
		return false
	}
	c.finish(id, j, o, d)
	c.unqueue(id)
	return true
}

// granting says how a job is handed out.
type granting struct {
	fresh, lost bool
	mine        bool // it has its host already
	list        []string
}

func (s *stepping) grant(id jobs.ID, j Job, t *task, how granting) {
	host, timeout := id.Host(), t.Head.Spec.Timeout
	s.flags.Token = max(s.flags.Token+1, s.now)
	token := jobs.Token(s.flags.Token)
	g := jobs.Grant{Job: id, Token: token, Mode: jobs.ModeContinue, Attempt: j.Counts.Attempt + 1,
		Tries: j.Counts.Tries, Probes: j.Counts.Probes, Crashes: j.Counts.Crashes, Step: j.Step,
		Saved: j.Saved, Spent: j.Spent, Due: j.Due, Timeout: timeout}
	if j.Spent == "" && j.Later > 0 {
		g.Spent = fmt.Sprint("w", j.Later.Microseconds())
	}
	if j.Counts.Attempt == 0 {
		g.Mode = jobs.ModeFresh
	}
	if g.Due == 0 {
		g.Due = t.Due
	}
	// The lock lasts from the token on, even if the token is ahead of Redis' clock.
	lasts := s.flags.Token.Sub(s.raw) + timeout
	if how.lost {
		g.Mode, g.LostNode = jobs.ModeLost, j.Node
	}
	if how.lost && how.mine {
		// The old attempt may still act on the host: its lock keeps its end.
		g.Bound = s.left(host)
		lasts = g.Bound
	}
	l := Lock{Token: token, Job: id}
	s.lock(locking, l, lasts)
	at := s.now.Add(timeout + lockDelay(timeout))
	s.do(timing, func() { s.Again.Put(id, at) })
	if how.fresh || j.State == "" {
		s.unqueue(id)
	}
	s.change(id, func(kept *Job) {
		kept.State, kept.Token, kept.Counts.Attempt = jobs.Running, token, g.Attempt
		kept.Node, kept.Due, kept.Why = s.Node+"/"+s.Slot, g.Due, ""
		if j.Started == 0 {
			kept.Started = s.now
		}
		if how.lost || j.Lost {
			kept.Lost = how.lost
		}
		kept.Was = was(j, how.mine)
	})
	if !how.fresh && s.flags.Waits != 0 && (j.State == "" || j.State == jobs.Blocked) {
		s.after(func() { s.Semaphores.Waits.remove("host/"+host, string(id)) })
	}
	if j.State != jobs.Running {
		t.running++
	}
	s.started(t)
	s.event("take", id)
	s.acquire(id, slices.Clip(how.list), token)
	s.held[id] = token
	s.grants = append(s.grants, g)
}

// was returns the state of a granted job to restore if it is returned.
func was(j Job, mine bool) jobs.State {
	if j.State == jobs.Verify || mine && j.State == jobs.Waiting {
		return j.State
	}
	return ""
}

func (c *call) started(t *task) {
	if t.Started == 0 {
		t.Started = c.now
		c.write(func() { c.Tasks[t.id].Started = c.now })
	}
}

// watchMax bounds the jobs that one call examines in a zone where nothing may start.
const watchMax = 100

// watch is the sweep of a zone where nothing may start: it marks running jobs as lost, and changes
// nothing else. It returns the rank for the next call, or 0 at the end.
func (s *stepping) watch() jobs.Micros {
	from, _ := strconv.Atoi(s.Request) // a request that is no number begins at the front
	due := s.Again.Until(s.now, math.MaxInt)
	page := due[min(from, len(due)):]
	page = page[:min(watchMax, len(page))]
	for _, id := range page {
		t, j := s.task(id.Task()), s.job(id)
		if t != nil && j.State == jobs.Running && !s.locked(id.Host()).holds(id, j.Token) {
			s.miss(id, t)
		}
	}
	if len(page) < watchMax {
		return 0
	}
	return jobs.Micros(from + len(page))
}

// miss records that no worker has a running job.
func (s *stepping) miss(id jobs.ID, t *task) {
	t.running--
	s.change(id, func(j *Job) { j.State = jobs.Lost })
	s.event("lost", id)
}

// see handles a lost job in a call that takes no jobs: it marks the job as lost for people to see.
func (s *stepping) see(id jobs.ID, j Job, t *task) {
	if j.State == jobs.Running {
		s.move(writing, id, s.now)
		s.miss(id, t)
	} else if at, _ := s.Again.Score(id); at < s.now.Add(-minute) {
		s.move(writing, id, s.now.Add(minute))
	}
}
