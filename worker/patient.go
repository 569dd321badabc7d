package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// This file does the steps that give the worker back until they go on: wait, verify and
// reboot; confirm.go has another one. Each probe is an attempt of its own, on whichever
// node, and none of them changes anything, so a worker that is lost with one is no matter:
// the next one looks again.

// probeTime bounds what a probe does beside its check.
const probeTime = 15 * time.Second

// patient tells whether a step of that kind gives the worker back.
func patient(k scripts.Kind) bool {
	return k == scripts.KindWait || k == scripts.KindVerify || k == scripts.KindReboot ||
		k == scripts.KindConfirm
}

// now is the time of Redis, as far as it is known here: a token is the instant of its take.
func (a *attempt) now() jobs.Micros {
	return jobs.Micros(a.grant.Token).Add(a.Clock() - a.sent)
}

// probed is what is kept of the step in hand.
func (a *attempt) probed() probing {
	if a.memory.Probe == nil {
		return probing{}
	}
	return *a.memory.Probe
}

// rests does what needs no host: a gate, a wait for a time, and the pause before the first
// probe.
func (a *attempt) rests(ctx context.Context, action scripts.Action) (r jobs.Result, rests,
	goOn bool) {
	f := a.with(action)
	switch {
	case action.Kind == scripts.KindGate:
		r, goOn := a.atGate(ctx, f)
		return r, true, goOn
	case f.order != nil:
	case action.Kind == scripts.KindWait && action.Shell == "":
		r, over := f.waits(a.probed(), a.now())
		if over {
			a.goOn(nil)
		} else {
			a.remark(action.Name, ": "+a.saying(r))
		}
		return r, true, over
	case action.Kind == scripts.KindVerify && a.memory.Probe == nil:
		a.remark(action.Name, "")
		return f.appoint(jobs.KindVerify, probing{}, action.Probes.NotReady.First, "first probe"), true,
			false
	}
	return jobs.Result{}, false, false
}

// saying is what a result keeps of the last probe.
func (a *attempt) saying(r jobs.Result) string {
	if p := recall(r.Saved).Probe; p != nil {
		return p.Saying
	}
	return ""
}

// probeAway is about a host that a probe did not reach. Whatever it is that only a person
// can mend ends the step: another host key, say.
func (a *attempt) probeAway(ctx context.Context, action scripts.Action, err error) jobs.Result {
	f := a.with(action)
	f.err, f.cause = err, cause(ctx)
	var e *remote.Error
	known := errors.As(err, &e)
	switch {
	case f.order != nil:
		return f.leftAlone()
	case known && !e.Sent && needsPerson(e.Kind):
		return f.hinderedProbe(e.Kind)
	case f.cause != nil && !errors.Is(f.cause, errOverdue), known && e.Kind == remote.KindNode:
		return f.appoint(f.kindOfProbe(), a.probed(), f.policy.Delay, reason(err))
	case action.Kind == scripts.KindWait:
		return f.notYet(a.sinceNow(), a.now(), reason(err))
	}
	return f.unwell(a.probed(), a.now(), away, reason(err))
}

func needsPerson(k remote.Kind) bool {
	switch k {
	case remote.KindHostKey, remote.KindAuth, remote.KindKey, remote.KindRefused, remote.KindFailed,
		remote.KindInvalid:
		return true
	}
	return false
}

// hinderedProbe is about a host that must be looked at.
func (f facts) hinderedProbe(k remote.Kind) jobs.Result {
	why := reason(f.err)
	if k == remote.KindHostKey {
		why = "it came back with another host key: " + why
	}
	r := f.end(jobs.Failed, jobs.ClassOperator, why)
	r.KeepLock = f.disruptive
	return r
}

func (f facts) kindOfProbe() jobs.Kind {
	if f.action.Kind == scripts.KindWait {
		return jobs.KindWait
	}
	return jobs.KindVerify
}

// leftAlone is about a job that was cancelled while its host was looked at.
func (f facts) leftAlone() jobs.Result {
	if f.action.Kind == scripts.KindWait {
		return notStarted(f)
	}
	return f.endOf(jobs.Unknown, jobs.ClassOperator, "cancelled before the host was back: "+f.note())
}

