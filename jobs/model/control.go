package model

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"muster/jobs"
	"muster/jobs/quarantine"
)

// Ending is a call of the script end.
type Ending struct {
	Task  jobs.TaskID
	Note  string
	By    jobs.TaskID // the task that supersedes Task; empty: Task is cancelled
	Chunk int         // chunk of hosts, if Hosts is empty
	Hosts []string    // if set, only their jobs
	From  int         // skip so many hosts at the front
	Most  int         // hosts to look at; 0: all
}

// Ended is the answer of the script end.
type Ended struct {
	Status                        string
	Ended, Running, Already, Seen int
}

// End cancels a task or some of its jobs, or ends jobs that a newer task supersedes.
func (z *Zone) End(now jobs.Micros, a Ending) Ended {
	c := z.begin(now)
	if c.flags.Run == "" || c.task(a.Task) == nil {
		return Ended{Status: Absent}
	}
	t, hosts := c.task(a.Task), a.Hosts
	if len(hosts) == 0 {
		hosts = t.Chunks[a.Chunk]
		c.flag(t, a)
	}
	hosts = hosts[min(a.From, len(hosts)):]
	hosts = hosts[:min(cmp.Or(a.Most, len(hosts)), len(hosts))]
	out := Ended{Status: "ok", Seen: len(hosts)}
	for _, host := range hosts {
		id := jobs.NewID(a.Task, host)
		j := c.job(id)
		_, queued := c.Queue.Score(id)
		_, again := c.Again.Score(id)
		_, held := c.Held[a.Task].Score(id)
		switch {
		case j.State == jobs.Ended || (j.State == "" && !queued && !again && !held):
			out.Already++
		case a.By != "" && j.Started != 0:
			out.Running++
		case a.By != "" && !c.has(a.By, host):
		case j.State == jobs.Running || j.State == jobs.Lost:
			out.Running++
			if len(a.Hosts) > 0 && j.Cancel == "" {
				c.change(id, func(j *Job) { j.Cancel = a.Note })
				c.event("cancel", id)
			}
		default:
			c.close(id, j, a)
			out.Ended++
		}
	}
	t.reopen()
	c.flush()
	return out
}

// flag sets the flag that takes obey at once.
func (c *call) flag(t *task, a Ending) {
	kept := c.Tasks[t.id]
	switch {
	case t.Done >= t.Head.Total:
	case a.By != "" && t.By != a.By:
		c.write(func() { kept.By = a.By })
		c.event("supersede", t.id)
	case a.By == "" && t.Cancel == "":
		c.write(func() { kept.Cancel = a.Note })
		c.event("cancel", t.id)
	}
}

// close ends a job that waits.
func (c *call) close(id jobs.ID, j Job, a Ending) {
	o, d := End{Outcome: jobs.Superseded, Error: a.Note}, sure
	if a.By == "" {
		o, d = cancelled(j, a.Note)
	}
	c.finish(id, j, o, d)
	c.unqueue(id)
	c.after(func() { c.Held.remove(a.Task, id) })
}

// tried matches the record of a job whose step has failed and will be retried.
var tried = regexp.MustCompile(`"again":\d`)

// cancelled returns the end of a cancelled job: it says whether a part of it has run, or may have,
// and how its host is.
func cancelled(j Job, note string) (End, doubt) {
	switch {
	case strings.Contains(j.Saved, jobs.MayHaveRun):
		return End{Outcome: jobs.Unknown, Error: "cancelled when a step may have run: " + note}, acting
	case j.State == jobs.Verify:
		return End{Outcome: jobs.Unknown, Error: "cancelled before the host was back: " + note}, sure
	case strings.Contains(j.Saved, jobs.Undoing):
		o := End{Outcome: jobs.Cancelled, Error: "cancelled in the middle of its on_fail: " + note}
		switch {
		case strings.Contains(j.Saved, jobs.KeptBefore):
			return o, acting
		case strings.Contains(j.Saved, jobs.Disturbed):
			return o, halfWay
		}
		return o, sure
	case tried.MatchString(j.Saved):
		note = fmt.Sprintf("cancelled between two tries of step %d: %s", j.Step+1, note)
	case j.Step > 0:
		note = fmt.Sprintf("cancelled after step %d: %s", j.Step, note)
	}
	return End{Outcome: jobs.Cancelled, Error: note}, sure
}

