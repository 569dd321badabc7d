package model

import (
	"cmp"
	"slices"

	"muster/jobs"
)

// Recall is a call of the script recall: history's knowledge of jobs that Redis may have
// forgotten.
type Recall struct {
	Verb string // keep, jobs or done
	Owed string // as the caller read it; for keep: why history must be asked; empty: no need
	Task jobs.TaskID
	Jobs []Past
	// Unheard are jobs with events in the zone that history has not read.
	Unheard []jobs.ID
}

// Past is a job as history knows it.
type Past struct {
	Host    string
	End     End // without an outcome: the attempt began, and its end is not known
	Attempt int
	Node    string
	Began   jobs.Micros
}

// Recalled is the answer of the script recall.
type Recalled struct {
	Status      string
	Ended, Lost int
}

// Recall restores jobs that only history knows.
func (z *Zone) Recall(now jobs.Micros, a Recall) Recalled {
	c := z.begin(now)
	f, out := c.flags, Recalled{Status: "ok"}
	switch {
	case f.Run == "":
		return Recalled{Status: Absent}
	case a.Verb == "keep":
		c.keepHistory(a.Owed)
	case f.Owed != a.Owed:
		return Recalled{Status: "stale"}
	case a.Verb == "done":
		c.write(func() { c.Flags.Owed = "" })
		c.event("recalled", "zone")
	case c.task(a.Task) != nil && c.behind(a):
		return Recalled{Status: "behind"}
	case c.task(a.Task) != nil:
		for _, p := range a.Jobs {
			c.recall(c.task(a.Task), p, &out)
		}
		c.task(a.Task).reopen()
	}
	c.flush()
	return out
}

func (c *call) keepHistory(why string) {
	c.write(func() { c.Flags.Recorded = true })
	if why == "" || c.flags.Owed != "" {
		return
	}
	c.write(func() { c.Flags.Owed = c.now.String() + " " + why })
	c.event("freeze", "zone")
}

// behind reports whether a job without a known end in history has an event that history has not
// read.
func (c *call) behind(a Recall) bool {
	return slices.ContainsFunc(a.Jobs, func(p Past) bool {
		id := jobs.NewID(a.Task, p.Host)
		return p.End.Outcome == "" && slices.Contains(a.Unheard, id) && c.forgotten(id, p)
	})
}

// forgotten reports whether history knows more about a job than the zone.
func (c *call) forgotten(id jobs.ID, p Past) bool {
	j := c.job(id)
	_, queued := c.Queue.Score(id)
	_, again := c.Again.Score(id)
	_, held := c.Held[id.Task()].Score(id)
	switch {
	case j.State == jobs.Ended || (j.State == "" && !queued && !again && !held):
		return false
	case p.End.Outcome != "":
		return true
	}
	return j.State != jobs.Running && j.State != jobs.Lost && j.Counts.Attempt < p.Attempt
}

// recall restores one job.
func (c *call) recall(t *task, p Past, out *Recalled) {
	id := jobs.NewID(t.id, p.Host)
	j := c.job(id)
	switch {
	case !c.forgotten(id, p):
	case p.End.Outcome == "" && t.Committed != 0:
		c.began(id, j, t, p)
		out.Lost++
	default:
		if p.End.Outcome == "" {
			p.End = End{At: c.now, Outcome: jobs.Unknown,
				Error: "it began, and Redis had forgotten its task before that was committed"}
		}
		j.Counts.Attempt = max(j.Counts.Attempt, p.Attempt)
		j.Node, j.Token = p.Node, cmp.Or(j.Token, jobs.Token(c.flags.Epoch))
		j.Started = cmp.Or(p.Began, j.Started)
		c.change(id, func(kept *Job) {
			kept.Counts.Attempt, kept.Node, kept.Token = j.Counts.Attempt, j.Node, j.Token
			kept.Started = j.Started
		})
		c.finish(id, j, p.End, sure)
		c.unqueue(id)
		c.after(func() { c.Held.remove(t.id, id) })
		out.Ended++
	}
}

// began restores a job with an attempt that Redis had forgotten.
func (c *call) began(id jobs.ID, j Job, t *task, p Past) {
	c.appoint(id, c.now)
	c.write(func() { c.Queue.Remove(id) })
	c.write(func() { c.Held.remove(t.id, id) })
	c.change(id, func(kept *Job) {
		kept.State, kept.Was, kept.Node = jobs.Lost, "", p.Node
		kept.Token = j.Token // a child that has the job and reports later has a newer one
		kept.Counts.Attempt = p.Attempt
		kept.Started = cmp.Or(j.Started, p.Began, c.now)
		kept.Due = cmp.Or(j.Due, t.Due)
	})
	c.started(t)
	if t.Head.Guarded {
		c.acquire(id, c.needs(id, t), j.Token)
		c.doubt(id, t)
	}
	c.event("lost", id)
}
