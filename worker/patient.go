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

// watchStep probes a host until that is well.
type watchStep struct{ onHost }

// waitStep does a step of kind wait.
type waitStep struct{ watchStep }

func newWaitStep(a *attempt) stepKind { return waitStep{watchStep{onHost{a}}} }

// begin waits for a time.
func (k waitStep) begin(_ context.Context, f verdict.Evidence) (r jobs.Result, done, goOn bool) {
	if f.Order != nil || f.Action.Shell != "" {
		return r, false, false
	}
	r, over := verdict.Waits(f, k.at.probed(), k.at.now())
	if over {
		k.at.goOn(nil)
	} else {
		k.at.remark(f.Action.Name, ": "+k.saying(r))
	}
	return r, true, over
}

// verifyStep does a step of kind verify.
type verifyStep struct{ watchStep }

func newVerifyStep(a *attempt) stepKind { return verifyStep{watchStep{onHost{a}}} }

// begin pauses before the first probe.
func (k verifyStep) begin(_ context.Context, f verdict.Evidence) (r jobs.Result, done, goOn bool) {
	if f.Order != nil || k.at.memory.Probe != nil {
		return r, false, false
	}
	k.at.remark(f.Action.Name, "")
	return f.Appoint(jobs.KindVerify, verdict.Probing{}, f.Action.Probes.NotReady.First,
		"first probe"), true, false
}

// away counts a probe that did not reach its host. Before the first one nothing has begun.
func (k verifyStep) away(ctx context.Context, action scripts.Action, err error) jobs.Result {
	if k.at.memory.Probe == nil {
		return k.onHost.away(ctx, action, err)
	}
	return k.watchStep.away(ctx, action, err)
}

// saying is what a result keeps of the last probe.
func (k watchStep) saying(r jobs.Result) string {
	if p := verdict.Recall(r.Saved).Probe; p != nil {
		return p.Saying
	}
	return ""
}

// away returns the result of a probe that did not reach its host. A failure that only a person
// can mend ends the step: another host key, say.
func (k watchStep) away(ctx context.Context, action scripts.Action, err error) jobs.Result {
	f := k.at.with(action)
	f.Err, f.Cause = err, cause(ctx)
	var e *remote.Error
	known := errors.As(err, &e)
	switch {
	case f.Order != nil:
		return verdict.LeftAlone(f)
	case known && !e.Sent && verdict.NeedsPerson(e.Kind):
		return verdict.HinderedProbe(f, e.Kind)
	case f.Cause != nil && !errors.Is(f.Cause, verdict.ErrOverdue), known && e.Kind == remote.KindNode:
		return f.Appoint(verdict.KindOfProbe(f), k.at.probed(), f.Policy.Delay, verdict.Reason(err))
	case action.Kind == scripts.KindWait:
		return verdict.NotYet(f, k.sinceNow(), k.at.now(), verdict.Reason(err))
	}
	return verdict.Unwell(f, k.at.now(), verdict.Away, verdict.Reason(err))
}

func (k watchStep) sinceNow() verdict.Probing {
	c := k.at.probed()
	if c.Since == 0 {
		c.Since = k.at.now()
	}
	return c
}

// look probes the host once.
func (k watchStep) look(ctx context.Context, s start) (r jobs.Result, goOn bool) {
	action := s.action
	defer k.at.on(verdict.Looking(action.Kind))()
	f := k.at.with(action)
	f.Result, f.Err = k.at.conn.Run(ctx, remote.Command{Shell: action.Shell, Bound: s.bound,
		Stop: k.at.halt.ctx.Done()})
	k.at.hasAnswered(f.Err)
	f.Cause, f.Order = cause(ctx), order(k.at.halt.ctx)
	timeout := verdict.SentKind(f.Err) == remote.KindTimeout
	switch {
	case f.Err != nil && !timeout:
		return k.away(ctx, action, f.Err), false
	case timeout:
		return k.endProbe(f, k.unwell(f, verdict.Reason(f.Err)), false)
	case f.Result.ExitCode == scripts.NotYet && f.Result.Signal == "":
		return k.endProbe(f, k.unwell(f, verdict.HostSaid("", verdict.LastLine(f.Result.Output))), false)
	}
	k.hear(f, "")
	r, goOn = verdict.Judge(f, rand.Float64())
	if r.Kind == jobs.KindEnd && r.Outcome != jobs.Succeeded && action.Kind != scripts.KindWait {
		r.KeepLock = f.Disruptive
	}
	return k.endProbe(f, r, goOn)
}

// endProbe goes on to the next step, or to the on_fail of this one.
func (k watchStep) endProbe(f verdict.Evidence, r jobs.Result, goOn bool) (jobs.Result, bool) {
	switch {
	case goOn && f.Err == nil:
		k.at.noteDisturbed(f.Action)
		k.at.goOn(f.Finding().Saved)
	case verdict.Rescues(f, r):
		k.at.rescue(f.Action, r)
		goOn = true
	}
	return r, goOn
}

// unwell is about a host that was reached, and says: not yet.
func (k watchStep) unwell(f verdict.Evidence, why string) jobs.Result {
	why = verdict.Shortened(why, verdict.NoteMax)
	k.hear(f, why)
	k.at.memory.Keep(f.Action.Keep(f.Seen(), k.at.memory.Saved))
	f = k.at.fresh(f)
	if f.Action.Kind == scripts.KindWait {
		return verdict.NotYet(f, k.sinceNow(), k.at.now(), why)
	}
	return verdict.Unwell(f, k.at.now(), verdict.NotReady, why)
}

// hear puts what a probe said into the transcript, if it is news: a wait may have hundreds
// of probes, which all say the same.
func (k watchStep) hear(f verdict.Evidence, why string) {
	if why != "" && k.at.probed().Saying == why {
		return
	}
	k.at.remark(f.Action.Name, "")
	k.at.said.Add(f.Result.Output)
}
