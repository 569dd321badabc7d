package worker

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"muster/jobs"
	"muster/scripts"
)

// This file decides about steps that look at a host until all is well: when the next probe
// is, and when it was the last one. Limits count probes, so a late queue never turns a
// host into an unreachable one.

// probing is what is kept of such a step.
type probing struct {
	// Since is when it began: of verify and reboot, since when the host is away.
	Since    jobs.Micros `json:"since,omitempty"`
	Until    jobs.Micros `json:"until,omitempty"`     // wait for, gate: when it is over; confirm: the last moment to
	Away     int         `json:"away,omitempty"`      // probes that did not reach the host
	NotReady int         `json:"not_ready,omitempty"` // probes that did, and it was not well yet
	Boot     string      `json:"boot,omitempty"`      // reboot: the boot id before
	Told     bool        `json:"told,omitempty"`      // reboot: the command ended well
	Free     jobs.Micros `json:"free,omitempty"`      // confirm: nobody can be making it any more
	Armed    bool        `json:"armed,omitempty"`     // confirm: the host said that it is
	Saying   string      `json:"saying,omitempty"`    // what the last probe said
	Gate     *asking     `json:"gate,omitempty"`      // gate: what the person is asked
}

// found is what a probe found.
type found int

const (
	away     found = iota // it was not reached
	notReady              // it says: not yet
)

// after counts a probe that found no host, or one that is not well yet, and says when the
// next one is; last: there is none.
func (c *probing) after(p scripts.Probes, what found) (delay time.Duration, last bool) {
	if what == away {
		c.Away++
		return p.Unreachable.Every, c.Away >= p.Unreachable.Probes
	}
	c.NotReady++
	// The one last probe comes behind the longest pause, in which the host may have got up.
	more := time.Duration(c.NotReady-1) * p.NotReady.More
	return p.NotReady.First + more, c.NotReady > p.NotReady.Probes
}

// unwell is about a probe that did not find the host well. why says what it found.
func (f facts) unwell(c probing, now jobs.Micros, what found, why string) jobs.Result {
	delay, last := c.after(*f.action.Probes, what)
	c.Saying = why
	if what == notReady {
		c.Since = 0
	} else {
		c.Since = cmp.Or(c.Since, now)
	}
	if !last {
		n := fmt.Sprintf("probe %d: ", c.Away+c.NotReady)
		return f.appoint(jobs.KindVerify, c, delay, n+why)
	}
	outcome, class := jobs.Failed, jobs.ClassTransient
	text := fmt.Sprintf("not ready after %d probes: %s", c.NotReady, why)
	if what == away {
		outcome, class = f.staysAway(c), jobs.ClassOperator
		text = fmt.Sprintf("not back after %d probes, away since %s: %s", c.Away,
			c.Since.Time().UTC().Truncate(time.Second).Format(time.RFC3339), why)
	}
	r := f.end(outcome, class, text)
	r.KeepLock = f.action.Disruptive || f.disruptive
	return r
}

// staysAway is how a job ends whose host is not reached any more. Unreachable says that
// nothing ever ran there. Of a host that was disturbed and is away since, nobody knows what
// has become of it.
func (f facts) staysAway(c probing) jobs.Outcome {
	switch {
	case f.halfWay(), f.action.Kind == scripts.KindReboot && c.Boot != "":
		return jobs.Unknown
	case f.step > 0, c.NotReady > 0:
		return jobs.Failed
	}
	return jobs.Unreachable
}

// appoint gives the worker back until the step goes on. The host is kept.
func (f facts) appoint(k jobs.Kind, c probing, delay time.Duration, text string) jobs.Result {
	m := f.mind()
	m.Probe = &c
	m.MayHaveRun, m.Asked = false, 0
	f.memory = &m
	r := f.say(k, f.place()+text)
	r.Delay, r.Step = max(delay, 0), f.step
	return r
}

// late is about a wait whose limit has passed.
func (f facts) late(why string) jobs.Result {
	text := also(fmt.Sprintf("not so after %s", f.action.Wait.Limit), why)
	if f.action.Wait.Unknown {
		return f.end(jobs.Unknown, jobs.ClassOperator, text)
	}
	return f.end(jobs.Failed, jobs.ClassOperator, text)
}

// notYet is about a wait that goes on: every so often, and once at its limit.
func (f facts) notYet(c probing, now jobs.Micros, why string) jobs.Result {
	left := c.Since.Add(f.action.Wait.Limit).Sub(now)
	if left <= 0 {
		return f.late(why)
	}
	c.Saying = shortened(why, noteMax)
	r := f.appoint(jobs.KindWait, c, min(f.action.Wait.Every, left), also("waits", why))
	r.Release = f.action.Wait.Release
	return r
}

// waits is about a wait for a time.
func (f facts) waits(c probing, now jobs.Micros) (r jobs.Result, over bool) {
	w := f.action.Wait
	if c.Until == 0 {
		c.Since, c.Until = now, now.Add(w.For)
	}
	left := c.Until.Sub(now)
	if left <= 0 {
		return jobs.Result{}, true
	}
	c.Saying = "waits until " + jobs.TimeOf(c.Until).String()
	r = f.appoint(jobs.KindWait, c, left, c.Saying)
	r.Release = w.Release
	return r, false
}

var bootID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// readBoot reads a boot id; empty if it is none. Anything else that a host says while it
// goes down or comes up would be taken for another boot.
func readBoot(code int, said string) string {
	id := strings.TrimSpace(said)
	if code != 0 || !bootID.MatchString(id) {
		return ""
	}
	return id
}
