package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"muster/jobs"
)

// This file handles the data that an attempt saves for the next one, and steps that release the
// worker until they continue: a reboot, and the probes after it.

// memory is the data that attempts save for later ones, in the form of package worker.
type memory struct {
	MayHaveRun bool     `json:"may_have_run,omitempty"`
	Again      int      `json:"again,omitempty"` // so many tries of the step have failed
	Probe      *probing `json:"probe,omitempty"`
	Disturbed  bool     `json:"disturbed,omitempty"`
}

// probing is the saved state of a reboot.
type probing struct {
	Boot     int  `json:"boot"` // of the host when it was told
	Told     bool `json:"told,omitempty"`
	Away     int  `json:"away,omitempty"`
	NotReady int  `json:"not_ready,omitempty"`
	began    bool // by an attempt before this one
}

func (m memory) String() string {
	b, err := json.Marshal(m)
	if err != nil || string(b) == "{}" {
		return ""
	}
	return string(b)
}

func recall(saved string) (m memory) {
	if saved == "" {
		return memory{}
	}
	if err := json.Unmarshal([]byte(saved), &m); err != nil {
		panic(err)
	}
	if m.Probe != nil {
		m.Probe.began = true
	}
	return m
}

// again reports whether an earlier attempt was at the reboot, or may have been.
func (m memory) again() bool { return m.Probe != nil && m.Probe.began }

// tell orders the host to reboot. It saves the host's present boot first, so that a later attempt
// can see whether the host has rebooted.
func (a *attempt) tell() {
	if a.mind.Probe == nil {
		a.mind.Probe = &probing{Boot: a.host().boots}
	}
	a.checkpoint(a.now)
}

// untell forgets a reboot that was not allowed.
func (a *attempt) untell() {
	if a.mind.Probe != nil && !a.mind.again() {
		a.mind.Probe = nil
	}
}

// goesDown is a host that has ended what it was told to: it goes down, and comes back, or does
// not for long.
func (a *attempt) goesDown() {
	h := a.host()
	h.boots++
	h.down = a.now + a.between(5*time.Second, 2*time.Minute)
	if a.chance(0.1) {
		h.down += 5 * time.Minute
	}
	a.mind.Probe.Told = true
	r := a.say(jobs.KindVerify)
	r.Delay = 30 * time.Second
	a.over(&r)
}

// probe looks once at a host that was told to reboot, or may have been.
func (a *attempt) probe() {
	switch p := a.mind.Probe; {
	case p.Told && a.host().boots == p.Boot, a.host().boots != p.Boot && a.chance(0.3):
		r := a.unwell(false)
		a.over(&r)
	case a.host().boots != p.Boot:
		a.answered = true
		a.mind.Disturbed = true
		a.goOn(a.stage())
	default:
		a.retell()
	}
}

// retell tells a host that may have been told to reboot, and is in its old boot, if a reboot may
// begin now; see keptFromReboot of package worker.
func (a *attempt) retell() {
	if !a.spec.window {
		a.tell()
		return
	}
	a.rule(a.tell, a.keptFromReboot)
}

// keptFromReboot looks at the host as if it had been told, and then waits with its group.
func (a *attempt) keptFromReboot(soon time.Duration, until time.Time) {
	if a.mind.Probe.NotReady < probesMax {
		a.faults.met("a reboot that may have been told waits for its window")
		r := a.unwell(false)
		a.over(&r)
		return
	}
	a.mind.Probe.NotReady = 0
	a.deferred(soon, until)
}

const probesMax = 6

// unwell returns the result for a host that is not up, or not well yet.
func (a *attempt) unwell(away bool) jobs.Result {
	p := *a.mind.Probe
	delay, last := 30*time.Second, false
	if away {
		a.faults.met("a host is away behind its reboot")
		p.Away++
		last = p.Away >= probesMax
	} else {
		delay += time.Duration(p.NotReady) * 10 * time.Second
		p.NotReady++
		last = p.NotReady > probesMax
	}
	if last {
		a.faults.met("a host does not come back")
		r := a.ending(jobs.Failed, "not ready")
		r.KeepLock = a.spec.disruptive
		if away {
			r.Outcome = jobs.Unknown
		}
		return r
	}
	a.mind.Probe, a.mind.MayHaveRun = &p, false
	r := a.say(jobs.KindVerify)
	r.Delay = delay
	return r
}

// stops asks which jobs in hand are to be stopped.
func (c *child) stops() call {
	var ids []jobs.ID
	for _, token := range tokens(c.work) {
		ids = append(ids, c.work[token].grant.Job)
	}
	return call{"heard", func(z *zone, _ jobs.Micros) any {
		notes := map[jobs.ID]string{}
		for _, id := range ids {
			if t := z.Tasks[id.Task()]; t != nil && t.Cancel != "" {
				notes[id] = t.Cancel
			} else if j := z.Jobs[id]; j != nil && j.Cancel != "" {
				notes[id] = j.Cancel
			}
		}
		return notes
	}}
}

func tokens(m map[jobs.Token]*attempt) []jobs.Token { return slices.Sorted(maps.Keys(m)) }

// halt stops what was cancelled.
func (c *child) halt(notes map[jobs.ID]string) {
	for _, token := range tokens(c.work) {
		a := c.work[token]
		note := notes[a.grant.Job]
		if note == "" || a.order != "" {
			continue
		}
		a.order = note
		r := a.stopped()
		a.soon(a.between(0, 3*time.Second), func() { a.over(&r) })
	}
}

// stopped returns the end of a job that was cancelled while a worker had it.
func (a *attempt) stopped() jobs.Result {
	e := (*entry)(nil)
	if a.running > 0 {
		e = &a.host().log[a.running-1]
	}
	switch {
	case e != nil && a.chance(0.3): // it cannot be stopped
		a.faults.met("a cancelled step goes on")
		r := a.ending(jobs.Unknown, "cancel requested, still running: "+a.order)
		r.KeepLock = true
		return r
	case e != nil:
		a.faults.met("a cancelled step is stopped")
		e.to = min(e.to, a.now)
		a.answered = true
		return a.ending(jobs.Cancelled, a.order+"; stopped on the host")
	case a.mind.again():
		return a.ending(jobs.Unknown, "cancelled before the host was back: "+a.order)
	}
	return a.doubt(a.ending(jobs.Cancelled, a.order+"; stopped before a step"))
}
