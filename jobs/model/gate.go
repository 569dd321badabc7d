package model

import (
	"fmt"

	"muster/jobs"
)

// gateField returns the field for the answer to a gate.
func gateField(id jobs.ID, step int) string { return fmt.Sprint(step, ":", id.Host()) }

// gate answers the gate at which a job waits, and makes the job due.
func (c *call) gate(a Turn) Turned {
	id := jobs.ID(a.Object)
	t, j := c.task(id.Task()), c.job(id)
	if t == nil || j.State == "" {
		return Turned{Status: Absent}
	}
	field := gateField(id, int(a.Number))
	before := t.Gates[field]
	there := j.State != jobs.Ended && j.Counts.Attempt > 0 && j.Step == int(a.Number)
	if before == "" {
		if !there {
			where := string(j.State)
			if j.State == jobs.Ended {
				where = string(j.End.Outcome)
			}
			return Turned{"elsewhere", where, int64(j.Step)}
		}
		kept, text := c.Tasks[t.id], c.now.String()+" "+a.Note
		c.write(func() {
			if kept.Gates == nil {
				kept.Gates = map[string]string{}
			}
			kept.Gates[field] = text
		})
		c.event("gate", id)
	}
	if there && j.State == jobs.Waiting && j.Due > c.now {
		c.move(writing, id, c.now)
		c.change(id, func(j *Job) { j.Due = c.now })
	}
	if before != "" {
		return Turned{Status: "already", Before: before}
	}
	return Turned{Status: "ok"}
}