// Turn is a call of the script control.
type Turn struct {
	Verb, Object, Note string
	Number             int64 // limit, id of an order, or since when; less than 0: none
}

// Turned is the answer of the script control.
type Turned struct {
	Status, Before string
	Number         int64
}

const wakesMax = 100 // waiters that are woken in one call

// Control turns one of the switches of the zone.
func (z *Zone) Control(now jobs.Micros, a Turn) Turned {
	c := z.begin(now)
	if c.flags.Run == "" {
		return Turned{Status: Absent}
	}
	out := c.turn(a)
	c.flush()
	return out
}

func (c *call) turn(a Turn) Turned {
	already := Turned{Status: "already"}
	switch a.Verb {
	case "pause-zone":
		return c.off(&c.Zone.Flags.Paused, a)
	case "resume-zone":
		return c.on(&c.Zone.Flags.Paused, a, a.Number)
	case "halt":
		if a.Number <= c.flags.Lifted {
			return Turned{Status: Later}
		}
		return c.off(&c.Zone.Flags.Halted, a)
	case "lift":
		c.write(func() { c.Flags.Lifted = max(c.Flags.Lifted, a.Number) })
		return c.on(&c.Zone.Flags.Halted, a, a.Number)
	case "pause-customer", "resume-customer":
		return c.customer(a)
	case "shift":
		return c.shift(a)
	case "limit":
		return c.limit(a)
	case "guard":
		return giveGuard(c, c.task(jobs.TaskID(a.Object)))
	case "clear":
		return c.clear(a)
	case "gate":
		return c.gate(a)
	case "release":
		return c.giveHostBack(a)
	case quarantine.SetAside, quarantine.Release:
		return setAside(c, a)
	case "thaw":
		f := c.flags.Freeze
		if !c.flags.shut(c.now) {
			return already
		}
		// A child that asks for the zone in this epoch later must not freeze it again.
		c.write(func() {
			c.Flags.Freeze.Until, c.Flags.Freeze.Strict, c.Flags.Born, c.Flags.Owed = 0, false, 0, ""
		})
		c.event("thaw", "zone")
		return Turned{"ok", f.Why, int64(f.Until)}
	}
	return already
}

func (c *call) off(s *Switch, a Turn) Turned {
	if s.Note != "" {
		if last, again := s.again(a.Number); again {
			c.write(func() { *s = last })
		}
		return Turned{"already", s.Note, int64(s.At)}
	}
	c.write(func() { *s = Switch{a.Note, c.now, max(a.Number, 0)} })
	c.event(a.Verb, "zone")
	return Turned{"ok", "", int64(c.now)}
}

func (c *call) on(s *Switch, a Turn, upTo int64) Turned {
	before := *s
	switch {
	case before.Note == "":
		return Turned{Status: "already"}
	case before.later(upTo):
		return Turned{Status: Later, Before: before.Note}
	}
	c.write(func() { *s = Switch{} })
	c.event(a.Verb, "zone")
	return Turned{"ok", before.Note, int64(before.At)}
}

func (c *call) customer(a Turn) Turned {
	before, paused := c.Customers[a.Object]
	switch pause := a.Verb == "pause-customer"; {
	case pause && paused:
		if last, again := before.again(a.Number); again {
			c.write(func() { c.Customers[a.Object] = last })
		}
		return Turned{"already", before.Note, 0}
	case pause:
		c.write(func() { c.Customers[a.Object] = Switch{a.Note, c.now, max(a.Number, 0)} })
		c.event(a.Verb, a.Object)
		return Turned{"ok", "", int64(c.now)}
	case !paused:
		return Turned{Status: "already"}
	case before.later(a.Number):
		return Turned{Status: Later, Before: before.Note}
	}
	c.write(func() { delete(c.Customers, a.Object) })
	c.event(a.Verb, a.Object)
	return Turned{"ok", before.Note, int64(before.At)}
}

