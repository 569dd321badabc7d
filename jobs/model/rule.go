package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"muster/jobs"
)

// Rolling is the progress of a task with a rule.
type Rolling struct {
	Allowed  int // allowed failures; -1: any number
	Stopped  Switch
	Since    jobs.Micros // when a person last let it continue
	Fails    []string    // the last failures: "µs:host"
	Accepted int         // failures before the last wave opened
	Wave     int         // the last open one; 0: there are no waves
	Over     jobs.Micros // when the open waves were known to have ended
	Pass     int         // wave that a person lets open
	Checks   string      // task that checks the hosts of the open waves
}

// put sets the values of a submit.
func (g *Rolling) put(r *jobs.Rollout) {
	if r != nil && r.MaxFailed != nil {
		g.Allowed = *r.MaxFailed
	}
	if r != nil && len(r.Waves) > 0 {
		g.Wave = 1
	}
}

const (
	rule      = "rule:"
	failsKept = 10
)

func ruleOf(id jobs.TaskID) string { return rule + string(id) }

func (t *task) rule() *jobs.Rollout { return t.Head.Spec.Rollout }

// bad returns the number of failed jobs, with those of this call.
func (t *task) bad() int {
	n := t.judged
	for o, k := range t.Outcomes {
		if o.Fails(t.rule().UnreachableOK) {
			n += k
		}
	}
	return n
}

// places returns how many jobs may have begun at a time.
func (t *task) places() int {
	if t.Rolling.Allowed < 0 {
		return math.MaxInt
	}
	return t.Rolling.Allowed + 1 - t.bad()
}

// judge counts the end of a job, and stops the task if that breaks its rule.
func (c *call) judge(id jobs.ID, t *task, o End) {
	r := t.rule()
	if r == nil || !o.Outcome.Fails(r.UnreachableOK) {
		return
	}
	t.judged++
	c.sem(ruleOf(t.id)).max = t.places()
	fails := append(append([]string{}, t.Fails...), fmt.Sprintf("%s:%s", c.now, id.Host()))
	fails = fails[max(len(fails)-max(failsKept, r.Breaker.Failures), 0):]
	t.Fails = fails
	kept := c.Tasks[t.id]
	c.write(func() { kept.Fails = fails })
	if why := c.broke(t); t.Stopped.Note == "" && why != "" {
		c.stopTask(t, why)
	}
}

// broke explains which part of a rule is broken; empty if none is.
func (c *call) broke(t *task) string {
	names, b := names(t), t.rule().Breaker
	if allowed := t.Rolling.Allowed; allowed >= 0 && t.bad() > allowed {
		return fmt.Sprintf("max-failed %d of %d: %d failed: %s", allowed, t.Head.Total, t.bad(), names)
	}
	if b.Failures == 0 || len(t.Fails) < b.Failures {
		return ""
	}
	text, _, _ := strings.Cut(t.Fails[len(t.Fails)-b.Failures], ":")
	n, _ := strconv.ParseInt(text, 10, 64)
	at := jobs.Micros(n)
	if at <= t.Since || at <= c.now.Add(-b.Within) {
		return ""
	}
	return fmt.Sprintf("breaker %d/%s: %d failed in %.0f s: %s", b.Failures, b.Within, b.Failures,
		math.Ceil(c.now.Sub(at).Seconds()), names)
}

func names(t *task) string {
	var list []string
	for _, one := range t.Fails {
		_, host, _ := strings.Cut(one, ":")
		list = append(list, host)
	}
	text := strings.Join(list, ",")
	if t.bad() > len(list) {
		text += ",…"
	}
	return text
}

func (c *call) stopTask(t *task, why string) {
	t.Stopped = Switch{Note: why, At: c.now}
	kept := c.Tasks[t.id]
	c.write(func() { kept.Stopped = Switch{Note: why, At: c.now} })
	c.event("stop", t.id)
}

// stands reports whether a job must not begin because its task was stopped.
func (c *call) stands(id jobs.ID, t *task) bool {
	return t.rule() != nil && t.Stopped.Note != "" && !c.holds(string(id), ruleOf(t.id))
}

// Roll is a call of the script roll.
type Roll struct {
	Task   jobs.TaskID
	Verb   string
	Note   string
	Number int // go: less than 0 means none
	Text   string
}

// Rolled is the answer of the script roll.
type Rolled struct {
	Status, Text string
	Number       int64
}

