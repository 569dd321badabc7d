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
)

// This file does the steps of kind confirm: the host is told to make a change, and to take it
// back by itself unless it is confirmed in time; the change is proven over a new connection,
// and confirmed. Which of the two came about the host decides, by a rename, and is asked;
// nothing is concluded here from time that passed.

const (
	// proofMost is the longest time between two tries of a proof.
	proofMost = 5 * time.Second

	notProven = "not proven yet"

	// keepNumber tells the record of keep from those of tries of a step.
	keepNumber = 200 * triesApart
)

// proofPause is the time between two tries of a proof: there are some ten of them at least.
func (f facts) proofPause() time.Duration {
	return min(f.action.Confirm.Within/10, proofMost)
}

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
		r = a.neverMade(a.withError(action, a.unheard))
	}
	return a.endConfirm(f, r, goOn)
}

// endConfirm goes on to the next step, or to the on_fail of this one.
func (a *attempt) endConfirm(f facts, r jobs.Result, goOn bool) (jobs.Result, bool) {
	switch {
	case goOn && a.step+1 == a.until():
		return f.through(), false
	case goOn:
		a.noteDisturbed(f.action)
		a.goOn(nil)
	case f.rescues(r):
		a.rescue(f.action, r)
		goOn = true
	}
	return r, goOn
}

// change runs a text of the change and reads how it stands then.
func (a *attempt) change(ctx context.Context, f facts, c remote.Command) (facts,
	scripts.Confirmation, bool) {
	done := a.on(jobs.Acting)
	f.result, f.err = a.conn.Run(ctx, c)
	done()
	a.hasAnswered(f.err)
	f.cause, f.order = cause(ctx), order(a.halting)
	last := lastLine(f.result.Output)
	state, ok := scripts.ReadConfirm(last)
	a.hearChange(f, state, ok)
	if f.err == nil && !ok {
		f.err = errors.New(hostSaid(fmt.Sprintf("exit %d, and it is not known how the change stands",
			f.result.ExitCode), last))
	}
	return f, state, ok && f.err == nil
}

