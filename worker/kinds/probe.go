package kinds

import (
	"context"
	"errors"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// probeTime bounds the questions of a probe beside its check.
const probeTime = 15 * time.Second

// watchStep probes its host until the host is well. Each probe is an attempt of its own, on any
// node, and the worker is free in between. A probe changes nothing, so a worker may be lost with
// one: the next worker looks again.
type watchStep struct{ onHost }

// saying returns the words that a result keeps of the last probe.
func (k watchStep) saying(r jobs.Result) string {
	if p := verdict.Recall(r.Saved).Probe; p != nil {
		return p.Saying
	}
	return ""
}

// Away returns the result of a probe that did not reach its host. A failure that only a person can
// mend, as another host key, ends the step.
func (k watchStep) Away(ctx context.Context, action scripts.Action, err error) jobs.Result {
	f := k.Job.Evidence(action)
	f.Err, f.Cause = err, verdict.CauseOf(ctx)
	var e *remote.Error
	known := errors.As(err, &e)
	switch {
	case f.Order != nil:
		return verdict.LeftAlone(f)
	case known && !e.Sent && verdict.NeedsPerson(e.Kind):
		return verdict.HinderedProbe(f, e.Kind)
	case f.Cause != nil && !errors.Is(f.Cause, verdict.ErrOverdue), known && e.Kind == remote.KindNode:
		return f.Appoint(verdict.KindOfProbe(f), k.Memory.Probed(), f.Policy.Delay, verdict.Reason(err))
	case action.Kind == scripts.KindWait:
		return verdict.NotYet(f, k.sinceNow(), k.Job.Now(), verdict.Reason(err))
	}
	return verdict.Unwell(f, k.Job.Now(), verdict.Away, verdict.Reason(err))
}

func (k watchStep) sinceNow() verdict.Probing {
	c := k.Memory.Probed()
	if c.Since == 0 {
		c.Since = k.Job.Now()
	}
	return c
}

// Look probes the host once.
func (k watchStep) Look(ctx context.Context, s Start) (r jobs.Result, goOn bool) {
	action := s.Action
	defer k.Job.Spend(verdict.Looking(action.Kind))()
	f := k.Job.Evidence(action)
	f.Result, f.Err = k.Host.Run(ctx, remote.Command{Shell: action.Shell, Bound: s.Bound,
		Stop: k.Stop.Done()})
	k.Notes.Answered(f.Err)
	f.Cause, f.Order = verdict.CauseOf(ctx), k.order()
	timeout := verdict.SentKind(f.Err) == remote.KindTimeout
	switch {
	case f.Err != nil && !timeout:
		return k.Away(ctx, action, f.Err), false
	case timeout:
		return k.endProbe(f, k.unwell(f, verdict.Reason(f.Err)), false)
	case f.Result.ExitCode == scripts.NotYet && f.Result.Signal == "":
		return k.endProbe(f, k.unwell(f, verdict.HostSaid("", verdict.LastLine(f.Result.Output))), false)
	}
	k.hear(f, "")
	r, goOn = verdict.Judge(f, k.Job.Chance())
	if r.Kind == jobs.KindEnd && r.Outcome != jobs.Succeeded && action.Kind != scripts.KindWait {
		r.KeepLock = f.Disruptive
	}
	return k.endProbe(f, r, goOn)
}

// endProbe leads the job to the next step, or to the on_fail of this one.
func (k watchStep) endProbe(f verdict.Evidence, r jobs.Result, goOn bool) (jobs.Result, bool) {
	switch {
	case goOn && f.Err == nil:
		k.Course.Disturb(f.Action)
		k.Course.GoOn(f.Finding().Saved)
	case verdict.Rescues(f, r):
		k.Course.Rescue(f.Action, r)
		goOn = true
	}
	return r, goOn
}

// unwell returns the result of a probe that reached its host, and found it not well yet.
func (k watchStep) unwell(f verdict.Evidence, why string) jobs.Result {
	why = verdict.Shortened(why, verdict.NoteMax)
	k.hear(f, why)
	k.Memory.Keep(f.Action.Keep(f.Seen(), k.Memory.Saved))
	f = k.fresh(f)
	if f.Action.Kind == scripts.KindWait {
		return verdict.NotYet(f, k.sinceNow(), k.Job.Now(), why)
	}
	return verdict.Unwell(f, k.Job.Now(), verdict.NotReady, why)
}

// hear puts the words of a probe into the transcript if they are news: a wait may have hundreds of
// probes, which all say the same.
func (k watchStep) hear(f verdict.Evidence, why string) {
	if why != "" && k.Memory.Probed().Saying == why {
		return
	}
	k.Notes.Remark(f.Action.Name, "")
	k.Said.Add(f.Result.Output)
}