func (a *attempt) sinceNow() probing {
	c := a.probed()
	if c.Since == 0 {
		c.Since = a.now()
	}
	return c
}

// probe looks once at the host.
func (a *attempt) probe(ctx context.Context, conn Conn, action scripts.Action,
	bound time.Duration) (r jobs.Result, goOn bool) {
	if action.Kind == scripts.KindReboot {
		r, ready := a.reboots(ctx, conn, action, bound)
		if !ready || action.Shell == "" {
			return a.endProbe(a.with(action), r, ready)
		}
	}
	f := a.with(action)
	f.result, f.err = conn.Run(ctx, remote.Command{Shell: action.Shell, Bound: bound,
		Stop: a.halting.Done()})
	a.hasAnswered(f.err)
	f.cause, f.order = cause(ctx), order(a.halting)
	timeout := sentKind(f.err) == remote.KindTimeout
	switch {
	case f.err != nil && !timeout:
		return a.probeAway(ctx, action, f.err), false
	case timeout:
		return a.endProbe(f, a.unwell(f, reason(f.err)), false)
	case f.result.ExitCode == scripts.NotYet && f.result.Signal == "":
		return a.endProbe(f, a.unwell(f, hostSaid("", lastLine(f.result.Output))), false)
	}
	a.hear(f, "")
	r, goOn = judge(f, rand.Float64())
	if r.Kind == jobs.KindEnd && r.Outcome != jobs.Succeeded && action.Kind != scripts.KindWait {
		r.KeepLock = f.disruptive
	}
	return a.endProbe(f, r, goOn)
}

// endProbe goes on to the next step, or to the on_fail of this one.
func (a *attempt) endProbe(f facts, r jobs.Result, goOn bool) (jobs.Result, bool) {
	switch {
	case goOn && f.err == nil:
		a.noteDisturbed(f.action)
		a.goOn(f.finding().Saved)
	case f.rescues(r):
		a.rescue(f.action, r)
		goOn = true
	}
	return r, goOn
}

// sentKind is the kind of an error of a command that was sent; empty for any other.
func sentKind(err error) remote.Kind {
	var e *remote.Error
	if errors.As(err, &e) && e.Sent {
		return e.Kind
	}
	return ""
}

// unwell is about a host that was reached, and says: not yet.
func (a *attempt) unwell(f facts, why string) jobs.Result {
	why = shortened(why, noteMax)
	a.hear(f, why)
	a.memory.keep(f.action.Keep(f.evidence(), f.mind().Saved))
	if f.action.Kind == scripts.KindWait {
		return f.notYet(a.sinceNow(), a.now(), why)
	}
	return f.unwell(a.probed(), a.now(), notReady, why)
}

// hear puts what a probe said into the transcript, if it is news: a wait may have hundreds
// of probes, which all say the same.
func (a *attempt) hear(f facts, why string) {
	if why != "" && a.probed().Saying == why {
		return
	}
	a.remark(f.action.Name, "")
	a.said.add(f.result.Output)
}

// reboots leads a host from its old boot to a new one. ready: it is there.
func (a *attempt) reboots(ctx context.Context, conn Conn, action scripts.Action,
	bound time.Duration) (r jobs.Result, ready bool) {
	f, c := a.with(action), a.probed()
	const ask = "cat /proc/sys/kernel/random/boot_id"
	got, err := conn.Run(ctx, remote.Command{Shell: ask, Bound: probeTime, Stop: a.halting.Done()})
	a.hasAnswered(err)
	f.order = order(a.halting)
	if err != nil && c.Boot != "" {
		return a.probeAway(ctx, action, err), false
	}
	boot := readBoot(got.ExitCode, string(got.Output.Bytes()))
	switch {
	case err != nil:
		f.err, f.cause = err, cause(ctx)
		r, _ := judge(f, rand.Float64())
		return r, false
	case boot == "" && c.Boot == "":
		return f.end(jobs.Failed, jobs.ClassOperator, hostSaid("its boot id cannot be read",
			lastLine(got.Output))), false
	case boot == "":
		return f.unwell(c, a.now(), notReady, "its boot id cannot be read"), false
	case c.Boot != "" && boot != c.Boot:
		return jobs.Result{}, true
	case c.Boot != "" && c.Told:
		return f.unwell(c, a.now(), notReady, "it has not gone down yet"), false
	}
	began := c.Boot != ""
	if began {
		if r, kept := a.keptFromReboot(ctx, f); kept {
			return r, false
		}
	}
	c.Boot = boot
	a.memory.Probe = &c
	return a.tellToReboot(ctx, conn, action, reboot{bound, began}), false
}

