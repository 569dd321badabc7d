package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file does the steps of kind confirm: the host is told to make a change, and to take it
// back by itself unless it is confirmed in time; the change is proven over a new connection,
// and confirmed. Which of the two came about the host decides, by a rename, and is asked;
// nothing is concluded here from time that passed.

const (
	// keepNumber tells the record of keep from those of tries of a step.
	keepNumber = 200 * triesApart
)

// confirms leads a change on from where it stands.
func (a *attempt) confirms(ctx context.Context, action scripts.Action,
	bound time.Duration) (r jobs.Result, goOn bool) {
	f, c := a.with(action), a.probed()
	if c.Since != 0 || a.mayHaveBegun() {
		r, goOn, over := a.proves(ctx, action)
		if over {
			return a.endConfirm(f, r, goOn)
		}
		if r, kept := a.keptFromChange(ctx, f); kept {
			return r, false
		}
	}
	if r, armed := a.arms(ctx, action, bound); !armed {
		return a.endConfirm(f, r, false)
	}
	a.hangUp()
	conn, err := a.connect(a.halting)
	if a.conn = conn; err != nil {
		return a.confirmAway(ctx, action, err), false
	}
	r, goOn, over := a.proves(ctx, action)
	if !over {
		r = verdict.NeverMade(a.withError(action, a.unheard))
	}
	return a.endConfirm(f, r, goOn)
}

// endConfirm goes on to the next step, or to the on_fail of this one.
func (a *attempt) endConfirm(f verdict.Evidence, r jobs.Result, goOn bool) (jobs.Result, bool) {
	f = a.fresh(f)
	switch {
	case goOn && a.step+1 == a.until():
		return f.Through(), false
	case goOn:
		a.noteDisturbed(f.Action)
		a.goOn(nil)
	case verdict.Rescues(f, r):
		a.rescue(f.Action, r)
		goOn = true
	}
	return r, goOn
}

// change runs a text of the change and reads how it stands then.
func (a *attempt) change(ctx context.Context, f verdict.Evidence, c remote.Command) (
	verdict.Evidence, scripts.Confirmation, bool) {
	done := a.on(jobs.Acting)
	f.Result, f.Err = a.conn.Run(ctx, c)
	done()
	a.hasAnswered(f.Err)
	f.Cause, f.Order = cause(ctx), order(a.halting)
	last := verdict.LastLine(f.Result.Output)
	state, ok := scripts.ReadConfirm(last)
	a.hearChange(f, state, ok)
	if f.Err == nil && !ok {
		how := fmt.Sprintf("exit %d, and it is not known how the change stands", f.Result.ExitCode)
		f.Err = errors.New(verdict.HostSaid(how, last))
	}
	return f, state, ok && f.Err == nil
}

// arms has the change made. armed: as far as is known it is, and not confirmed.
func (a *attempt) arms(ctx context.Context, action scripts.Action, bound time.Duration) (
	r jobs.Result, armed bool) {
	before, now := a.probed(), a.now()
	again := before.Since != 0 || a.mayHaveBegun()
	free := now.Add(bound + jobs.KillGrace)
	a.memory.Probe = &verdict.Probing{Since: cmp.Or(before.Since, now), Free: free,
		Until: free.Add(action.Confirm.Within)}
	v, err := a.checkpoint(a.halting)
	f := a.with(action)
	switch {
	case err != nil:
		a.neverArmed(before)
		return a.noGo(ctx, action, err), false
	case v == jobs.Stale:
		a.stale = true
		return jobs.Result{}, false
	case v != jobs.Go:
		a.neverArmed(before)
		return a.notAllowed(action), false
	}
	if !again {
		if r, late := a.goCameLate(a.halting, action); late {
			return r, false
		}
	}
	a.begin()
	cmd := remote.Command{Shell: action.Confirm.Arm, Bound: bound, Stop: a.halting.Done()}
	if verdict.KeepsRecords(a.grant.Host) {
		cmd.Record = a.recordOf(a.step)
		cmd.Record.Again, cmd.Record.Twice = again, before.Free != 0 && now >= before.Free
	}
	f, state, ok := a.change(ctx, f, cmd)
	switch {
	case ok:
		return a.armed(f, state)
	case f.Order != nil:
		return a.takeBack(ctx, f), false
	case f.Err != nil && verdict.SentKind(f.Err) == "" && f.Result.ExitCode < 0:
		if verdict.Asked(f.Err) == remote.KindUntold {
			before.Free = cmp.Or(before.Free, now.Add(max(a.grant.Bound, bound)))
			return f.Appoint(jobs.KindVerify, before, before.Free.Sub(now), verdict.Reason(f.Err)), false
		}
		a.neverArmed(before) // it was not sent
		r, _ := verdict.Judge(a.withError(action, f.Err), rand.Float64())
		return r, false
	case f.Result.ExitCode > 0:
		r := f.End(jobs.Failed, jobs.ClassOperator, verdict.Reason(f.Err))
		return r, false
	}
	// The change may have cut the line. What became of it is asked over a new one.
	a.unheard = f.Err
	return jobs.Result{}, true
}

// neverArmed forgets that this attempt was about to begin the change, and nothing of what
// was kept before: an earlier one may have begun it.
func (a *attempt) neverArmed(before verdict.Probing) {
	a.memory.Probe = nil
	if before.Since != 0 {
		a.memory.Probe = &before
	}
}

func (a *attempt) withError(action scripts.Action, err error) verdict.Evidence {
	f := a.with(action)
	f.Err = err
	return f
}

