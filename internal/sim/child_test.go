package sim

import (
	"fmt"
	"time"

	"muster/jobs"
)

// The numbers of package worker.
const (
	answerTime = time.Second
	goTime     = 5 * time.Second
	boundMin   = 5 * time.Second
	poll       = 10 * time.Second
	giveUp     = 30 * time.Second
	heardEvery = 3 * time.Second
)

const mayHaveRun = `{"may_have_run":true}`

// A child works on jobs as package worker does.
type child struct {
	*client
	slots    int
	prefix   string
	calls    int
	work     map[jobs.Token]*attempt
	results  []jobs.Result
	under    *jobs.Step    // the call under way
	sent     time.Duration // when it was first sent
	idle     bool
	draining bool
	orphan   bool
	ended    func() // hears of its death
}

// An attempt is one try at a job.
type attempt struct {
	*child
	grant jobs.Grant
	spec  plan
	sent  time.Duration
	end   time.Duration // of the lease
	step  int
	begun bool
	asked time.Duration // when what is agreed about times was asked for last
}

func deadline(sent, timeout time.Duration) time.Duration {
	return sent + timeout - jobs.Margin(timeout)
}

func (c *child) start(r jobs.Reply, sent time.Duration) {
	for _, g := range r.Jobs {
		c.held[g.Job] = inHand{g.Token, g.Timeout, sent + g.Timeout}
	}
	c.stayHeard()
	c.accept(r, sent)
	c.ask()
}

// stayHeard registers the child, and sees within seconds that Redis was restarted.
func (c *child) stayHeard() {
	nothing := func(*zone, jobs.Micros) any { return nil }
	c.script(call{"heard", nothing}, nil, func(any, error) {})
	c.after(heardEvery, c.stayHeard)
}

func (c *child) accept(r jobs.Reply, sent time.Duration) {
	c.idle = r.Status != jobs.StatusJobs && r.Status != jobs.StatusMore
	for _, g := range r.Jobs {
		a := &attempt{child: c, grant: g, spec: c.staff.plans[g.Job.Task()], sent: sent,
			end: deadline(sent, g.Timeout), step: g.Step}
		if c.draining && g.Mode != jobs.ModeLost {
			c.results = append(c.results, a.say(jobs.KindBack))
			continue
		}
		c.work[g.Token] = a
		a.run()
	}
}

// ask makes a call if there is something to say or to ask for, and ends the child
// if there is nothing left.
func (c *child) ask() {
	if c.under != nil {
		return
	}
	want := c.slots - len(c.work)
	if c.draining {
		want = 0
	}
	if len(c.results) == 0 && (want == 0 || c.idle) {
		if len(c.work) == 0 && (c.draining || c.idle) {
			c.exit()
		}
		return
	}
	c.calls++
	c.under = &jobs.Step{Node: c.node, Slot: c.slot, Request: fmt.Sprint(c.prefix, c.calls),
		Results: c.results, Want: want}
	c.results, c.sent = nil, c.now
	c.faults.point(c, killReporting)
	c.send(1)
}

func (c *child) send(try int) {
	c.step(*c.under, func(r jobs.Reply, err error) {
		if err != nil {
			if c.now-c.sent > giveUp && len(c.under.Results) == 0 && len(c.work) == 0 {
				c.exit()
				return
			}
			c.after(c.between(50*time.Millisecond, 50*time.Millisecond<<min(try, 5)), func() { c.send(try + 1) })
			return
		}
		c.under = nil
		c.accept(r, c.sent)
		c.ask()
		if len(c.work) > 0 { // with a slot free beside running jobs
			c.after(poll, func() { c.idle = false; c.ask() })
		}
	})
}

func (c *child) exit() { c.die("exit") }

// die ends the child, by itself or by kill -9.
func (c *child) die(why string) {
	if c.dead {
		return
	}
	c.world.say("child %s/%s: %s", c.node, c.slot, why)
	c.kill()
	c.ended()
}

// over ends an attempt with something to say, or nothing if it was stale.
func (a *attempt) over(r *jobs.Result) {
	if a.work[a.grant.Token] != a {
		return
	}
	delete(a.work, a.grant.Token)
	a.noteLate()
	if r != nil {
		a.results = append(a.results, *r)
	}
	a.faults.point(a.child, killAfterWork)
	a.ask()
}

func (a *attempt) run() {
	switch g := a.grant; {
	case g.Mode == jobs.ModeLost:
		r := a.lost()
		a.after(0, func() { a.over(&r) })
	case a.end-a.now-jobs.KillGrace-answerTime < boundMin:
		r := a.say(jobs.KindBack)
		a.after(0, func() { a.over(&r) })
	default:
		a.ruled(func() { a.after(a.between(time.Millisecond, 3*time.Second), a.connected) })
		a.faults.point(a.child, killStarted)
	}
}

func (a *attempt) connected() {
	if a.chance(a.spec.unreachable) {
		r := a.unreached(jobs.Unreachable)
		a.over(&r)
		return
	}
	a.try()
}

