package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster/jobs"
	"muster/jobs/quarantine"
)

const (
	day    = 24 * time.Hour // ended jobs are kept for a day
	minute = time.Minute    // a blocked job is due again after a minute
)

// Absent is the answer of a zone that does not exist.
const Absent = "absent"

// Later is the answer to an order about a switch if a later order is in force.
const Later = "later"

// A call is the execution of one script. It reads the zone as it was before, and plans its writes.
type call struct {
	*Zone
	raw, now jobs.Micros // TIME, and the same but never less than the highest seen
	flags    Flags       // with the changes of this call
	tasks    map[jobs.TaskID]*task
	locks    map[string]Lock // as they will be after the plan
	plan     [stages][]func()
	happened []Event
	anew     map[jobs.ID]bool // jobs of the queue: earlier records of them do not count

	semaphores map[string]*semaphore
	woken      bool // this call has made a job due that its own take does not see
}

// A stage is a part of a plan. The stages are carried out in this order.
type stage int

const (
	freeing stage = iota // locks that are released
	writing
	locking
	timing // scores of again
	leaving
	keeping // records of jobs
	afterwards
	dropping
	stages
)

// A task as a call has read it, with the changes of its counters by the call.
type task struct {
	Task
	id      jobs.TaskID
	running int
	ends    []jobs.Outcome
	open    bool // the call that ended its last job broke off before it closed the task
	judged  int  // ends that count as failures
}

func (z *Zone) begin(now jobs.Micros) *call {
	z.expire(now)
	c := &call{Zone: z, raw: now, now: now, flags: z.Flags, tasks: map[jobs.TaskID]*task{},
		locks: map[string]Lock{}, anew: map[jobs.ID]bool{}, semaphores: map[string]*semaphore{}}
	if high := z.Flags.High; now >= high.Add(-minute) {
		c.now = max(now, high)
	}
	if c.flags.Waits <= c.now.Add(-5*minute) {
		c.flags.Waits = 0
	}
	return c
}

func (c *call) do(s stage, write func()) { c.plan[s] = append(c.plan[s], write) }

func (c *call) write(f func()) { c.do(writing, f) }
func (c *call) after(f func()) { c.do(afterwards, f) }

func (c *call) planned() (n int) {
	for _, s := range c.plan {
		n += len(s)
	}
	return n
}

func (c *call) event(name string, object any) {
	c.happened = append(c.happened, Event{name, fmt.Sprint(object)})
}

// flush carries the plan out.
func (c *call) flush() {
	for s := range c.plan {
		for _, write := range c.plan[s] {
			write()
		}
		c.plan[s] = nil
	}
	for _, id := range slices.Sorted(maps.Keys(c.tasks)) {
		c.tally(c.tasks[id])
	}
	c.Events = append(c.Events, c.happened...)
	c.happened = nil
}

// tally adds the counts of a call to a task.
func (c *call) tally(t *task) {
	if t == nil || (t.running == 0 && len(t.ends) == 0 && !t.open) {
		return
	}
	kept := c.Tasks[t.id]
	kept.Running += t.running
	for _, o := range t.ends {
		kept.Done++
		kept.Outcomes[o]++
		c.Reordering.Ends.Jobs[o]++
	}
	if (len(t.ends) > 0 || t.open) && t.Done+len(t.ends) >= t.Head.Total {
		kept.Ended, kept.Expires = c.now, c.raw.Add(day)
		c.Reordering.Open.Remove(t.id)
		if t.Head.Guarded {
			delete(c.Rollouts, t.id)
		}
		c.Reordering.Changes++
		c.Reordering.Ends.Tasks++
		c.event("task", t.id)
	}
}

// reopen marks a task to be closed if all its jobs have ended.
func (t *task) reopen() { t.open = t.Done >= t.Head.Total && t.Ended == 0 }

func (c *call) task(id jobs.TaskID) *task {
	if t, ok := c.tasks[id]; ok {
		return t
	}
	c.tasks[id] = nil
	if kept := c.Tasks[id]; kept != nil {
		c.tasks[id] = &task{Task: *kept, id: id}
	}
	return c.tasks[id]
}

// job returns the record of a job; it is empty before the first take.
func (c *call) job(id jobs.ID) Job {
	if j := c.Jobs[id]; j != nil {
		return *j
	}
	return Job{}
}

// change plans a change of a job's record. Without its task the record does not exist.
func (c *call) change(id jobs.ID, f func(*Job)) {
	c.do(keeping, func() {
		if c.Tasks[id.Task()] == nil {
			return
		}
		if c.Jobs[id] == nil || c.anew[id] {
			c.Jobs[id] = &Job{}
		}
		f(c.Jobs[id])
	})
}

