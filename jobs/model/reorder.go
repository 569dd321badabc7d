package model

import (
	"fmt"
	"slices"
	"time"

	"muster/jobs"
)

// Place is a job of the queue with its score.
type Place struct {
	Job jobs.ID
	At  jobs.Micros
}

// Walk identifies the calls of one reordering.
type Walk struct {
	Token string
	Lasts time.Duration // duration of the lock, from each call on
	At    jobs.Micros   // when the lock was taken
}

// Lost is the answer to a caller that has lost the lock.
const Lost = "lost"

// Lock begins a reordering. The status is go, busy or calm; oldest is the first score; changes
// counts the tasks that came or ended so far.
func (z *Zone) Lock(now jobs.Micros, w Walk) (status string, oldest jobs.Micros, changes int) {
	c := z.begin(now)
	_, first, _ := z.Queue.First()
	last := jobs.Micros(-1)
	for _, at := range z.Queue.All() {
		if at <= c.now {
			last = at
		}
	}
	r := &z.Reordering
	change := last >= 0 && (last >= r.Walked || r.Changes != r.Seen)
	switch f := c.flags; {
	case f.Run == "":
		return Absent, 0, 0
	case r.Until.Sub(now) >= time.Millisecond:
		return "busy", 0, 0
	case !change, r.Open.Len() < 2, f.Halted.Note != "", f.Paused.Note != "", f.shut(c.now):
		return "calm", 0, 0
	}
	if r.Lock == "" {
		r.Lock, r.Until = w.Token, now.Add(w.Lasts)
	}
	c.event("reorder", "zone")
	c.flush()
	return "go", first, r.Changes
}

// walking renews the lock of a walk. It returns nil and a status if the walk is over.
func (z *Zone) walking(now jobs.Micros, w Walk) (*call, string) {
	c := z.begin(now)
	switch r := &z.Reordering; {
	case c.flags.Run == "":
		return nil, Absent
	case r.Lock != w.Token:
		return nil, Lost
	}
	z.Reordering.Until = now.Add(w.Lasts)
	return c, "ok"
}

// due lists the jobs that were due when the lock was taken, from the back.
func (z *Zone) due(w Walk) (list []Place) {
	for id, at := range z.Queue.All() {
		if at <= w.At {
			list = append(list, Place{id, at})
		}
	}
	slices.Reverse(list)
	return list
}

// Page counts the jobs of a page by task. The page begins at a distance from the back.
func (z *Zone) Page(now jobs.Micros, w Walk, from, size int) (status string, n int,
	count map[jobs.TaskID]int) {
	c, status := z.walking(now, w)
	if c == nil {
		return status, 0, nil
	}
	due := z.due(w)
	due = due[min(from, len(due)):min(from+size, len(due))]
	count = map[jobs.TaskID]int{}
	for _, p := range due {
		count[p.Job.Task()]++
	}
	return status, len(due), count
}

// Chunk is a part of a reordering.
type Chunk struct {
	Walk
	Oldest jobs.Micros // score at the lock
	Left   int         // jobs that stay where they are
	Size   int         // jobs to read
	Old    []Place     // as they were read
	New    []jobs.Micros
}

// Reordered is the result of a chunk.
type Reordered struct {
	Status      string
	Moved, Left int
	Rest        []Place // to continue with
}

// Reorder gives new scores to jobs that still have their old ones.
func (z *Zone) Reorder(now jobs.Micros, a Chunk) Reordered {
	c, status := z.walking(now, a.Walk)
	out := Reordered{Status: status}
	if c == nil {
		return out
	}
	before := z.due(a.Walk)
	for i, p := range a.Old {
		at, queued := z.Queue.Score(p.Job)
		switch j := z.Jobs[p.Job]; {
		case queued && at == p.At:
			c.write(func() { z.Queue.Put(p.Job, a.New[i]) })
			out.Moved++
		case queued:
			if at >= a.Oldest && at <= a.At {
				out.Left++
			}
		case j != nil && j.Counts.Attempt > 0:
			out.Status = "met"
		}
		if out.Status == "met" {
			break
		}
	}
	if out.Status == "ok" { // read before the moves, so jobs that leave are included
		from := min(a.Left+out.Left+out.Moved, len(before))
		out.Rest = before[from:min(from+a.Size, len(before))]
		for n := len(out.Rest); n > 0 && out.Rest[n-1].At < a.Oldest; n-- {
			out.Rest = out.Rest[:n-1]
		}
	}
	c.flush()
	return out
}

// Done is the call that ends a reordering.
type Done struct {
	Walk
	Moved    int
	Cooldown time.Duration // at least
	Who, How string        // why it ended: done, met, stopped
	Changes  int           // at the lock
}

// Done ends a reordering. The lock becomes the cool-down.
func (z *Zone) Done(now jobs.Micros, a Done) (status string, wait time.Duration) {
	c, status := z.walking(now, a.Walk)
	if c == nil {
		return status, 0
	}
	took := c.now.Sub(a.At)
	wait = max(a.Cooldown, 10*took)
	r := &z.Reordering
	r.Lock, r.Until = "cool", now.Add(millis(wait))
	if a.Moved > 0 {
		r.Last = fmt.Sprintf(`%s {"node":%q,"moved":%d,"took":%d,"end":%q}`, c.now, a.Who, a.Moved,
			took/time.Microsecond, a.How)
	}
	if a.How != "stopped" {
		r.Walked, r.Seen = a.At, a.Changes
	}
	c.event("reordered", "zone")
	c.flush()
	return status, wait
}