// keptFromReboot is about a host that an earlier attempt may have told to reboot, and that is in
// its old boot: it is told, or told again, only when a reboot may begin. At any other time it is
// looked at as if it had been told. Once that was done as often as after a reboot, the job waits
// for such a time, and keeps its group and the boot id: should the host go down after all, the
// next attempt sees that.
func (a *attempt) keptFromReboot(ctx context.Context, f facts) (r jobs.Result, kept bool) {
	rules := a.admitAgain(ctx, f.action)
	if rules.ok {
		return jobs.Result{}, false
	}
	c := a.probed()
	next := c
	if _, last := next.after(*f.action.Probes, notReady); !last {
		return f.unwell(c, a.now(), notReady, "it may have been told to reboot, has not gone down, "+
			"and must not be told now: "+rules.why), true
	}
	c.NotReady = 0 // of the reboot that is to come
	a.memory.Probe = &c
	return a.deferred(a.with(f.action), rules), true
}

// lateToTell is about a go for a reboot that came when the reboot must not begin any more.
func (a *attempt) lateToTell(f facts, how reboot) (r jobs.Result, late bool) {
	switch {
	case !how.began:
		return a.goCameLate(a.halting, f.action)
	case a.Clock()-a.ruled <= agreedMax:
		return jobs.Result{}, false
	}
	return a.keptFromReboot(a.halting, f)
}

// reboot is how a host is told.
type reboot struct {
	bound time.Duration
	began bool // it may have been told before
}

// tellToReboot gives the command. Its boot id is kept before, so that whatever becomes of the
// connection or of this worker, the next one knows whether the host has booted. To tell a host
// twice is no harm as long as it is in its old boot: with that ends all that was begun there.
func (a *attempt) tellToReboot(ctx context.Context, conn Conn, action scripts.Action,
	how reboot) jobs.Result {
	v, err := a.checkpoint(a.halting)
	if (err != nil || v != jobs.Go) && !how.began {
		a.memory.Probe = nil // nor is it for the next attempt, which would look at no window
	}
	f := a.with(action)
	switch {
	case err != nil:
		return a.noGo(ctx, action, err)
	case v == jobs.Stale:
		a.stale = true
		return jobs.Result{}
	case v != jobs.Go:
		return a.notAllowed(action)
	}
	if r, late := a.lateToTell(f, how); late {
		return r
	}
	a.remark(action.Name, "")
	before := a.memory.Disturbed
	a.begin()
	a.noteDisturbed(action)
	var record *remote.Record
	if keepsRecords(a.grant.Host) {
		record = a.recordOf(a.step)
		record.Again, record.Twice = how.began, true
	}
	told := a.on(jobs.Acting)
	f.result, f.err = conn.Run(ctx, remote.Command{Shell: action.Command, Bound: how.bound,
		Stop: a.halting.Done(), Record: record, Live: a.said.live})
	told()
	a.hasAnswered(f.err)
	a.said.add(f.result.Output)
	f.cause, f.order = cause(ctx), order(a.halting)
	c := a.probed()
	switch {
	case f.err == nil && f.result.ExitCode == 0:
		c.Told = true
	case f.err != nil && sentKind(f.err) == "" && !how.began:
		a.memory.Probe, a.memory.Disturbed = nil, before // it was not sent
		fallthrough
	case f.err == nil, sentKind(f.err) == "":
		r, _ := judge(f, rand.Float64())
		return r
	case f.order != nil:
		return f.leftAlone()
	}
	// A connection that is lost is what a reboot looks like.
	return f.appoint(jobs.KindVerify, c, action.Probes.NotReady.First, "told to reboot")
}
