package model

import "muster/jobs"

// Appoint is a call of the script appoint: new appointments for waiting jobs of a task.
type Appoint struct {
	Task  jobs.TaskID
	Moves []jobs.Move
}

// Appoint moves the appointments of jobs that still wait for them, and counts these jobs.
func (z *Zone) Appoint(now jobs.Micros, a Appoint) (string, int) {
	c := z.begin(now)
	t := c.task(a.Task)
	if c.flags.Run == "" || t == nil {
		return Absent, 0
	}
	moved := 0
	for _, move := range a.Moves {
		id := jobs.NewID(a.Task, move.Host)
		j := c.job(id)
		score, again := c.Again.Score(id)
		held := false
		if !again {
			score, held = c.Held[a.Task].Score(id)
		}
		waits := j.State == jobs.Deferred || j.State == jobs.Queued && j.Started == 0
		if !waits || !(again || held) || score != move.Was {
			continue
		}
		if again {
			c.move(writing, id, move.To)
		} else {
			c.write(func() { c.Held.put(a.Task, id, move.To) })
		}
		c.change(id, func(j *Job) { j.Due, j.Later = move.To, max(move.To.Sub(t.Due), 0) })
		c.event("appoint", id)
		moved++
	}
	c.flush()
	return "ok", moved
}
