package verdict

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"muster/jobs"
	"muster/scripts"
)

// This file decides about steps that probe a host until it is well: the time of the next probe, and
// which probe is the last one. Limits count probes, so a late queue never makes a host unreachable.

// Probing is the state of such a step between two probes.
type Probing struct {
	// Since is the start of the step; for verify and reboot, of the absence of the host.
	Since    jobs.Micros `json:"since,omitempty"`
	Until    jobs.Micros `json:"until,omitempty"`     // wait for, gate: the end; confirm: the last moment for it
	Away     int         `json:"away,omitempty"`      // probes that did not reach the host
	NotReady int         `json:"not_ready,omitempty"` // probes that found the host not well yet
	Boot     string      `json:"boot,omitempty"`      // reboot: the boot id before
	Told     bool        `json:"told,omitempty"`      // reboot: the command ended well
	Free     jobs.Micros `json:"free,omitempty"`      // confirm: from then on no command can begin the change
	Armed    bool        `json:"armed,omitempty"`     // confirm: the host has said so
	Saying   string      `json:"saying,omitempty"`    // the words of the last probe
	Gate     *asking     `json:"gate,omitempty"`      // gate: the question to the person
}

// found is the finding of a probe.
type found int

const (
	Away     found = iota // the host was not reached
	NotReady              // the host is not well yet
)

// After counts a probe that did not reach the host, or found it not well yet. It returns the time
// to the next probe; last: there is none.
func (c *Probing) After(p scripts.Probes, what found) (delay time.Duration, last bool) {
	if what == Away {
		c.Away++
		return p.Unreachable.Every, c.Away >= p.Unreachable.Probes
	}
	c.NotReady++
	// The last probe comes after the longest pause, in which the host may have become ready.
	more := time.Duration(c.NotReady-1) * p.NotReady.More
	return p.NotReady.First + more, c.NotReady > p.NotReady.Probes
}

// Unwell returns the result of a probe that did not find the host well, for the reason why.
func Unwell(f Evidence, now jobs.Micros, what found, why string) jobs.Result {
	c := f.Probed()
	delay, last := c.After(*f.Action.Probes, what)
	c.Saying = why
	if what == NotReady {
		c.Since = 0
	} else {
		c.Since = cmp.Or(c.Since, now)
	}
	if !last {
		n := fmt.Sprintf("probe %d: ", c.Away+c.NotReady)
		return f.Appoint(jobs.KindVerify, c, delay, n+why)
	}
	outcome, class := jobs.Failed, jobs.ClassTransient
	text := fmt.Sprintf("not ready after %d probes: %s", c.NotReady, why)
	if what == Away {
		outcome, class = staysAway(f, c), jobs.ClassOperator
		text = fmt.Sprintf("not back after %d probes, away since %s: %s", c.Away,
			c.Since.Time().UTC().Truncate(time.Second).Format(time.RFC3339), why)
	}
	r := f.End(outcome, class, text)
	r.KeepLock = f.Action.Disruptive || f.Disruptive
	return r
}

// staysAway returns the outcome of a job whose host is not reached any more. Unreachable says
// that nothing ever ran there. The state of a host that was disturbed before is unknown.
func staysAway(f Evidence, c Probing) jobs.Outcome {
	switch {
	case f.halfWay(), f.Action.Kind == scripts.KindReboot && c.Boot != "":
		return jobs.Unknown
	case f.Step > 0, c.NotReady > 0:
		return jobs.Failed
	}
	return jobs.Unreachable
}

// late returns the end of a wait whose limit has passed.
func late(f Evidence, why string) jobs.Result {
	text := Also(fmt.Sprintf("not so after %s", f.Action.Wait().Limit), why)
	if f.Action.Wait().Unknown {
		return f.End(jobs.Unknown, jobs.ClassOperator, text)
	}
	return f.End(jobs.Failed, jobs.ClassOperator, text)
}

// NotYet returns the time to the next probe of a wait: each interval, and once at its limit.
func NotYet(f Evidence, c Probing, now jobs.Micros, why string) jobs.Result {
	left := c.Since.Add(f.Action.Wait().Limit).Sub(now)
	if left <= 0 {
		return late(f, why)
	}
	c.Saying = Shortened(why, NoteMax)
	r := f.Appoint(jobs.KindWait, c, min(f.Action.Wait().Every, left), Also("waits", why))
	r.Release = f.Action.Wait().Release
	return r
}

// Waits returns the result of a wait for a time; over: the time has come.
func Waits(f Evidence, c Probing, now jobs.Micros) (r jobs.Result, over bool) {
	w := f.Action.Wait()
	if c.Until == 0 {
		c.Since, c.Until = now, now.Add(w.For)
	}
	left := c.Until.Sub(now)
	if left <= 0 {
		return jobs.Result{}, true
	}
	c.Saying = "waits until " + jobs.TimeOf(c.Until).String()
	r = f.Appoint(jobs.KindWait, c, left, c.Saying)
	r.Release = w.Release
	return r, false
}

var bootID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// ReadBoot reads a boot id; empty if the text is none. Otherwise other output of a host that goes
// down or comes up would count as another boot.
func ReadBoot(code int, said string) string {
	id := strings.TrimSpace(said)
	if code != 0 || !bootID.MatchString(id) {
		return ""
	}
	return id
}
