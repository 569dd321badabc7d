package model

import (
	"time"

	"muster/jobs"
)

// Put is one chunk of a task's hosts.
type Put struct {
	Task  jobs.TaskID
	Print string // fingerprint of the submit
	Chunk int
	At    jobs.Micros // when to run; 0: at once
	Hosts []string
	Own   []jobs.Micros // when to run, for each host; 0: with the task; nil: all with the task
	Waves []int         // wave of each host; empty: there are no waves
	Head  *Head         // with chunk 0
}

// Put stores the jobs of a chunk as held, until Move commits the task. It returns the status, and
// the number of held jobs.
func (z *Zone) Put(now jobs.Micros, p Put) (string, int) {
	c := z.begin(now)
	t := z.Tasks[p.Task]
	switch {
	case c.flags.Run == "":
		return Absent, 0
	case t == nil && p.Chunk != 0:
		return "header", 0
	case t == nil:
		t = &Task{Print: p.Print, Chunks: map[int][]string{}, Outcomes: map[jobs.Outcome]int{},
			Rolling: Rolling{Allowed: -1}}
	case t.Print != p.Print:
		return "conflict", 0
	case t.Committed != 0:
		return "committed", 0
	case t.Cancel != "":
		return "cancelled", 0
	}
	if p.Head != nil {
		guarded := t.Head.Guarded // a limit may have been defined since
		t.Head = *p.Head
		t.Head.Guarded = t.Head.Guarded || guarded
		t.Rolling.put(p.Head.Spec.Rollout)
		z.Flags.Longest = max(z.Flags.Longest, p.Head.Spec.Timeout)
	}
	t.Chunks[p.Chunk], t.Expires = p.Hosts, now.Add(day)
	z.Tasks[p.Task] = t
	for i, host := range p.Hosts {
		// A job that was cancelled meanwhile, or runs because a failover forgot an earlier commit,
		// stays where it is.
		if t.Done+int(t.Started) > 0 && c.elsewhere(p.Task, host) {
			continue
		}
		id, at := jobs.NewID(p.Task, host), p.At
		if p.Own != nil {
			at = p.Own[i]
		}
		if len(p.Waves) > 0 {
			at = jobs.Micros(p.Waves[i])
		}
		z.Held.putNew(p.Task, id, at)
		if p.Own != nil && at != 0 {
			z.Jobs[id] = &Job{State: jobs.Queued, Due: at, Later: max(at.Sub(max(t.Head.At, c.now)), 0)}
		}
	}
	z.Held.expire(p.Task, now.Add(day))
	c.event("put", p.Task)
	c.flush()
	return "ok", z.Held[p.Task].Len()
}

// elsewhere reports whether a job must not be held again.
func (c *call) elsewhere(task jobs.TaskID, host string) bool {
	id := jobs.NewID(task, host)
	if j := c.Jobs[id]; j != nil && j.State != jobs.Queued {
		return true
	}
	_, queued := c.Queue.Score(id)
	_, again := c.Again.Score(id)
	return queued || again
}

// Checkpoint answers whether the next step of a job may start. The verdict may also be Absent.
func (z *Zone) Checkpoint(now jobs.Micros, a jobs.Checkpoint) jobs.Verdict {
	c := z.begin(now)
	if c.flags.Run == "" {
		return Absent
	}
	j, t := c.job(a.Job), c.task(a.Job.Task())
	if t == nil || j.Token != a.Token || j.State != jobs.Running {
		return jobs.Stale
	}
	lock := c.locked(a.Job.Host())
	if lock != (Lock{}) && !lock.holds(a.Job, a.Token) {
		return jobs.Stale
	}
	if t.Cancel != "" || j.Cancel != "" || c.flags.Halted.Note != "" ||
		c.flags.shut(c.now) {
		return jobs.Stop
	}
	timeout := t.Head.Spec.Timeout
	c.lock(writing, Lock{Token: a.Token, Job: a.Job}, timeout)
	c.appoint(a.Job, c.now.Add(timeout+lockDelay(timeout)))
	if a.Step >= j.Step { // a delayed copy of an earlier call must not set the job back
		c.change(a.Job, func(j *Job) {
			j.Step = a.Step
			if a.Saved != "" {
				j.Saved = a.Saved
			}
		})
	}
	c.event("step", a.Job)
	c.flush()
	return jobs.Go
}

// Move is a call of the script move.
type Move struct {
	Task  jobs.TaskID
	Verb  string // commit, pause, resume, release
	Limit int    // jobs to move at most
	Note  string
	Chunk int   // pause only
	Order int64 // id of a pause or resume; less than 0: none
}

// Moved is the answer of the script move.
type Moved struct {
	Status string
	Jobs   int // jobs that are left to move; for pause, jobs that were moved
	Before string
}

