package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"muster/jobs"
)

// Hello is a call of the script epoch: the first of every connection.
type Hello struct {
	Run     string      // id of the Redis server
	Knew    jobs.Micros // epoch that the caller knows; 0: none
	Who     string      // "node/slot" of a child
	Longest time.Duration
	Jumped  time.Duration // jump of TIME since the caller last saw it; 0: none
	Since   jobs.Micros   // when that was, by the present clock
	Sent    jobs.Micros   // the stamp; 0: the caller knows no clock yet
	Jobs    []InHand
}

// InHand is a job that a child reports to have.
type InHand struct {
	Job   jobs.ID
	Token jobs.Token
	Left  time.Duration // until the lock ends
}

// Welcome is the answer of the script epoch.
type Welcome struct {
	Epoch, Frozen, Now jobs.Micros
	Longest            time.Duration
}

// startedAnew is the reason to freeze a zone after a restart of Redis, which may have lost data.
const startedAnew = "Redis was started anew or replaced"

// Epoch reports whether Redis is the one that the caller knew, and restores its forgotten jobs.
func (z *Zone) Epoch(now jobs.Micros, h Hello) Welcome {
	c := z.begin(now)
	registered := maps.Clone(c.Children)
	switch f := &c.flags; {
	case f.Run == "":
		c.open(h)
		c.write(func() { c.Flags.Born = f.Epoch })
		c.event("epoch", "zone")
		if h.Knew != 0 {
			c.freeze("the zone was missing", true)
		}
	case f.Run != h.Run:
		// Children that were silent in the last epoch are not waited for in this one.
		for who, epoch := range registered {
			if epoch != f.Epoch {
				delete(registered, who)
				c.write(func() { delete(c.Children, who) })
			}
		}
		c.open(h)
		c.freeze(startedAnew, false)
		if f.Recorded {
			c.write(func() { c.Flags.Owed = c.now.String() + " " + startedAnew })
		}
	case h.Knew != 0 && h.Knew < f.Born && registered[h.Who] != f.Epoch:
		// Another caller created the zone before this one could report that it was missing.
		c.write(func() { c.Flags.Born = 0 })
		c.freeze("the zone was missing", true)
	}
	if f := &c.flags; h.Longest > f.Longest {
		f.Longest = h.Longest
		if f.Freeze.Until > c.now {
			f.Freeze.Until = max(f.Freeze.Until, c.now.Add(f.Longest))
		}
		longest, until := f.Longest, f.Freeze.Until
		c.write(func() { c.Flags.Longest, c.Flags.Freeze.Until = longest, until })
	}
	if jumped := c.flags.Jumped; h.Jumped != 0 && (jumped < h.Since || jumped > c.raw) {
		wait := max(min(c.flags.Longest, h.Jumped.Abs()), shortest)
		c.freezeFor(wait, fmt.Sprintf("TIME jumped by %.0f s", math.Floor(h.Jumped.Seconds())))
		c.write(func() { c.Flags.Jumped, c.Flags.High = c.raw, c.now })
	}
	late := h.late(c)
	for _, in := range h.Jobs {
		c.reassert(h, in, late)
	}
	if h.Who != "" {
		c.write(func() { c.Children[h.Who] = c.flags.Epoch })
		registered[h.Who] = c.flags.Epoch
	}
	c.thaw(registered)
	c.flush()
	return Welcome{c.flags.Epoch, c.flags.Freeze.Until, c.now, c.flags.Longest}
}

// open begins an epoch. Its number differs from all earlier ones, even if TIME went back.
func (c *call) open(h Hello) {
	f := &c.flags
	f.Epoch = max(c.now, f.Token+1, f.Epoch+1, h.Knew+1)
	f.Longest = max(f.Longest, h.Longest)
	f.Token = f.Epoch
	opened := *f
	c.write(func() {
		c.Flags.Run, c.Flags.Epoch, c.Flags.Longest = h.Run, opened.Epoch, opened.Longest
		c.Flags.High, c.Flags.Token = c.now, opened.Token
	})
}

// late reports whether a child made a later call in this epoch: it may have given a job back.
func (h Hello) late(c *call) bool {
	i := strings.LastIndexByte(h.Who, '/')
	if i < 0 || h.Sent == 0 || c.Children[h.Who] != c.flags.Epoch {
		return false
	}
	before, found := c.Zone.Hold[h.Who[:i]][h.Who[i+1:]]
	return found && c.old(h.Sent, before)
}

