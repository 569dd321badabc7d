package model

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"muster/jobs"
)

const (
	group  = "group/"
	frozen = "frozen" // a field among the holders
)

// needs lists what a job counts against, its group first.
func (c *call) needs(id jobs.ID, t *task) []string {
	var list []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	spec := t.Head.Spec
	traits := c.traits(id, t)
	if traits.Group != "-" && spec.Disruptive {
		add(group + traits.Group)
	}
	for _, name := range traits.Limits {
		add(name)
	}
	for _, name := range spec.Needs {
		add(name)
	}
	if spec.Rollout != nil {
		add(ruleOf(t.id))
	}
	return list
}

func (c *call) traits(id jobs.ID, t *task) Traits {
	if traits, ok := c.Traits[t.Head.Spec.Inventory][id.Host()]; ok {
		return traits
	}
	return Traits{Customer: "-", Group: "-"}
}

// A semaphore as it will be after the plan. kept counts the places that this call reserves for the
// jobs that it wakes.
type semaphore struct {
	max, holders, kept int
	waits              bool
	turns              []*turn
	read               bool // turns and last were read
	last               jobs.Micros
}

// A turn is a task that waits for a semaphore, with its first jobs.
type turn struct {
	task jobs.TaskID
	ids  []jobs.ID
	all  bool
}

func (c *call) sem(name string) *semaphore {
	if s := c.semaphores[name]; s != nil {
		return s
	}
	s := &semaphore{max: 1, holders: len(c.Semaphores.Holders[name]),
		waits: c.Semaphores.Waits[name] != nil}
	if task, ok := strings.CutPrefix(name, rule); ok {
		s.max = 0
		if t := c.task(jobs.TaskID(task)); t != nil && t.rule() != nil {
			s.max = t.places()
		}
	} else if !strings.HasPrefix(name, group) {
		s.max = math.MaxInt
		if n, ok := c.Semaphores.Max[name]; ok {
			s.max = n
		}
	}
	c.semaphores[name] = s
	return s
}

func (s *semaphore) room() bool { return s.holders+s.kept < s.max }

// lacks returns the first resource of the list that a job cannot have now. A job that comes fresh
// from the queue does not overtake waiting ones.
func (c *call) lacks(id jobs.ID, list []string, fresh bool) string {
	for _, name := range list {
		s := c.sem(name)
		free := s.room()
		if free && fresh && s.waits && c.wakeNext(name) {
			free = false
		}
		if !free && !c.holds(string(id), name) {
			return name
		}
	}
	return ""
}

func (c *call) holds(who, name string) bool {
	_, ok := c.Semaphores.Holders[name][who]
	return ok
}

// enter adds a holder: a job, or the mark of a frozen group.
func (c *call) enter(who, name, value string) {
	s := c.sem(name)
	if !c.holds(who, name) {
		s.holders++
	}
	c.write(func() {
		if c.Semaphores.Holders[name] == nil {
			c.Semaphores.Holders[name] = map[string]string{}
		}
		c.Semaphores.Holders[name][who] = value
		c.Semaphores.Index[name] = true
	})
}

func (c *call) acquire(id jobs.ID, list []string, token jobs.Token) {
	for _, name := range list {
		c.enter(string(id), name, fmt.Sprint(token))
	}
}

// leave removes a holder. It returns false if there was none.
func (c *call) leave(who, name string) bool {
	if !c.holds(who, name) {
		return false
	}
	s := c.sem(name)
	s.holders--
	empty := s.holders == 0
	c.write(func() {
		delete(c.Semaphores.Holders[name], who)
		if len(c.Semaphores.Holders[name]) == 0 {
			delete(c.Semaphores.Holders, name)
		}
		if empty {
			delete(c.Semaphores.Index, name)
		}
	})
	return true
}

// release releases all that a job holds, and wakes one waiter for each resource. A job that has
// begun keeps its group, because its host is in the middle of a disruptive change.
func (c *call) release(id jobs.ID, t *task, how giving) {
	for _, name := range c.needs(id, t) {
		kept := how.begun && strings.HasPrefix(name, group) ||
			!how.asks && strings.HasPrefix(name, rule)
		if !kept && c.leave(string(id), name) {
			c.wakeNext(name)
		}
	}
}

// provesGroup returns the group of a job whose next member waits for its success; empty if there
// is none.
func (c *call) provesGroup(id jobs.ID, t *task) string {
	spec := t.Head.Spec
	if name := c.traits(id, t).Group; name != "-" && t.Head.Guarded && spec.Disruptive &&
		spec.ProveGroup {
		return name
	}
	return ""
}

// unproven returns the member of a job's group that has not succeeded, and how it ended.
func (c *call) unproven(id jobs.ID, t *task) string {
	name := c.provesGroup(id, t)
	if name == "" || c.holds(string(id), group+name) {
		return ""
	}
	return t.Unproven[name]
}

func (c *call) proveNone(id jobs.ID, t *task, o jobs.Outcome) {
	name := c.provesGroup(id, t)
	if name == "" || !o.Fails(false) {
		return
	}
	text := fmt.Sprintf("%s of its group ended %s", id.Host(), o)
	set := func(t *Task) {
		t.Unproven = maps.Clone(t.Unproven)
		if t.Unproven == nil {
			t.Unproven = map[string]string{}
		}
		t.Unproven[name] = text
	}
	set(&t.Task)
	kept := c.Tasks[t.id]
	c.write(func() { set(kept) })
}

// A doubt says what may be wrong with the host of a job that ends.
type doubt int

const (
	sure    doubt = iota
	halfWay       // in the middle of a change: no other member of its group may be disturbed
	acting        // something may still act there: the host also stays locked
)

