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

// confirmStep does a step of kind confirm.
type confirmStep struct {
	onHost
	unheard error // the answer of a host that was told to make a change was lost
}

func newConfirmStep(a *attempt) stepKind { return &confirmStep{onHost: onHost{a}} }

// away concludes from a host that cannot be asked about its change, if one may have begun.
func (k *confirmStep) away(ctx context.Context, action scripts.Action, err error) jobs.Result {
	if k.at.memory.Probe == nil && !k.at.mayHaveBegun() {
		return k.onHost.away(ctx, action, err)
	}
	return k.confirmAway(ctx, action, err)
}

// look leads a change on from where it stands.
func (k *confirmStep) look(ctx context.Context, s start) (r jobs.Result, goOn bool) {
	action, bound := s.action, s.bound
	defer k.at.on(verdict.Looking(action.Kind))()
	f, c := k.at.with(action), k.at.probed()
	if c.Since != 0 || k.at.mayHaveBegun() {
		r, goOn, over := k.proves(ctx, action)
		if over {
			return k.endConfirm(f, r, goOn)
		}
		if r, kept := k.keptFromChange(ctx, f); kept {
			return r, false
		}
	}
	if r, armed := k.arms(ctx, action, bound); !armed {
		return k.endConfirm(f, r, false)
	}
	k.at.hangUp()
	conn, err := k.at.connect(k.at.halt.ctx)
	if k.at.conn = conn; err != nil {
		return k.confirmAway(ctx, action, err), false
	}
	r, goOn, over := k.proves(ctx, action)
	if !over {
		r = verdict.NeverMade(k.withError(action, k.unheard))
	}
	return k.endConfirm(f, r, goOn)
}

// endConfirm goes on to the next step, or to the on_fail of this one.
func (k *confirmStep) endConfirm(f verdict.Evidence, r jobs.Result, goOn bool) (jobs.Result, bool) {
	f = k.at.fresh(f)
	switch {
	case goOn && k.at.step+1 == k.at.until():
		return f.Through(), false
	case goOn:
		k.at.noteDisturbed(f.Action)
		k.at.goOn(nil)
	case verdict.Rescues(f, r):
		k.at.rescue(f.Action, r)
		goOn = true
	}
	return r, goOn
}

// change runs a text of the change and reads how it stands then.
func (k *confirmStep) change(ctx context.Context, f verdict.Evidence, c remote.Command) (
	verdict.Evidence, scripts.Confirmation, bool) {
	done := k.at.on(jobs.Acting)
	f.Result, f.Err = k.at.conn.Run(ctx, c)
	done()
	k.at.hasAnswered(f.Err)
	f.Cause, f.Order = cause(ctx), order(k.at.halt.ctx)
	last := verdict.LastLine(f.Result.Output)
	state, ok := scripts.ReadConfirm(last)
	k.hearChange(f, state, ok)
	if f.Err == nil && !ok {
		how := fmt.Sprintf("exit %d, and it is not known how the change stands", f.Result.ExitCode)
		f.Err = errors.New(verdict.HostSaid(how, last))
	}
	return f, state, ok && f.Err == nil
}

