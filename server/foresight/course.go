package foresight

import (
	"fmt"
	"strings"
	"time"

	"muster/internal/wording"
	"muster/jobs"
	forecast "muster/jobs/plan"
)

// wavesLag is the mean time in which a server notices that the open waves are over, and opens the
// next one: it looks once a second.
const wavesLag = time.Second

// A course is the rest of a task in the queue: its jobs that have not ended, by waves. A task
// without waves has one wave, which is open.
type course struct {
	task   jobs.TaskInfo
	sizes  []int // jobs of the open waves, and of each later one
	jobs   int   // of the task that were looked at
	ends   []int // the number of jobs up to the end of each wave
	opened int   // waves
}

func newCourse(t jobs.TaskInfo) *course {
	c := &course{task: t, opened: 1, ends: []int{t.Total}}
	if r := t.Rollout; r != nil && len(r.Waves) > 0 {
		c.ends, c.opened = nil, max(r.Wave, 1)
		sum := 0
		for _, n := range r.Waves {
			sum += n
			c.ends = append(c.ends, sum)
		}
	}
	c.sizes = make([]int, max(len(c.ends)-c.opened, 0)+1)
	return c
}

// open returns the jobs that have not ended of the next ones of the task, which are in the order of
// their waves.
func (c *course) open(list []jobs.JobInfo) []jobs.JobInfo {
	var out []jobs.JobInfo
	for _, j := range list {
		wave := 0
		for wave < len(c.ends)-1 && c.jobs >= c.ends[wave] {
			wave++
		}
		c.jobs++
		if j.State == jobs.Ended {
			continue
		}
		c.sizes[min(max(wave-c.opened+1, 0), len(c.sizes)-1)]++
		out = append(out, j)
	}
	return out
}

// later returns how many jobs wait for their wave.
func (c *course) later() (n int) {
	for _, size := range c.sizes[1:] {
		n += size
	}
	return n
}

// waiting returns how many jobs have not ended.
func (c *course) waiting() int { return c.sizes[0] + c.later() }

// stops reports whether the next wave will not open, because hosts failed and none may.
func (c *course) stops() bool {
	r := c.task.Rollout
	return r != nil && r.MaxFailed == nil && r.Failed > r.Accepted && !r.Pass
}

// goesOn tells the forecast of a task when its next waves open.
func (c *course) goesOn(t *forecast.Task, now time.Time) {
	if len(c.sizes) == 1 || c.later() == 0 {
		return
	}
	if c.stops() {
		t.Jobs = t.Jobs[:c.sizes[0]]
		return
	}
	r := c.task.Rollout
	t.Waves, t.Soak = c.sizes, r.Soak+wavesLag
	for len(t.Waves) > 0 && t.Waves[0] == 0 { // the open waves are over, or a wave was cancelled
		t.Waves = t.Waves[1:]
	}
	if c.sizes[0] > 0 {
		return
	}
	opens := now.Add(t.Soak)
	switch {
	case r.Pass:
		opens = now.Add(wavesLag / 2)
	case !r.Over.IsZero():
		opens = r.Over.Add(r.Soak + wavesLag/2)
	}
	for i := range t.Jobs[:t.Waves[0]] {
		if t.Jobs[i].Due.Before(opens) {
			t.Jobs[i].Due = opens
		}
	}
}

// rollNotes holds the tasks of the queue about whose waves a forecast assumes something.
type rollNotes struct{ gated, checked, stopping []string }

// note adds a task that the caller sees.
func (w *foretelling) note(c *course) {
	r := c.task.Rollout
	if c.later() == 0 {
		return
	}
	id := string(c.task.Task)
	if c.stops() {
		w.rolls.stopping = append(w.rolls.stopping, id)
		return
	}
	if r.Gate {
		w.rolls.gated = append(w.rolls.gated, id)
	}
	if r.Health != "" {
		w.rolls.checked = append(w.rolls.checked, id)
	}
}

// words returns these assumptions for people.
func (n rollNotes) words() (words []string) {
	for _, one := range []struct {
		tasks []string
		text  string
	}{{n.gated, "each wave is taken to be opened by a person at once"},
		{n.checked, "health checks after waves are taken to need no time"},
		{n.stopping, "hosts failed, so no further wave is taken to open"}} {
		if len(one.tasks) > 0 {
			words = append(words, fmt.Sprintf("open rollouts (%s): %s",
				wording.ClipList(strings.Join(one.tasks, ", ")), one.text))
		}
	}
	return words
}
