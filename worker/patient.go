package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file does the steps that give the worker back until they go on: wait, verify and
// reboot; confirm.go has another one. Each probe is an attempt of its own, on whichever
// node, and none of them changes anything, so a worker that is lost with one is no matter:
// the next one looks again.

// probeTime bounds what a probe does beside its check.
const probeTime = 15 * time.Second

// now is the time of Redis, as far as it is known here: a token is the instant of its take.
func (a *attempt) now() jobs.Micros {
	return jobs.Micros(a.grant.Token).Add(a.Clock() - a.sent)
}

// probed is what is kept of the step in hand.
func (a *attempt) probed() verdict.Probing { return a.facts().Probed() }

// rests does what needs no host: a gate, a wait for a time, and the pause before the first
// probe.
func (a *attempt) rests(ctx context.Context, action scripts.Action) (r jobs.Result, rests,
	goOn bool) {
	f := a.with(action)
	switch {
	case action.Kind == scripts.KindGate:
		r, goOn := a.atGate(ctx, f)
		return r, true, goOn
	case f.Order != nil:
	case action.Kind == scripts.KindWait && action.Shell == "":
		r, over := verdict.Waits(f, a.probed(), a.now())
		if over {
			a.goOn(nil)
		} else {
			a.remark(action.Name, ": "+a.saying(r))
		}
		return r, true, over
	case action.Kind == scripts.KindVerify && a.memory.Probe == nil:
		a.remark(action.Name, "")
		return f.Appoint(jobs.KindVerify, verdict.Probing{}, action.Probes.NotReady.First,
				"first probe"), true,
			false
	}
	return jobs.Result{}, false, false
}

// saying is what a result keeps of the last probe.
func (a *attempt) saying(r jobs.Result) string {
	if p := verdict.Recall(r.Saved).Probe; p != nil {
		return p.Saying
	}
	return ""
}

// probeAway is about a host that a probe did not reach. Whatever it is that only a person
// can mend ends the step: another host key, say.
func (a *attempt) probeAway(ctx context.Context, action scripts.Action, err error) jobs.Result {
	f := a.with(action)
	f.Err, f.Cause = err, cause(ctx)
	var e *remote.Error
	known := errors.As(err, &e)
	switch {
	case f.Order != nil:
		return verdict.LeftAlone(f)
	case known && !e.Sent && verdict.NeedsPerson(e.Kind):
		return verdict.HinderedProbe(f, e.Kind)
	case f.Cause != nil && !errors.Is(f.Cause, verdict.ErrOverdue), known && e.Kind == remote.KindNode:
		return f.Appoint(verdict.KindOfProbe(f), a.probed(), f.Policy.Delay, verdict.Reason(err))
	case action.Kind == scripts.KindWait:
		return verdict.NotYet(f, a.sinceNow(), a.now(), verdict.Reason(err))
	}
	return verdict.Unwell(f, a.now(), verdict.Away, verdict.Reason(err))
}

func (a *attempt) sinceNow() verdict.Probing {
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
	f.Result, f.Err = conn.Run(ctx, remote.Command{Shell: action.Shell, Bound: bound,
		Stop: a.halting.Done()})
	a.hasAnswered(f.Err)
	f.Cause, f.Order = cause(ctx), order(a.halting)
	timeout := verdict.SentKind(f.Err) == remote.KindTimeout
	switch {
	case f.Err != nil && !timeout:
		return a.probeAway(ctx, action, f.Err), false
	case timeout:
		return a.endProbe(f, a.unwell(f, verdict.Reason(f.Err)), false)
	case f.Result.ExitCode == scripts.NotYet && f.Result.Signal == "":
		return a.endProbe(f, a.unwell(f, verdict.HostSaid("", verdict.LastLine(f.Result.Output))), false)
	}
	a.hear(f, "")
	r, goOn = verdict.Judge(f, rand.Float64())
	if r.Kind == jobs.KindEnd && r.Outcome != jobs.Succeeded && action.Kind != scripts.KindWait {
		r.KeepLock = f.Disruptive
	}
	return a.endProbe(f, r, goOn)
}

// endProbe goes on to the next step, or to the on_fail of this one.
func (a *attempt) endProbe(f verdict.Evidence, r jobs.Result, goOn bool) (jobs.Result, bool) {
	switch {
	case goOn && f.Err == nil:
		a.noteDisturbed(f.Action)
		a.goOn(f.Finding().Saved)
	case verdict.Rescues(f, r):
		a.rescue(f.Action, r)
		goOn = true
	}
	return r, goOn
}