// arms has the change made. armed: as far as is known it is, and not confirmed.
func (a *attempt) arms(ctx context.Context, action scripts.Action, bound time.Duration) (
	r jobs.Result, armed bool) {
	before, now := a.probed(), a.now()
	again := before.Since != 0 || a.mayHaveBegun()
	free := now.Add(bound + jobs.KillGrace)
	a.memory.Probe = &probing{Since: cmp.Or(before.Since, now), Free: free,
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
	if keepsRecords(a.grant.Host) {
		cmd.Record = a.recordOf(a.step)
		cmd.Record.Again, cmd.Record.Twice = again, before.Free != 0 && now >= before.Free
	}
	f, state, ok := a.change(ctx, f, cmd)
	switch {
	case ok:
		return a.armed(f, state)
	case f.order != nil:
		return a.takeBack(ctx, f), false
	case f.err != nil && sentKind(f.err) == "" && f.result.ExitCode < 0:
		if asked(f.err) == remote.KindUntold {
			before.Free = cmp.Or(before.Free, now.Add(max(a.grant.Bound, bound)))
			return f.appoint(jobs.KindVerify, before, before.Free.Sub(now), reason(f.err)), false
		}
		a.neverArmed(before) // it was not sent
		r, _ := judge(a.withError(action, f.err), rand.Float64())
		return r, false
	case f.result.ExitCode > 0:
		r := f.end(jobs.Failed, jobs.ClassOperator, reason(f.err))
		return r, false
	}
	// The change may have cut the line. What became of it is asked over a new one.
	a.unheard = f.err
	return jobs.Result{}, true
}

// neverArmed forgets that this attempt was about to begin the change, and nothing of what
// was kept before: an earlier one may have begun it.
func (a *attempt) neverArmed(before probing) {
	a.memory.Probe = nil
	if before.Since != 0 {
		a.memory.Probe = &before
	}
}

func (a *attempt) withError(action scripts.Action, err error) facts {
	f := a.with(action)
	f.err = err
	return f
}

// proves asks how the change stands and goes on with it. over: there is something to say.
func (a *attempt) proves(ctx context.Context, action scripts.Action) (r jobs.Result, goOn,
	over bool) {
	f := a.with(action)
	if f.order != nil {
		return a.takeBack(ctx, f), false, true
	}
	bound, ok := bound(action.Timeout, a.lease.left())
	if !ok {
		return f.appoint(jobs.KindVerify, a.probed(), 0, "too little time is left"), false, true
	}
	f, state, ok := a.change(ctx, f, remote.Command{Shell: action.Confirm.Prove, Bound: bound,
		Stop: a.halting.Done()})
	switch {
	case f.order != nil:
		return a.takeBack(ctx, f), false, true
	case !ok:
		return a.confirmAway(ctx, action, f.err), false, true
	case state.State == scripts.ConfirmNone:
		return a.unknownThere(f)
	case state.State != scripts.ConfirmProof:
		r, goOn := a.settled(f, state, "")
		if state.State == scripts.ConfirmConfirmed {
			r, goOn = a.confirm(ctx, action, bound) // and what is to be kept may not be yet
		}
		return r, goOn, true
	}
	c := a.probed()
	c.Armed, c.Until = true, a.now().Add(state.Left)
	a.memory.Probe = &c
	f.result.ExitCode = state.Code
	why, final := a.unproven(ctx, f, state)
	switch {
	case why == "":
		r, goOn = a.confirm(ctx, action, bound)
	case final:
		r = a.refuse(ctx, f, why)
	default:
		r = a.proveLater(f, why)
	}
	return r, goOn, true
}

// neverMade is about a host that was told to make a change, and knows nothing of it.
func (a *attempt) neverMade(f facts) jobs.Result {
	switch k := sentKind(f.err); k {
	case remote.KindTimeout:
		return f.broken(k)
	case remote.KindGone:
		return f.end(jobs.Failed, jobs.ClassOperator, reason(f.err)+"; the change was not made")
	}
	return f.appoint(jobs.KindVerify, a.probed(), f.proofPause(), "the change has not begun")
}

// unknownThere is about a host that knows nothing of a change: it has not begun, or was on its
// way when it was last heard of.
func (a *attempt) unknownThere(f facts) (r jobs.Result, goOn, over bool) {
	c := a.probed()
	switch {
	case c.Armed:
		r, goOn = a.settled(f, scripts.Confirmation{State: scripts.ConfirmNone}, "")
		return r, goOn, true
	case keepsRecords(a.grant.Host), c.Free != 0 && a.now() >= c.Free:
		return r, false, false // its record tells, or nobody is at it any more
	}
	if c.Free == 0 {
		c.Since, c.Free = a.now(), a.now().Add(a.grant.Bound)
	}
	return f.appoint(jobs.KindVerify, c, max(c.Free.Sub(a.now()), f.proofPause()),
		"it may be about to begin"), false, true
}

// keptFromChange is about a change that an earlier attempt was about to make, and of which its
// host knows nothing: it is made only when a change may begin. Where the host keeps a record the
// command of that attempt may still come: it is waited for.
func (a *attempt) keptFromChange(ctx context.Context, f facts) (r jobs.Result, kept bool) {
	rules := a.admitAgain(ctx, f.action)
	if rules.ok {
		return jobs.Result{}, false
	}
	c := a.probed()
	if c.Free == 0 {
		c.Since, c.Free = a.now(), a.now().Add(a.grant.Bound)
	}
	if left := c.Free.Sub(a.now()); left > 0 {
		return f.appoint(jobs.KindVerify, c, max(left, f.proofPause()), "it may be about to begin"), true
	}
	a.memory.Probe = nil
	return a.deferred(a.with(f.action), rules), true
}

// unproven says what is not as it must be; final: and will not be.
func (a *attempt) unproven(ctx context.Context, f facts, state scripts.Confirmation) (why string,
	final bool) {
	switch state.Code {
	case 0:
	case scripts.NotYet:
		return hostSaid(notProven, lastWords(f.result.Output)), false
	default:
		return hostSaid("proof: "+f.finding().Text, lastWords(f.result.Output)), true
	}
	for _, p := range f.action.Confirm.Probes {
		if err := a.tries(ctx, p); err != nil {
			return fmt.Sprintf("probe %s: %s", p, reason(err)), false
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
		err = errors.New(hostSaid(fmt.Sprintf("exit %d", r.ExitCode), lastLine(r.Output)))
	}
	return err
}

// proveLater gives the worker back until the next try. Once its time is over the host takes
// the change back, and says so when it is asked then.
func (a *attempt) proveLater(f facts, why string) jobs.Result {
	c := a.probed()
	c.Saying = shortened(why, noteMax)
	return f.appoint(jobs.KindVerify, c, f.proofPause(), c.Saying)
}

// confirm has the change stay. Should its time have run out meanwhile, the host says so.
func (a *attempt) confirm(ctx context.Context, action scripts.Action, bound time.Duration) (
	r jobs.Result, goOn bool) {
	cmd := remote.Command{Shell: action.Confirm.Confirm, Bound: bound}
	if keepsRecords(a.grant.Host) {
		cmd.Record = a.recordOf(a.step + keepNumber)
		cmd.Record.Again, cmd.Record.Twice = true, true
		cmd.Record.Marked = false // nothing is disturbed by it
	}
	f, state, ok := a.change(ctx, a.with(action), cmd)
	if !ok {
		return a.confirmAway(ctx, action, f.err), false
	}
	return a.settled(f, state, "its time ran out before it was confirmed")
}

// refuse takes back what was not proven, at once.
func (a *attempt) refuse(ctx context.Context, f facts, why string) jobs.Result {
	c := a.probed()
	c.Saying = shortened(why, noteMax)
	a.memory.Probe = &c
	g, state, ok := a.back(ctx, f)
	if !ok {
		return a.confirmAway(ctx, f.action, g.err)
	}
	g.result.ExitCode = f.result.ExitCode
	r, _ := a.settled(g, state, why)
	return r
}

// takeBack has the change of a cancelled job taken back.
func (a *attempt) takeBack(ctx context.Context, f facts) jobs.Result {
	g, state, ok := a.back(ctx, f)
	if ok && state.State == scripts.ConfirmRolledBack && state.Code == 0 {
		return f.endOf(jobs.RolledBack, jobs.ClassNone, f.note()+"; the host took it back")
	}
	if ok && state.State == scripts.ConfirmNone && !a.probed().Armed {
		return f.endOf(jobs.Cancelled, jobs.ClassNone, f.note()+"; stopped before "+f.stepWords())
	}
	how := "it is not known whether it is confirmed; if not the host takes it back"
	if ok {
		how = "it is " + string(state.State)
	}
	if g.err != nil {
		how = also(how, reason(g.err))
	}
	r := f.endOf(jobs.Unknown, jobs.ClassOperator, f.note()+"; "+how)
	r.KeepLock = true
	return r
}

func (a *attempt) back(ctx context.Context, f facts) (facts, scripts.Confirmation, bool) {
	bound, ok := bound(f.action.Timeout, a.lease.left())
	if !ok {
		f.err = fmt.Errorf("too little time is left")
		return f, scripts.Confirmation{}, false
	}
	return a.change(ctx, f, remote.Command{Shell: f.action.Confirm.Back, Bound: bound})
}
