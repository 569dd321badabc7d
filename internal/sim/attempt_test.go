package sim

import (
	"time"

	"muster/jobs"
)

// An attempt is one try at a job, as package worker makes it.
type attempt struct {
	*child
	grant jobs.Grant
	spec  plan
	sent  time.Duration
	end   time.Duration // of the lease
	asked time.Duration // when what is agreed about times was asked for last
	progress
}

// progress is the progress of an attempt.
type progress struct {
	step     int
	mind     memory
	begun    bool
	answered bool   // the end of its last command was seen
	told     bool   // with a question the queue was told of something to keep
	order    string // who cancelled it
	running  int    // number of its command in the host's log, from 1 on; 0: none
}

func (a *attempt) stage() stage { return a.spec.steps[a.step] }

func (a *attempt) host() *host { return a.hosts[a.grant.Job.Host()] }

// gone reports that the attempt has ended, so that its planned actions must not happen.
func (a *attempt) gone() bool { return a.work[a.grant.Token] != a }

// soon does something after d, unless the attempt has ended then.
func (a *attempt) soon(d time.Duration, do func()) {
	a.after(d, func() {
		if !a.gone() {
			do()
		}
	})
}

// over ends an attempt with something to say, or nothing if it was stale.
func (a *attempt) over(r *jobs.Result) {
	if a.gone() {
		return
	}
	delete(a.work, a.grant.Token)
	a.noteLate()
	if r != nil {
		a.results = append(a.results, a.leftHalfWay(*r))
	}
	a.faults.point(a.child, killAfterWork)
	a.ask()
}

// leftHalfWay keeps the group of a host of which nothing was heard after it was disturbed.
func (a *attempt) leftHalfWay(r jobs.Result) jobs.Result {
	if r.Kind == jobs.KindEnd && !a.answered && a.halfWay() && (r.Outcome == jobs.Failed ||
		r.Outcome == jobs.Timeout || r.Outcome == jobs.Unreachable) {
		r.KeepLock = true
	}
	return r
}

func (a *attempt) halfWay() bool { return a.spec.disruptive && a.mind.Disturbed }

func (a *attempt) run() {
	switch g := a.grant; {
	case g.Mode == jobs.ModeLost && !a.stage().safe():
		r := a.lost()
		a.soon(0, func() { a.over(&r) })
	case a.end-a.now-jobs.KillGrace-answerTime < boundMin:
		r := a.say(jobs.KindBack)
		a.soon(0, func() { a.over(&r) })
	default:
		a.admitted(func() { a.soon(a.between(time.Millisecond, callMax), a.connected) })
		a.faults.point(a.child, killStarted)
	}
}

func (a *attempt) connected() {
	switch away := a.host().down > a.now || a.chance(a.spec.unreachable); {
	case away && a.mind.Probe != nil:
		r := a.unwell(true)
		a.over(&r)
	case away:
		r := a.unreached(jobs.Unreachable)
		a.over(&r)
	default:
		a.try()
	}
}

// try asks for the next step if it must, and starts it.
func (a *attempt) try() {
	if a.mind.Probe != nil {
		a.probe()
		return
	}
	a.ruled(func() {
		s := a.stage()
		if s.kind == reboot {
			a.tell()
			return
		}
		if a.needsGo(s) {
			a.checkpoint(a.now)
			return
		}
		a.begin()
	})
}

func (a *attempt) needsGo(s stage) bool {
	room := a.end - a.now - jobs.KillGrace - answerTime
	return a.step > a.grant.Step || a.now-a.sent > goTime || room < max(s.timeout, boundMin) ||
		a.grant.Mode == jobs.ModeLost
}

func (a *attempt) checkpoint(sent time.Duration) {
	if a.now >= a.end {
		a.untell()
		r := a.outOfTime()
		a.over(&r)
		return
	}
	q := jobs.Checkpoint{Job: a.grant.Job, Token: a.grant.Token, Step: a.step, Saved: a.saved()}
	a.told = a.told || q.Saved != ""
	absent := func(v any) bool { return v.(jobs.Verdict) == "absent" }
	f := func(z *zone, now jobs.Micros) any { return z.Checkpoint(now, q) }
	a.script(call{"checkpoint", f}, absent, func(v any, err error) {
		switch {
		case a.gone():
		case err != nil || v.(jobs.Verdict) == "absent":
			a.soon(a.between(50*time.Millisecond, time.Second), func() { a.checkpoint(a.now) })
		default:
			a.heard(v.(jobs.Verdict), sent)
		}
	})
}

// heard is the answer to a checkpoint.
func (a *attempt) heard(v jobs.Verdict, sent time.Duration) {
	switch {
	case v == jobs.Stale:
		a.over(nil)
	case v != jobs.Go:
		a.untell()
		if a.grant.Mode == jobs.ModeLost { // it may be cancelled, and would come again at once
			a.soon(heardEvery, func() { r := a.giveBack(); a.over(&r) })
			return
		}
		r := a.giveBack()
		a.over(&r)
	case a.now >= a.end: // the lease was over meanwhile
		a.untell()
		r := a.outOfTime()
		a.over(&r)
	default:
		a.end = deadline(sent, a.grant.Timeout)
		if h, ok := a.held[a.grant.Job]; ok {
			h.until = max(h.until, sent+h.timeout)
			a.held[a.grant.Job] = h
		}
		switch late := a.now-a.asked > agreedMax; {
		case late && a.mind.again() && a.spec.window:
			a.rule(a.begin, a.keptFromReboot)
			return
		case late && !a.mind.again():
			kept := a.mind.Probe
			a.mind.Probe = nil
			a.ruled(func() {
				a.mind.Probe = kept
				a.begin()
			})
			return
		}
		a.begin()
	}
}