// unwell is about a host that was reached, and says: not yet.
func (a *attempt) unwell(f verdict.Evidence, why string) jobs.Result {
	why = verdict.Shortened(why, verdict.NoteMax)
	a.hear(f, why)
	a.memory.Keep(f.Action.Keep(f.Seen(), a.memory.Saved))
	f = a.fresh(f)
	if f.Action.Kind == scripts.KindWait {
		return verdict.NotYet(f, a.sinceNow(), a.now(), why)
	}
	return verdict.Unwell(f, a.now(), verdict.NotReady, why)
}

// hear puts what a probe said into the transcript, if it is news: a wait may have hundreds
// of probes, which all say the same.
func (a *attempt) hear(f verdict.Evidence, why string) {
	if why != "" && a.probed().Saying == why {
		return
	}
	a.remark(f.Action.Name, "")
	a.said.add(f.Result.Output)
}

// reboots leads a host from its old boot to a new one. ready: it is there.
func (a *attempt) reboots(ctx context.Context, conn Conn, action scripts.Action,
	bound time.Duration) (r jobs.Result, ready bool) {
	f, c := a.with(action), a.probed()
	const ask = "cat /proc/sys/kernel/random/boot_id"
	got, err := conn.Run(ctx, remote.Command{Shell: ask, Bound: probeTime, Stop: a.halting.Done()})
	a.hasAnswered(err)
	f.Order = order(a.halting)
	if err != nil && c.Boot != "" {
		return a.probeAway(ctx, action, err), false
	}
	boot := verdict.ReadBoot(got.ExitCode, string(got.Output.Bytes()))
	switch {
	case err != nil:
		f.Err, f.Cause = err, cause(ctx)
		r, _ := verdict.Judge(f, rand.Float64())
		return r, false
	case boot == "" && c.Boot == "":
		return f.End(jobs.Failed, jobs.ClassOperator, verdict.HostSaid("its boot id cannot be read",
			verdict.LastLine(got.Output))), false
	case boot == "":
		return verdict.Unwell(f, a.now(), verdict.NotReady, "its boot id cannot be read"), false
	case c.Boot != "" && boot != c.Boot:
		return jobs.Result{}, true
	case c.Boot != "" && c.Told:
		return verdict.Unwell(f, a.now(), verdict.NotReady, "it has not gone down yet"), false
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
func (a *attempt) keptFromReboot(ctx context.Context, f verdict.Evidence) (r jobs.Result,
	kept bool) {
	rules := a.admitAgain(ctx, f.Action)
	if rules.ok {
		return jobs.Result{}, false
	}
	c := a.probed()
	next := c
	if _, last := next.After(*f.Action.Probes, verdict.NotReady); !last {
		return verdict.Unwell(f, a.now(), verdict.NotReady,
			"it may have been told to reboot, has not gone down, "+
				"and must not be told now: "+rules.why), true
	}
	c.NotReady = 0 // of the reboot that is to come
	a.memory.Probe = &c
	return a.deferred(a.with(f.Action), rules, nil), true
}

// lateToTell is about a go for a reboot that came when the reboot must not begin any more.
func (a *attempt) lateToTell(f verdict.Evidence, how reboot) (r jobs.Result, late bool) {
	switch {
	case !how.began:
		return a.goCameLate(a.halting, f.Action)
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
	if verdict.KeepsRecords(a.grant.Host) {
		record = a.recordOf(a.step)
		record.Again, record.Twice = how.began, true
	}
	told := a.on(jobs.Acting)
	f.Result, f.Err = conn.Run(ctx, remote.Command{Shell: action.Command, Bound: how.bound,
		Stop: a.halting.Done(), Record: record, Live: a.said.live})
	told()
	a.hasAnswered(f.Err)
	a.said.add(f.Result.Output)
	f.Cause, f.Order = cause(ctx), order(a.halting)
	c := a.probed()
	f = a.fresh(f)
	switch {
	case f.Err == nil && f.Result.ExitCode == 0:
		c.Told = true
	case f.Err != nil && verdict.SentKind(f.Err) == "" && !how.began:
		a.memory.Probe, a.memory.Disturbed = nil, before // it was not sent
		f = a.fresh(f)
		fallthrough
	case f.Err == nil, verdict.SentKind(f.Err) == "":
		r, _ := verdict.Judge(f, rand.Float64())
		return r
	case f.Order != nil:
		return verdict.LeftAlone(f)
	}
	// A connection that is lost is what a reboot looks like.
	return f.Appoint(jobs.KindVerify, c, action.Probes.NotReady.First, "told to reboot")
}