// Move commits, pauses or resumes a task, and moves some of its jobs.
func (z *Zone) Move(now jobs.Micros, a Move) Moved {
	c := z.begin(now)
	if c.flags.Run == "" || c.task(a.Task) == nil {
		return Moved{Status: Absent}
	}
	t := c.task(a.Task)
	if t.Done >= t.Head.Total {
		if t.reopen(); t.open {
			c.after(func() { delete(z.Held, a.Task) })
			c.flush()
		}
		// All jobs of this zone may have been cancelled before the other zones were put.
		if a.Verb == "commit" && t.Cancel != "" && t.Committed == 0 {
			return Moved{Status: "cancelled"}
		}
		return Moved{Status: "ended"}
	}
	kept, before := z.Tasks[a.Task], t.Paused.Note
	switch a.Verb {
	case "commit":
		if status, n := c.commit(t); status != "" {
			return Moved{Status: status, Jobs: n}
		}
		if before == "" {
			c.letGo(t, a)
		}
	case "pause":
		if s, again := t.Paused.again(a.Order); again {
			c.write(func() { kept.Paused = s })
		} else if before == "" {
			c.write(func() { kept.Paused = Switch{a.Note, c.now, max(a.Order, 0)} })
			c.event("pause", a.Task)
		}
		n := c.layAside(t, a)
		c.flush()
		return Moved{"ok", n, before}
	case "resume":
		if before != "" && t.Paused.later(a.Order) {
			return Moved{Later, 0, before}
		}
		if before != "" { // the pause does not count against the expiry
			t.Due = max(t.Due, c.now)
			expiry := t.Expiry.Add(c.now.Sub(t.Paused.At))
			c.write(func() { kept.Paused, kept.Due, kept.Expiry = Switch{}, t.Due, expiry })
			c.event("resume", a.Task)
		}
		c.letGo(t, a)
	case "release":
		if before == "" {
			c.letGo(t, a)
		}
	}
	c.flush()
	return Moved{"ok", z.Held[a.Task].Len() - c.ahead(t), before}
}

// commit returns a status if the task cannot be committed.
func (c *call) commit(t *task) (string, int) {
	held := c.Held[t.id].Len()
	switch {
	case t.Committed != 0:
		return "", 0
	case t.Cancel != "":
		return "cancelled", 0
	case held+t.Done != t.Head.Total && (t.Started == 0 || len(t.Chunks) < t.Head.Chunks):
		return "incomplete", held
	}
	t.Due = max(c.now, t.Head.At)
	kept := c.Tasks[t.id]
	c.write(func() { kept.Expires = 0 })
	c.write(func() { c.Held.expire(t.id, 0) })
	c.write(func() {
		kept.Committed, kept.Due = c.now, t.Due
		kept.Expiry = t.Due.Add(t.Head.Spec.Expire)
	})
	c.write(func() { c.Reordering.Open.Put(t.id, t.Due) })
	if t.rule() != nil {
		c.write(func() { c.Rollouts[t.id] = true })
	}
	c.event("commit", t.id)
	return "", 0
}

// layAside moves queued jobs of a chunk aside, and counts them.
func (c *call) layAside(t *task, a Move) (moved int) {
	for _, host := range t.Chunks[a.Chunk] {
		id := jobs.NewID(t.id, host)
		at, queued := c.Queue.Score(id)
		if !queued || moved == a.Limit {
			continue
		}
		c.write(func() { c.Held.put(t.id, id, at) })
		c.write(func() { c.Queue.Remove(id) })
		moved++
	}
	return moved
}

// letGo moves held jobs into the queue or, if they had started, into again. If the commit of the
// task was forgotten, it moves only jobs that had started.
func (c *call) letGo(t *task, a Move) {
	if t.rule() != nil && t.Stopped.Note != "" {
		return
	}
	n, moved, all := 0, 0, t.Committed != 0 || a.Verb == "commit"
	c.write(func() {
		if n < a.Limit {
			delete(c.Parked, t.id)
		}
	})
	for id, at := range c.Held[t.id].All() {
		if n == a.Limit {
			break
		}
		if t.Wave != 0 && at > jobs.Micros(t.Wave) && at <= jobs.WavesMax {
			continue // its wave is not open
		}
		if !all && at <= jobs.WavesMax {
			continue // it never began
		}
		n++
		at = max(at, t.Due)
		switch j := c.Jobs[id]; {
		case !all && (j == nil || j.Counts.Attempt == 0 && j.State == jobs.Queued):
			continue
		case j == nil:
			c.write(func() { c.Queue.Put(id, at) })
		case j.State != jobs.Ended && j.State != jobs.Running && j.State != jobs.Lost:
			c.change(id, func(j *Job) { j.State = jobs.Queued })
			c.appoint(id, at)
		}
		moved++
		c.after(func() { c.Held.remove(t.id, id) })
	}
	if moved > 0 && a.Verb != "commit" {
		c.write(func() { c.Reordering.Changes++ })
	}
}

// shortest is the least duration of a freeze that nobody ends.
const shortest = 10 * time.Second