// drop plans that a job leaves again, after all other writes.
func (c *call) drop(id jobs.ID)    { c.do(dropping, func() { c.Again.Remove(id) }) }
func (c *call) unqueue(id jobs.ID) { c.do(leaving, func() { c.Queue.Remove(id) }) }

func (c *call) appoint(id jobs.ID, at jobs.Micros) {
	c.write(func() { c.Again.Put(id, at) })
}

// move does the same as appoint for a job that is in again; else it does nothing.
func (c *call) move(s stage, id jobs.ID, at jobs.Micros) {
	c.do(s, func() {
		if _, ok := c.Again.Score(id); ok {
			c.Again.Put(id, at)
		}
	})
}

// lockDelay returns how long after its lock a job is due.
func lockDelay(timeout time.Duration) time.Duration {
	return max(5*time.Second, ceil(timeout, 50*time.Microsecond)*time.Microsecond)
}

// ceil returns the number of units in d, rounded up.
func ceil(d, unit time.Duration) time.Duration {
	n := d / unit
	if d%unit > 0 {
		n++
	}
	return n
}

// millis returns d in whole milliseconds, rounded up, because Redis keeps expiries so.
func millis(d time.Duration) time.Duration { return ceil(d, time.Millisecond) * time.Millisecond }

// locked returns the lock of a host as it will be after the plan.
func (c *call) locked(host string) Lock {
	if l, ok := c.locks[host]; ok {
		return l
	}
	if l := c.Locks[host]; l.Until > c.raw {
		c.locks[host] = l
	}
	return c.locks[host]
}

// holds reports whether a job has the host's lock.
func (l Lock) holds(id jobs.ID, token jobs.Token) bool {
	return token != 0 && l.Token == token && l.Job == id
}

// left returns how much longer the lock of a host lasts.
func (c *call) left(host string) time.Duration {
	if c.locked(host) == (Lock{}) {
		return 0
	}
	return max(c.Locks[host].Until.Sub(c.raw), 0)
}

func (c *call) lock(s stage, l Lock, d time.Duration) {
	host := l.Job.Host()
	l.Until = c.raw.Add(d)
	c.do(s, func() { c.Locks[host] = l })
	c.locks[host] = l
}

// unlock releases the host of a job, if the job holds it.
func (c *call) unlock(id jobs.ID, j Job, t *task) {
	host := id.Host()
	token := jobs.Micros(j.Token)
	sure := t != nil && j.State == jobs.Running && !j.Lost &&
		c.now < token.Add(t.Head.Spec.Timeout-time.Millisecond) &&
		token > c.flags.Epoch.Add(c.flags.Longest)
	if !sure && !c.locked(host).holds(id, j.Token) {
		return
	}
	c.do(freeing, func() { delete(c.Locks, host) })
	c.locks[host] = Lock{}
	if c.flags.Waits != 0 {
		c.wakeFor(host)
	}
}

// weigh lets the end of a job decide about its host. It writes at once: no other call is between.
func weigh(c *call, k quarantine.Kind, e quarantine.End) {
	e.At = c.now.String()
	if event := c.Semaphores.Aside.After(k, e); event != "" {
		c.event(event, e.Host)
	}
}

// finish ends a job. If something may still act on its host, the host stays locked until the lock
// ends.
func (c *call) finish(id jobs.ID, j Job, o End, d doubt) {
	t := c.task(id.Task())
	c.change(id, func(kept *Job) {
		kept.State, kept.Was = jobs.Ended, ""
		kept.End.At, kept.End.Outcome = cmp.Or(o.At, c.now), o.Outcome
		kept.End.Class = cmp.Or(o.Class, kept.End.Class)
		kept.End.Exit = cmp.Or(o.Exit, kept.End.Exit)
		kept.End.Error = cmp.Or(o.Error, kept.End.Error)
		kept.End.Note = cmp.Or(o.Note, kept.End.Note)
		kept.End.Spent = cmp.Or(o.Spent, kept.End.Spent)
	})
	if t != nil {
		t.ends = append(t.ends, o.Outcome)
		weigh(c, t.Head.Quarantine, quarantine.End{Host: id.Host(), Job: string(id),
			Outcome: string(o.Outcome), Error: o.Error, Began: int64(j.Token)})
		if j.State == jobs.Running {
			t.running--
		}
	}
	c.event("end", id)
	if t != nil && t.Head.Guarded {
		c.judge(id, t, o)
	}
	if t != nil && t.Head.Guarded && j.Token != 0 {
		c.settle(id, t, o, d)
	}
	if d != acting {
		c.unlock(id, j, t)
	}
	c.drop(id)
}