// reassert keeps the lock of a job in hand, and restores forgotten data.
func (c *call) reassert(h Hello, in InHand, late bool) {
	t, j := c.task(in.Job.Task()), c.job(in.Job)
	lock := c.locked(in.Job.Host())
	// A caller that knows this epoch has lost nothing in it: a job that is not there has ended.
	forgot := h.Knew != c.flags.Epoch && j.State != jobs.Ended && j.Token < in.Token &&
		!(late && jobs.Micros(in.Token) > c.flags.Epoch)
	runs := j.Token == in.Token && j.State == jobs.Running
	short := !late && h.Knew != c.flags.Epoch && lock.holds(in.Job, in.Token) &&
		c.left(in.Job.Host()) < in.Left
	keep := forgot || (runs && (lock == (Lock{}) || short))
	if t == nil { // the task was forgotten, but a worker acts on the host
		keep = forgot && lock.Token < in.Token
	}
	if keep {
		c.lock(writing, Lock{Token: in.Token, Job: in.Job}, max(in.Left, time.Microsecond))
	}
	if !keep || !forgot {
		return
	}
	c.flags.Token = max(c.flags.Token, jobs.Micros(in.Token))
	token := c.flags.Token
	c.write(func() { c.Flags.Token = token })
	if t == nil {
		return
	}
	c.appoint(in.Job, c.now.Add(in.Left+lockDelay(t.Head.Spec.Timeout)))
	c.write(func() { c.Queue.Remove(in.Job) })
	c.write(func() { c.Held.remove(t.id, in.Job) })
	c.change(in.Job, func(kept *Job) {
		kept.State, kept.Token, kept.Node = jobs.Running, in.Token, h.Who
		kept.Due, kept.Counts.Attempt = cmp.Or(j.Due, t.Due), j.Counts.Attempt+1
		if j.State != jobs.Running {
			kept.Was = was(j, false)
		}
		if kept.Started == 0 {
			kept.Started = c.now
		}
	})
	if j.State != jobs.Running {
		t.running++
	}
	c.started(t)
	if t.Head.Guarded {
		c.acquire(in.Job, c.needs(in.Job, t), in.Token)
		c.doubt(in.Job, t)
	}
	c.event("reassert", in.Job)
}

// freeze stops all takes until the longest lock has ended or, unless it is strict, until every
// registered child has reported its jobs.
func (c *call) freeze(why string, strict bool) {
	f := &c.flags.Freeze
	longest := c.flags.Longest
	f.Strict = strict || (f.Until > c.now && f.Strict)
	f.Until = max(f.Until, c.now.Add(max(longest, shortest)))
	f.Soonest, f.Why = c.now.Add(min(longest, shortest)), why
	c.frozen()
}

// freezeFor stops all takes for so long, whatever children report. A freeze in force stays, unless
// its end is later than any freeze may last.
func (c *call) freezeFor(wait time.Duration, why string) {
	f := &c.flags.Freeze
	on := min(f.Until, c.now.Add(max(c.flags.Longest, shortest)))
	f.Until, f.Soonest = max(on, c.now.Add(wait)), min(f.Soonest, c.now)
	f.Strict, f.Why = true, why
	c.frozen()
}

func (c *call) frozen() {
	frozen := c.flags.Freeze
	c.write(func() { c.Flags.Freeze = frozen })
	c.event("freeze", "zone")
}

// thaw ends a freeze once every registered child has called Epoch since.
func (c *call) thaw(registered map[string]jobs.Micros) {
	f := &c.flags.Freeze
	if f.Until <= max(c.now, f.Soonest) || f.Strict {
		return
	}
	for _, epoch := range registered {
		if epoch != c.flags.Epoch {
			return
		}
	}
	until := min(f.Until, max(f.Soonest, c.now))
	f.Until = until
	c.write(func() { c.Flags.Freeze.Until = until })
	c.event("thaw", "zone")
}

// Loss is a call of the script lose.
type Loss struct {
	jobs.Loss
	Sent jobs.Micros // the stamp
}

const (
	poison   = 3      // crashes that end a job
	slotLost = "lost" // status of a slot whose child is gone
)

// Lose reports that a child is gone, and returns the jobs that were lost with it. The call is
// stale if a later call of the slot was answered.
func (z *Zone) Lose(now jobs.Micros, a Loss) (lost []jobs.ID, stale bool) {
	c := z.begin(now)
	if c.flags.Run == "" {
		return nil, false
	}
	if before, ok := z.Hold[a.Node][a.Slot]; ok {
		if c.old(a.Sent, before) {
			return nil, true
		}
		for _, id := range sorted(before.Jobs) {
			if c.lose(id, before.Jobs[id], a.Why) {
				lost = append(lost, id)
			}
		}
	}
	c.write(func() {
		if c.Zone.Hold[a.Node] == nil {
			c.Zone.Hold[a.Node] = map[string]Hold{}
		}
		// A delayed call of that child must not take jobs for the empty slot.
		c.Zone.Hold[a.Node][a.Slot] = Hold{Request: "-", Sent: a.Sent, Status: slotLost,
			Jobs: map[jobs.ID]jobs.Token{}}
	})
	who, registered := a.Node+"/"+a.Slot, maps.Clone(c.Children)
	if _, ok := registered[who]; ok {
		c.write(func() { delete(c.Children, who) })
		delete(registered, who)
	}
	c.thaw(registered)
	c.flush()
	return lost, false
}

func (c *call) lose(id jobs.ID, token jobs.Token, why string) bool {
	j, t := c.job(id), c.task(id.Task())
	if t == nil || j.Token != token || j.State != jobs.Running {
		return false
	}
	c.event("lost", id)
	c.change(id, func(j *Job) { j.Counts.Crashes++ })
	if j.Counts.Crashes+1 < poison {
		c.change(id, func(j *Job) { j.State = jobs.Lost })
		c.appoint(id, c.now)
		t.running--
		return true
	}
	// Only a repeatable step is certain to have been begun by all three attempts.
	o := End{Outcome: jobs.Unknown, Class: jobs.ClassOperator,
		Error: fmt.Sprintf("took %d workers with it, the last: %s", poison, why)}
	if t.Head.Spec.Repeatable {
		o.Outcome = jobs.Failed
	}
	c.finish(id, j, o, acting)
	return true
}