// shift lets the jobs of a task expire later, by the length of a pause.
func (c *call) shift(a Turn) Turned {
	t := c.task(jobs.TaskID(a.Object))
	since := jobs.Micros(a.Number)
	switch {
	case t == nil:
		return Turned{Status: Absent}
	case t.Shifted == since, t.Committed == 0, t.Done >= t.Head.Total:
		return Turned{Status: "already"}
	}
	lasted := max(c.now.Sub(max(since, t.Committed)), 0)
	kept, expiry := c.Tasks[t.id], t.Expiry.Add(lasted)
	c.write(func() { kept.Shifted, kept.Expiry = since, expiry })
	return Turned{"ok", "", int64(lasted / time.Microsecond)}
}

func (c *call) limit(a Turn) Turned {
	before, had := c.Semaphores.Max[a.Object]
	text := ""
	if had {
		text = jobs.Micros(before).String()
	}
	s := c.sem(a.Object)
	switch {
	case a.Number < 0 && !had, had && a.Number == int64(before):
		return Turned{"already", text, 0}
	case a.Number < 0:
		s.max = math.MaxInt
		c.write(func() { delete(c.Semaphores.Max, a.Object) })
	default:
		s.max = int(a.Number)
		c.write(func() { c.Semaphores.Max[a.Object] = s.max })
	}
	c.event("limit", a.Object)
	c.wakeMany(a.Object)
	return Turned{"ok", text, 0}
}

func (c *call) clear(a Turn) Turned {
	name := group + a.Object
	why := c.Semaphores.Holders[name][frozen]
	if why == "" {
		return Turned{Status: "already"}
	}
	if since := frozenSince(why); a.Number > 0 && a.Number != since {
		return Turned{"other", why, since}
	}
	c.leave(frozen, name)
	c.event("clear", a.Object)
	c.wakeMany(name)
	return Turned{"ok", why, 0}
}

// giveHostBack releases a host whose job has ended, or is forgotten with its task.
func (c *call) giveHostBack(a Turn) Turned {
	l := c.locked(a.Object)
	token := int64(l.Token)
	switch state := c.job(l.Job).State; {
	case l == Lock{}:
		return Turned{Status: "already"}
	case token != a.Number:
		return Turned{"other", string(l.Job), token}
	case state != jobs.Ended && c.task(l.Job.Task()) != nil:
		return Turned{"busy", fmt.Sprintf("%s %s", l.Job, cmp.Or(state, jobs.Queued)), token}
	}
	c.do(freeing, func() { delete(c.Locks, a.Object) })
	c.locks[a.Object] = Lock{}
	if c.flags.Waits != 0 {
		c.wakeFor(a.Object)
	}
	c.event("release", a.Object)
	return Turned{"ok", string(l.Job), token}
}

// giveGuard lets the jobs of a task need what their hosts' traits name.
func giveGuard(c *call, t *task) Turned {
	switch {
	case t == nil:
		return Turned{Status: Absent}
	case t.Head.Guarded:
		return Turned{Status: "already"}
	}
	c.write(func() { c.Tasks[t.id].Head.Guarded = true })
	return Turned{Status: "ok"}
}

// setAside puts a host into quarantine, or releases it.
func setAside(c *call, a Turn) Turned {
	before, changed := c.Semaphores.Aside.Order(a.Verb, a.Object, c.now.String()+" - "+a.Note)
	if !changed {
		return Turned{Status: "already", Before: before}
	}
	if a.Verb == quarantine.Release && c.flags.Waits != 0 {
		c.wakeFor(a.Object)
	}
	c.event(a.Verb, a.Object)
	return Turned{Status: "ok", Before: before}
}

// frozenSince returns the instant in "job instant why", or 0 if there is none.
func frozenSince(why string) int64 {
	parts := strings.SplitN(why, " ", 3)
	if len(parts) < 2 {
		return 0
	}
	at, err := jobs.ParseMicros(parts[1])
	if err != nil {
		return 0
	}
	return int64(at)
}

func (c *call) wakeMany(name string) {
	for range wakesMax {
		if !c.wakeNext(name) {
			return
		}
	}
}