// Roll carries out an order about a task with a rule.
func (z *Zone) Roll(now jobs.Micros, a Roll) Rolled {
	c := z.begin(now)
	t := c.task(a.Task)
	switch {
	case c.flags.Run == "":
		return Rolled{Status: Absent}
	case t == nil || t.rule() == nil:
		delete(z.Rollouts, a.Task)
		return Rolled{Status: Absent}
	case t.Done >= t.Head.Total:
		delete(z.Rollouts, a.Task)
		return Rolled{Status: "ended"}
	}
	out := c.roll(t, a)
	c.flush()
	return out
}

func (c *call) roll(t *task, a Roll) Rolled {
	kept := c.Tasks[t.id]
	aside := strconv.Itoa(c.Held[t.id].Len() - c.ahead(t))
	switch a.Verb {
	case "stop":
		if t.Stopped.Note != "" {
			return Rolled{"already", t.Stopped.Note, int64(t.Stopped.At)}
		}
		c.stopTask(t, a.Note)
		return Rolled{"ok", "", int64(c.now)}
	case "go":
		return c.goOn(t, a)
	case "look":
		switch {
		case t.Wave == 0:
			return Rolled{"ok", aside, 0}
		case !c.wavesEnded(t):
			return Rolled{"early", aside, 0}
		case t.Over == 0:
			t.Over = c.now
			c.write(func() { kept.Over = c.now })
			c.event("wave-over", t.id)
		}
		return Rolled{"ok", aside, int64(t.Over)}
	case "open":
		if t.Wave != 0 && t.Wave >= a.Number {
			return Rolled{"already", "", int64(t.Wave)}
		}
		if t.Wave != a.Number-1 || a.Number > len(t.rule().Waves) || !c.wavesEnded(t) || t.Over == 0 ||
			t.Stopped.Note != "" || t.Paused.Note != "" || t.Cancel != "" {
			return Rolled{"early", "", int64(t.Wave)}
		}
		expiry := c.now.Add(t.Head.Spec.Expire)
		accepted := t.bad()
		c.write(func() { kept.Accepted = accepted })
		c.write(func() { kept.Wave, kept.Due, kept.Expiry = a.Number, c.now, expiry })
		c.write(func() { kept.Over, kept.Pass, kept.Checks = 0, 0, "" })
		c.event("wave", t.id)
		return Rolled{"ok", "", int64(a.Number)}
	case "check":
		switch {
		case t.Wave == 0 || t.Wave != a.Number || t.Over == 0:
			return Rolled{Status: "early"}
		case t.Checks != "":
			return Rolled{"already", t.Checks, 0}
		}
		c.write(func() { kept.Checks = a.Text })
		return Rolled{"ok", a.Text, 0}
	}
	return Rolled{}
}

// goOn lets a stopped task continue, or opens its next wave.
func (c *call) goOn(t *task, a Roll) Rolled {
	kept, allowed := c.Tasks[t.id], t.Rolling.Allowed
	if a.Number >= 0 {
		allowed = a.Number
	}
	waits := t.Over != 0 && t.Pass == 0
	if t.Stopped.Note == "" && !waits && allowed == t.Rolling.Allowed {
		return Rolled{Status: "already"}
	}
	if allowed >= 0 && t.bad() > allowed {
		return Rolled{"spent", "", int64(t.bad())}
	}
	if t.Over != 0 {
		c.write(func() { kept.Pass = kept.Wave + 1 })
	}
	before := t.Stopped.Note
	if before != "" {
		expiry := t.Expiry.Add(c.now.Sub(t.Stopped.At))
		c.write(func() {
			kept.Due, kept.Since, kept.Expiry = max(t.Due, c.now), c.now, expiry
			kept.Stopped = Switch{}
		})
	}
	t.Stopped, t.Rolling.Allowed = Switch{}, allowed
	c.write(func() { kept.Rolling.Allowed = allowed })
	c.event("go", t.id)
	c.wakeMany(ruleOf(t.id))
	return Rolled{"ok", before, int64(t.bad())}
}

// ahead returns the number of jobs in waves that are not open.
func (c *call) ahead(t *task) (n int) {
	if t.Wave == 0 {
		return 0
	}
	for _, at := range c.Held[t.id].All() {
		if at > jobs.Micros(t.Wave) && at <= jobs.WavesMax {
			n++
		}
	}
	return n
}

// wavesEnded reports whether all jobs of the open waves have ended.
func (c *call) wavesEnded(t *task) bool {
	return t.Committed != 0 && t.Head.Total-t.Done == c.ahead(t)
}