// begin starts the step on the host, with its own bound.
func (a *attempt) begin() {
	s := a.stage()
	if a.order != "" { // it is being stopped
		return
	}
	bound := min(s.timeout, a.end-a.now-jobs.KillGrace-answerTime)
	if bound < boundMin {
		a.untell()
		r := a.outOfTime()
		a.over(&r)
		return
	}
	if a.begun, a.answered = true, false; a.grant.Mode == jobs.ModeLost {
		a.faults.met("a lost job looks again")
	}
	runs := min(s.takes, bound+jobs.KillGrace)
	h := a.host()
	h.begin(entry{job: a.grant.Job, token: a.grant.Token, step: a.step, try: a.mind.Again,
		once: !a.spec.repeatable && !s.safe(), plan: a.spec, from: a.now, to: a.now + runs,
		latest: a.now + bound + jobs.KillGrace, stage: s, asked: a.sent,
		goes: a.grant.Mode == jobs.ModeLost || recall(a.grant.Saved).Probe != nil})
	a.running = len(h.log)
	a.faults.point(a.child, killAtWork)
	a.soon(runs, func() {
		a.running, a.answered = 0, true
		a.finished(s, s.takes > bound)
	})
}

// finished handles a step that has ended.
func (a *attempt) finished(s stage, cut bool) {
	a.mind.Disturbed = a.mind.Disturbed || (a.spec.disruptive || a.spec.window) && s.kind != looking
	if s.kind == reboot {
		a.goesDown()
		return
	}
	var r jobs.Result
	switch failed := a.chance(a.spec.fails); {
	case cut:
		r = a.ending(jobs.Timeout, "ran over its bound")
	case failed && a.mind.Again+1 < s.tries:
		a.mind.Again++
		a.faults.met("a step is tried again")
		a.mind.MayHaveRun = false
		r = a.say(jobs.KindWait)
		r.Delay = a.between(time.Second, time.Minute)
	case failed:
		r = a.ending(jobs.Failed, "failed")
		r.Class = jobs.ClassUser
	default:
		a.goOn(s)
		return
	}
	a.over(&r)
}

// goOn leaves a step behind.
func (a *attempt) goOn(s stage) {
	a.mind = memory{Disturbed: a.mind.Disturbed}
	var r jobs.Result
	switch last := a.step+1 == len(a.spec.steps); {
	case last:
		r = a.ending(jobs.Succeeded, "")
	case s.pause > 0: // an appointment before the next step
		a.step++
		r = a.say(jobs.KindWait)
		r.Delay, r.Release = s.pause, !a.spec.disruptive
	default:
		a.step++
		a.try()
		return
	}
	a.over(&r)
}

// saved returns the data for the next attempt, which replaces the earlier data.
func (a *attempt) saved() string {
	text := a.mind.String()
	if text == "" && (a.grant.Saved != "" || a.told) {
		return "{}"
	}
	return text
}

func (a *attempt) say(k jobs.Kind) jobs.Result {
	return jobs.Result{Job: a.grant.Job, Token: a.grant.Token, Kind: k, Step: a.step, Saved: a.saved()}
}

func (a *attempt) ending(o jobs.Outcome, why string) jobs.Result {
	r := a.say(jobs.KindEnd)
	r.Outcome, r.Error = o, why
	return r
}

// giveBack returns a job of which nothing is under way.
func (a *attempt) giveBack() jobs.Result {
	if a.mind.again() {
		r := a.say(jobs.KindVerify)
		r.Delay = jobs.DefaultPolicy().Delay
		return r
	}
	if a.begun || a.told && a.step > a.grant.Step {
		return a.say(jobs.KindWait)
	}
	r := a.say(jobs.KindBack)
	r.Step, r.Saved = a.grant.Step, a.grant.Saved
	if a.told && r.Saved == "" {
		r.Saved = "{}"
	}
	return r
}

func (a *attempt) outOfTime() jobs.Result {
	if !a.begun {
		return a.giveBack()
	}
	return a.unreached(jobs.Failed)
}

// mayHaveRun reports whether an earlier attempt may have started the step in hand.
func (a *attempt) mayHaveRun() bool {
	return (a.grant.Mode == jobs.ModeLost || recall(a.grant.Saved).MayHaveRun) &&
		a.step == a.grant.Step && !a.stage().safe()
}

// doubt turns an end that says that nothing ran into unknown, if an earlier attempt may have
// started the step.
func (a *attempt) doubt(r jobs.Result) jobs.Result {
	if a.mayHaveRun() {
		r.Outcome, r.KeepLock = jobs.Unknown, a.grant.Bound > 0
	}
	return r
}

// unreached returns the result of a try that may succeed later.
func (a *attempt) unreached(last jobs.Outcome) jobs.Result {
	if jobs.DefaultPolicy().Again(a.grant.Tries+1, jobs.ClassTransient) {
		r := a.say(jobs.KindRetry)
		r.Delay = jobs.DefaultPolicy().Delay
		return r
	}
	r := a.ending(last, "not reached")
	r.Class = jobs.ClassTransient
	switch {
	case last == jobs.Unreachable && a.halfWay():
		r.Outcome = jobs.Unknown
		return r
	case a.step > 0 || a.mind.Again > 0:
		r.Outcome = jobs.Failed
	}
	return a.doubt(r)
}

// lost returns the result for a job whose worker vanished: only a repeatable step runs again.
func (a *attempt) lost() jobs.Result {
	if a.spec.repeatable {
		a.mind.MayHaveRun = true
		r := a.say(jobs.KindRetry)
		r.Delay, r.KeepLock = a.grant.Bound, a.grant.Bound > 0
		return r
	}
	r := a.ending(jobs.Unknown, "its worker died with it")
	r.KeepLock = a.grant.Bound > 0
	return r
}