// arms has the change made. armed: as far as is known it is, and not confirmed.
func (k *confirmStep) arms(ctx context.Context, action scripts.Action, bound time.Duration) (
	r jobs.Result, armed bool) {
	before, now := k.at.probed(), k.at.now()
	again := before.Since != 0 || k.at.mayHaveBegun()
	free := now.Add(bound + jobs.KillGrace)
	k.at.memory.Probe = &verdict.Probing{Since: cmp.Or(before.Since, now), Free: free,
		Until: free.Add(action.Confirm.Within)}
	v, err := k.at.queue().checkpoint(k.at.halt.ctx)
	f := k.at.with(action)
	switch {
	case err != nil:
		k.neverArmed(before)
		return k.at.queue().noGo(ctx, action, err), false
	case v == jobs.Stale:
		k.at.stale = true
		return jobs.Result{}, false
	case v != jobs.Go:
		k.neverArmed(before)
		return k.at.queue().notAllowed(action), false
	}
	if !again {
		if r, late := k.at.times.goCameLate(k.at.halt.ctx, action); late {
			return r, false
		}
	}
	k.at.begin()
	cmd := remote.Command{Shell: action.Confirm.Arm, Bound: bound, Stop: k.at.halt.ctx.Done()}
	if verdict.KeepsRecords(k.at.grant.Host) {
		cmd.Record = k.at.records().recordOf(k.at.step)
		cmd.Record.Again, cmd.Record.Twice = again, before.Free != 0 && now >= before.Free
	}
	f, state, ok := k.change(ctx, f, cmd)
	switch {
	case ok:
		return k.armed(f, state)
	case f.Order != nil:
		return k.takeBack(ctx, f), false
	case f.Err != nil && verdict.SentKind(f.Err) == "" && f.Result.ExitCode < 0:
		if verdict.Asked(f.Err) == remote.KindUntold {
			before.Free = cmp.Or(before.Free, now.Add(max(k.at.grant.Bound, bound)))
			return f.Appoint(jobs.KindVerify, before, before.Free.Sub(now), verdict.Reason(f.Err)), false
		}
		k.neverArmed(before) // it was not sent
		r, _ := verdict.Judge(k.withError(action, f.Err), rand.Float64())
		return r, false
	case f.Result.ExitCode > 0:
		r := f.End(jobs.Failed, jobs.ClassOperator, verdict.Reason(f.Err))
		return r, false
	}
	// The change may have cut the line. What became of it is asked over a new one.
	k.unheard = f.Err
	return jobs.Result{}, true
}

// neverArmed forgets that this attempt was about to begin the change, and nothing of what
// was kept before: an earlier one may have begun it.
func (k *confirmStep) neverArmed(before verdict.Probing) {
	k.at.memory.Probe = nil
	if before.Since != 0 {
		k.at.memory.Probe = &before
	}
}

func (k *confirmStep) withError(action scripts.Action, err error) verdict.Evidence {
	f := k.at.with(action)
	f.Err = err
	return f
}

// proves asks how the change stands and goes on with it. over: there is something to say.
func (k *confirmStep) proves(ctx context.Context, action scripts.Action) (r jobs.Result, goOn,
	over bool) {
	f := k.at.with(action)
	if f.Order != nil {
		return k.takeBack(ctx, f), false, true
	}
	bound, ok := verdict.Bound(action.Timeout, k.at.lease.left())
	if !ok {
		return f.Appoint(jobs.KindVerify, k.at.probed(), 0, "too little time is left"), false, true
	}
	f, state, ok := k.change(ctx, f, remote.Command{Shell: action.Confirm.Prove, Bound: bound,
		Stop: k.at.halt.ctx.Done()})
	switch {
	case f.Order != nil:
		return k.takeBack(ctx, f), false, true
	case !ok:
		return k.confirmAway(ctx, action, f.Err), false, true
	case state.State == scripts.ConfirmNone:
		return verdict.UnknownThere(f, k.at.now())
	case state.State != scripts.ConfirmProof:
		r, goOn := verdict.Settled(f, state, "")
		if state.State == scripts.ConfirmConfirmed {
			r, goOn = k.confirm(ctx, action, bound) // and what is to be kept may not be yet
		}
		return r, goOn, true
	}
	k.arm(state.Left)
	f = k.at.fresh(f)
	f.Result.ExitCode = state.Code
	why, final := k.unproven(ctx, f, state)
	switch {
	case why == "":
		r, goOn = k.confirm(ctx, action, bound)
	case final:
		r = k.refuse(ctx, f, why)
	default:
		r = verdict.ProveLater(f, why)
	}
	return r, goOn, true
}