// doubtIf returns acting if something may still act on the host, else sure.
func doubtIf(keep bool) doubt {
	if keep {
		return acting
	}
	return sure
}

// settle releases what an ended job held. If the effect of a disruptive job is not known, or its
// host is in doubt, its group is frozen.
func (c *call) settle(id jobs.ID, t *task, o End, d doubt) {
	c.proveNone(id, t, o.Outcome)
	for _, name := range c.needs(id, t) {
		if (o.Outcome == jobs.Unknown || d != sure) && strings.HasPrefix(name, group) {
			c.leave(string(id), name)
			c.freezeGroup(name, id, o.Error)
		} else if c.leave(string(id), name) {
			c.wakeNext(name)
		}
	}
}

func (c *call) freezeGroup(name string, id jobs.ID, why string) {
	c.enter(frozen, name, fmt.Sprintf("%s %s %s", id, c.now, why))
	c.event("freeze-group", strings.TrimPrefix(name, group))
}

// doubt freezes the groups that a job holds together with another one: Redis had forgotten one of
// the two, and nobody knows how they affected each other.
func (c *call) doubt(id jobs.ID, t *task) {
	for _, name := range c.needs(id, t) {
		if strings.HasPrefix(name, group) && c.sem(name).holders > 1 && !c.holds(frozen, name) {
			c.freezeGroup(name, id, "it runs beside another one of its group: Redis had forgotten one")
		}
	}
}

// waiting reports whether a waiter still waits.
func (c *call) waiting(id jobs.ID) bool {
	state := c.job(id).State
	_, in := c.Again.Score(id)
	return in && (state == "" || state == jobs.Blocked || state == jobs.Lost)
}

func (c *call) forward(id jobs.ID) {
	c.move(afterwards, id, c.now)
	c.woken = true
}

// wakeFor makes the job that waits longest for a host due.
func (c *call) wakeFor(host string) {
	name := "host/" + host
	for _, waiter := range c.Semaphores.Waits[name].Until(math.MaxInt64, 5) {
		c.after(func() { c.Semaphores.Waits.remove(name, waiter) })
		if c.waiting(jobs.ID(waiter)) {
			c.forward(jobs.ID(waiter))
			return
		}
	}
}

// next reads the first tasks that wait for a resource, in the order of their turns.
func (c *call) next(name string) *semaphore {
	s := c.sem(name)
	if s.read {
		return s
	}
	s.read = true
	for _, at := range c.Semaphores.Waits[name].All() {
		s.last = at
	}
	for _, task := range c.Semaphores.Waits[name].Until(math.MaxInt64, 10) {
		t := &turn{task: jobs.TaskID(task)}
		for _, id := range c.Semaphores.Waits[name+":"+task].Until(math.MaxInt64, 10) {
			t.ids = append(t.ids, jobs.ID(id))
		}
		t.all = len(t.ids) < 10
		s.turns = append(s.turns, t)
	}
	return s
}

// wakeNext makes one waiter of a semaphore due, if there is room, and reserves the room for it
// until the end of this call. It reports whether there is such a waiter.
func (c *call) wakeNext(name string) bool {
	s := c.sem(name)
	if !s.waits || !s.room() {
		return false
	}
	waits := c.Semaphores.Waits
	for c.next(name); len(s.turns) > 0; {
		t := s.turns[0]
		s.turns = s.turns[1:]
		for len(t.ids) > 0 {
			id := t.ids[0]
			t.ids = t.ids[1:]
			c.after(func() { waits.remove(name+":"+string(t.task), string(id)) })
			if !c.waiting(id) {
				continue
			}
			last := max(s.last+1, c.now)
			s.last = last
			c.after(func() { waits.put(name, string(t.task), last) })
			s.turns = append(s.turns, t)
			s.kept++
			c.forward(id)
			return true
		}
		if t.all {
			c.after(func() { waits.remove(name, string(t.task)) })
		}
	}
	return false
}

// passOn wakes others in place of a job that was woken and cannot run.
func (c *call) passOn(list []string) {
	for _, name := range list {
		c.wakeNext(name)
	}
}

// block moves a job aside until the resource that it needs is free, at most for a minute.
func (c *call) block(id jobs.ID, j Job, t *task, b blocked) {
	c.appoint(id, max(min(t.Expiry.Add(j.Later), c.now.Add(minute)), c.now.Add(minute/60)))
	if b.fresh || j.State == "" {
		c.unqueue(id)
	}
	switch j.State {
	case jobs.Retry, jobs.Waiting, jobs.Deferred, jobs.Queued:
		c.change(id, func(j *Job) { j.State = jobs.Blocked })
	}
	waits, name, until := c.Semaphores.Waits, b.lacks, c.raw.Add(day)
	if strings.HasPrefix(name, "host/") {
		c.flags.Waits = c.now
	} else {
		c.write(func() {
			waits.putNew(b.lacks, string(t.id), c.now)
			waits.expire(b.lacks, until)
		})
		c.sem(name).waits = true
		name += ":" + string(t.id)
	}
	c.write(func() {
		waits.putNew(name, string(id), c.now)
		waits.expire(name, until)
	})
}

// blocked is the reason why a job is moved aside.
type blocked struct {
	lacks string
	fresh bool // the job comes from queue
}

// has reports whether a task has a job on a host, in any state.
func (c *call) has(task jobs.TaskID, host string) bool {
	id := jobs.NewID(task, host)
	_, queued := c.Queue.Score(id)
	_, again := c.Again.Score(id)
	_, held := c.Held[task].Score(id)
	return c.Jobs[id] != nil || queued || again || held
}