// proves asks how the change stands and goes on with it. over: there is something to say.
func (a *attempt) proves(ctx context.Context, action scripts.Action) (r jobs.Result, goOn,
	over bool) {
	f := a.with(action)
	if f.Order != nil {
		return a.takeBack(ctx, f), false, true
	}
	bound, ok := bound(action.Timeout, a.lease.left())
	if !ok {
		return f.Appoint(jobs.KindVerify, a.probed(), 0, "too little time is left"), false, true
	}
	f, state, ok := a.change(ctx, f, remote.Command{Shell: action.Confirm.Prove, Bound: bound,
		Stop: a.halting.Done()})
	switch {
	case f.Order != nil:
		return a.takeBack(ctx, f), false, true
	case !ok:
		return a.confirmAway(ctx, action, f.Err), false, true
	case state.State == scripts.ConfirmNone:
		return verdict.UnknownThere(f, a.now())
	case state.State != scripts.ConfirmProof:
		r, goOn := verdict.Settled(f, state, "")
		if state.State == scripts.ConfirmConfirmed {
			r, goOn = a.confirm(ctx, action, bound) // and what is to be kept may not be yet
		}
		return r, goOn, true
	}
	a.arm(state.Left)
	f = a.fresh(f)
	f.Result.ExitCode = state.Code
	why, final := a.unproven(ctx, f, state)
	switch {
	case why == "":
		r, goOn = a.confirm(ctx, action, bound)
	case final:
		r = a.refuse(ctx, f, why)
	default:
		r = verdict.ProveLater(f, why)
	}
	return r, goOn, true
}

// keptFromChange is about a change that an earlier attempt was about to make, and of which its
// host knows nothing: it is made only when a change may begin. Where the host keeps a record the
// command of that attempt may still come: it is waited for.
func (a *attempt) keptFromChange(ctx context.Context, f verdict.Evidence) (r jobs.Result,
	kept bool) {
	rules := a.admitAgain(ctx, f.Action)
	if rules.ok {
		return jobs.Result{}, false
	}
	c := a.probed()
	if c.Free == 0 {
		c.Since, c.Free = a.now(), a.now().Add(a.grant.Bound)
	}
	if left := c.Free.Sub(a.now()); left > 0 {
		return f.Appoint(jobs.KindVerify, c, max(left, verdict.ProofPause(f)),
			"it may be about to begin"), true
	}
	a.memory.Probe = nil
	return a.deferred(a.with(f.Action), rules, nil), true
}

// unproven says what is not as it must be; final: and will not be.
func (a *attempt) unproven(ctx context.Context, f verdict.Evidence,
	state scripts.Confirmation) (why string, final bool) {
	switch state.Code {
	case 0:
	case scripts.NotYet:
		return verdict.HostSaid(verdict.NotProven, verdict.LastWords(f.Result.Output)), false
	default:
		return verdict.HostSaid("proof: "+f.Finding().Text, verdict.LastWords(f.Result.Output)), true
	}
	for _, p := range f.Action.Confirm.Probes {
		if err := a.tries(ctx, p); err != nil {
			return fmt.Sprintf("probe %s: %s", p, verdict.Reason(err)), false
		}
	}
	return "", false
}

// tries does a probe.
func (a *attempt) tries(ctx context.Context, p scripts.Probe) error {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime,
		fmt.Errorf("the probe was not over within %s", probeTime))
	defer cancel()
	if p.TCP != "" {
		return remote.TCP(ctx, p.TCP)
	}
	r, err := a.conn.Run(ctx, remote.Command{Shell: p.Shell(), Bound: probeTime - answerTime,
		Stop: a.halting.Done()})
	if err == nil && r.ExitCode != 0 {
		err = errors.New(verdict.HostSaid(fmt.Sprintf("exit %d", r.ExitCode), verdict.LastLine(r.Output)))
	}
	return err
}

// confirm has the change stay. Should its time have run out meanwhile, the host says so.
func (a *attempt) confirm(ctx context.Context, action scripts.Action, bound time.Duration) (
	r jobs.Result, goOn bool) {
	cmd := remote.Command{Shell: action.Confirm.Confirm, Bound: bound}
	if verdict.KeepsRecords(a.grant.Host) {
		cmd.Record = a.recordOf(a.step + keepNumber)
		cmd.Record.Again, cmd.Record.Twice = true, true
		cmd.Record.Marked = false // nothing is disturbed by it
	}
	f, state, ok := a.change(ctx, a.with(action), cmd)
	if !ok {
		return a.confirmAway(ctx, action, f.Err), false
	}
	return verdict.Settled(a.fresh(f), state, "its time ran out before it was confirmed")
}

// refuse takes back what was not proven, at once.
func (a *attempt) refuse(ctx context.Context, f verdict.Evidence, why string) jobs.Result {
	c := a.probed()
	c.Saying = verdict.Shortened(why, verdict.NoteMax)
	a.memory.Probe = &c
	g, state, ok := a.back(ctx, f)
	if !ok {
		return a.confirmAway(ctx, f.Action, g.Err)
	}
	g.Result.ExitCode = f.Result.ExitCode
	r, _ := verdict.Settled(a.fresh(g), state, why)
	return r
}

// takeBack has the change of a cancelled job taken back.
func (a *attempt) takeBack(ctx context.Context, f verdict.Evidence) jobs.Result {
	g, state, ok := a.back(ctx, f)
	return verdict.TakenBack(a.fresh(f), g, state, ok)
}

// back tells the host to take its change back.
func (a *attempt) back(ctx context.Context, f verdict.Evidence) (verdict.Evidence,
	scripts.Confirmation, bool) {
	bound, ok := bound(f.Action.Timeout, a.lease.left())
	if !ok {
		f.Err = fmt.Errorf("too little time is left")
		return f, scripts.Confirmation{}, false
	}
	return a.change(ctx, f, remote.Command{Shell: f.Action.Confirm.Back, Bound: bound})
}