// keptFromChange is about a change that an earlier attempt was about to make, and of which its
// host knows nothing: it is made only when a change may begin. Where the host keeps a record the
// command of that attempt may still come: it is waited for.
func (k *confirmStep) keptFromChange(ctx context.Context, f verdict.Evidence) (r jobs.Result,
	kept bool) {
	rules := k.at.times.admitAgain(ctx, f.Action)
	if rules.ok {
		return jobs.Result{}, false
	}
	c := k.at.probed()
	if c.Free == 0 {
		c.Since, c.Free = k.at.now(), k.at.now().Add(k.at.grant.Bound)
	}
	if left := c.Free.Sub(k.at.now()); left > 0 {
		return f.Appoint(jobs.KindVerify, c, max(left, verdict.ProofPause(f)),
			"it may be about to begin"), true
	}
	k.at.memory.Probe = nil
	return k.at.times.deferred(k.at.with(f.Action), rules, nil), true
}

// unproven says what is not as it must be; final: and will not be.
func (k *confirmStep) unproven(ctx context.Context, f verdict.Evidence,
	state scripts.Confirmation) (why string, final bool) {
	switch state.Code {
	case 0:
	case scripts.NotYet:
		return verdict.HostSaid(verdict.NotProven, verdict.LastWords(f.Result.Output)), false
	default:
		return verdict.HostSaid("proof: "+f.Finding().Text, verdict.LastWords(f.Result.Output)), true
	}
	for _, p := range f.Action.Confirm.Probes {
		if err := k.tries(ctx, p); err != nil {
			return fmt.Sprintf("probe %s: %s", p, verdict.Reason(err)), false
		}
	}
	return "", false
}

// tries does a probe.
func (k *confirmStep) tries(ctx context.Context, p scripts.Probe) error {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime,
		fmt.Errorf("the probe was not over within %s", probeTime))
	defer cancel()
	if p.TCP != "" {
		return remote.TCP(ctx, p.TCP)
	}
	r, err := k.at.conn.Run(ctx, remote.Command{Shell: p.Shell(),
		Bound: probeTime - verdict.AnswerTime,
		Stop:  k.at.halt.ctx.Done()})
	if err == nil && r.ExitCode != 0 {
		err = errors.New(verdict.HostSaid(fmt.Sprintf("exit %d", r.ExitCode), verdict.LastLine(r.Output)))
	}
	return err
}

// confirm has the change stay. Should its time have run out meanwhile, the host says so.
func (k *confirmStep) confirm(ctx context.Context, action scripts.Action, bound time.Duration) (
	r jobs.Result, goOn bool) {
	cmd := remote.Command{Shell: action.Confirm.Confirm, Bound: bound}
	if verdict.KeepsRecords(k.at.grant.Host) {
		cmd.Record = k.at.records().recordOf(k.at.step + keepNumber)
		cmd.Record.Again, cmd.Record.Twice = true, true
		cmd.Record.Marked = false // nothing is disturbed by it
	}
	f, state, ok := k.change(ctx, k.at.with(action), cmd)
	if !ok {
		return k.confirmAway(ctx, action, f.Err), false
	}
	return verdict.Settled(k.at.fresh(f), state, "its time ran out before it was confirmed")
}

// refuse takes back what was not proven, at once.
func (k *confirmStep) refuse(ctx context.Context, f verdict.Evidence, why string) jobs.Result {
	c := k.at.probed()
	c.Saying = verdict.Shortened(why, verdict.NoteMax)
	k.at.memory.Probe = &c
	g, state, ok := k.back(ctx, f)
	if !ok {
		return k.confirmAway(ctx, f.Action, g.Err)
	}
	g.Result.ExitCode = f.Result.ExitCode
	r, _ := verdict.Settled(k.at.fresh(g), state, why)
	return r
}

// takeBack has the change of a cancelled job taken back.
func (k *confirmStep) takeBack(ctx context.Context, f verdict.Evidence) jobs.Result {
	g, state, ok := k.back(ctx, f)
	return verdict.TakenBack(k.at.fresh(f), g, state, ok)
}

// back tells the host to take its change back.
func (k *confirmStep) back(ctx context.Context, f verdict.Evidence) (verdict.Evidence,
	scripts.Confirmation, bool) {
	bound, ok := verdict.Bound(f.Action.Timeout, k.at.lease.left())
	if !ok {
		f.Err = fmt.Errorf("too little time is left")
		return f, scripts.Confirmation{}, false
	}
	return k.change(ctx, f, remote.Command{Shell: f.Action.Confirm.Back, Bound: bound})
}