// try asks for the next step if it must, and starts it.
func (a *attempt) try() {
	a.ruled(func() {
		s := a.spec.steps[a.step]
		room := a.end - a.now - jobs.KillGrace - answerTime
		if a.step > a.grant.Step || a.now-a.sent > goTime || room < max(s.timeout, boundMin) {
			a.checkpoint(a.now)
			return
		}
		a.begin()
	})
}

func (a *attempt) checkpoint(sent time.Duration) {
	if a.now >= a.end {
		r := a.outOfTime()
		a.over(&r)
		return
	}
	q := jobs.Checkpoint{Job: a.grant.Job, Token: a.grant.Token, Step: a.step, Saved: a.grant.Saved}
	absent := func(v any) bool { return v.(jobs.Verdict) == "absent" }
	f := func(z *zone, now jobs.Micros) any { return z.Checkpoint(now, q) }
	a.script(call{"checkpoint", f}, absent,
		func(v any, err error) {
			if err != nil || v.(jobs.Verdict) == "absent" {
				a.after(a.between(50*time.Millisecond, time.Second), func() { a.checkpoint(a.now) })
				return
			}
			switch v.(jobs.Verdict) {
			case jobs.Go:
				if a.now >= a.end { // the lease was over meanwhile
					r := a.outOfTime()
					a.over(&r)
					return
				}
				a.end = deadline(sent, a.grant.Timeout)
				if h, ok := a.held[a.grant.Job]; ok {
					h.until = max(h.until, sent+h.timeout)
					a.held[a.grant.Job] = h
				}
				if a.now-a.asked > agreedMax {
					a.ruled(a.begin)
					return
				}
				a.begin()
			case jobs.Stale:
				a.over(nil)
			default:
				r := a.giveBack()
				a.over(&r)
			}
		})
}

// begin starts the step on the host, with its own bound.
func (a *attempt) begin() {
	s := a.spec.steps[a.step]
	bound := min(s.timeout, a.end-a.now-jobs.KillGrace-answerTime)
	if bound < boundMin {
		r := a.outOfTime()
		a.over(&r)
		return
	}
	a.begun = true
	runs := min(s.takes, bound+jobs.KillGrace)
	a.hosts[a.grant.Job.Host()].begin(entry{job: a.grant.Job, token: a.grant.Token, step: a.step,
		once: !a.spec.repeatable, plan: a.spec, from: a.now, to: a.now + runs,
		latest: a.now + bound + jobs.KillGrace})
	a.faults.point(a.child, killAtWork)
	a.after(runs, func() { a.finished(s, s.takes > bound) })
}

// finished is about a step that has ended.
func (a *attempt) finished(s stage, cut bool) {
	var r jobs.Result
	switch last := a.step+1 == len(a.spec.steps); {
	case cut:
		r = a.say(jobs.KindEnd)
		r.Outcome = jobs.Timeout
	case a.chance(a.spec.fails):
		r = a.say(jobs.KindEnd)
		r.Outcome, r.Class = jobs.Failed, jobs.ClassUser
	case last:
		r = a.say(jobs.KindEnd)
		r.Outcome = jobs.Succeeded
	case s.pause > 0: // an appointment before the next step
		r = a.say(jobs.KindWait)
		r.Step, r.Delay, r.Release = a.step+1, s.pause, !a.spec.disruptive
	default:
		a.step++
		a.try()
		return
	}
	a.over(&r)
}

func (a *attempt) say(k jobs.Kind) jobs.Result {
	return jobs.Result{Job: a.grant.Job, Token: a.grant.Token, Kind: k, Step: a.step, Saved: a.grant.Saved}
}

// giveBack returns a job of which nothing is under way.
func (a *attempt) giveBack() jobs.Result {
	if a.begun {
		return a.say(jobs.KindWait)
	}
	return a.say(jobs.KindBack)
}

func (a *attempt) outOfTime() jobs.Result {
	if !a.begun {
		return a.say(jobs.KindBack)
	}
	return a.unreached(jobs.Failed)
}

// unreached is about a try that may work later.
func (a *attempt) unreached(last jobs.Outcome) jobs.Result {
	if jobs.DefaultPolicy().Again(a.grant.Tries+1, jobs.ClassTransient) {
		r := a.say(jobs.KindRetry)
		r.Delay = jobs.DefaultPolicy().Delay
		return r
	}
	r := a.say(jobs.KindEnd)
	r.Outcome, r.Class = last, jobs.ClassTransient
	if a.step > 0 {
		r.Outcome = jobs.Failed
	}
	if a.grant.Saved != "" {
		r.Outcome = jobs.Unknown
	}
	return r
}

// lost is about a job whose worker vanished: only what may run twice runs again.
func (a *attempt) lost() jobs.Result {
	if a.spec.repeatable {
		r := a.say(jobs.KindRetry)
		r.Delay, r.KeepLock, r.Saved = a.grant.Bound, a.grant.Bound > 0, mayHaveRun
		return r
	}
	r := a.say(jobs.KindEnd)
	r.Outcome, r.KeepLock = jobs.Unknown, a.grant.Bound > 0
	return r
}
