package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"muster/fleet/remote"
	"muster/internal/trial"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file does the steps of kind confirm. It tells the host to make a change, and to take the
// change back by itself unless somebody confirms it in time. Then it proves the change over a new
// connection, and confirms it. The host decides by a rename whether the change stays, and this file
// asks it; it concludes nothing from the time that has passed.

// keepTry is the number of the record of keep, beyond those of all tries of a step.
const keepTry = 200

// confirmStep does a step of kind confirm.
type confirmStep struct {
	onHost
	unheard error // why the host's answer to the command for the change was lost
}

func newConfirmStep(h Hand) Kind { return &confirmStep{onHost: onHost{h}} }

// Away returns the result of a step whose host cannot be asked about its change, if one may have
// begun.
func (k *confirmStep) Away(ctx context.Context, action scripts.Action, err error) jobs.Result {
	if k.Memory.Probe == nil && !k.Job.Evidence(action).MayHaveBegun() {
		return k.onHost.Away(ctx, action, err)
	}
	return k.confirmAway(ctx, action, err)
}

// Look continues a change from the state in which the host has it.
func (k *confirmStep) Look(ctx context.Context, s Start) (r jobs.Result, goOn bool) {
	action, bound := s.Action, s.Bound
	defer k.Job.Spend(verdict.Looking(action.Kind))()
	f, c := k.Job.Evidence(action), k.Memory.Probed()
	if c.Since != 0 || f.MayHaveBegun() {
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
	if err := k.Host.Reconnect(k.Stop); err != nil {
		return k.confirmAway(ctx, action, err), false
	}
	r, goOn, over := k.proves(ctx, action)
	if !over {
		r = verdict.NeverMade(k.withError(action, k.unheard))
	}
	return k.endConfirm(f, r, goOn)
}

// endConfirm leads the job to the next step, or to the on_fail of this one.
func (k *confirmStep) endConfirm(f verdict.Evidence, r jobs.Result, goOn bool) (jobs.Result, bool) {
	f = k.fresh(f)
	switch {
	case goOn && f.Step+1 == f.Until:
		return f.Through(), false
	case goOn:
		k.Course.Disturb(f.Action)
		k.Course.GoOn(nil)
	case verdict.Rescues(f, r):
		k.Course.Rescue(f.Action, r)
		goOn = true
	}
	return r, goOn
}

// change runs a text of the change and reads the state that the host reports.
func (k *confirmStep) change(ctx context.Context, f verdict.Evidence, c remote.Command) (
	verdict.Evidence, trial.State, bool) {
	done := k.Job.Spend(jobs.Acting)
	f.Result, f.Err = k.Host.Run(ctx, c)
	done()
	k.Notes.Answered(f.Err)
	f.Cause, f.Order = verdict.CauseOf(ctx), k.order()
	last := verdict.LastLine(f.Result.Output)
	state, ok := trial.Read(last)
	k.hearChange(f, state, ok)
	if f.Err == nil && !ok {
		how := fmt.Sprintf("exit %d, and the state of the change is not known", f.Result.ExitCode)
		f.Err = errors.New(verdict.HostSaid(how, last))
	}
	return f, state, ok && f.Err == nil
}

// arms has the host make the change. armed means that the host has made it as far as is known, and
// nobody has confirmed it.
func (k *confirmStep) arms(ctx context.Context, action scripts.Action, bound time.Duration) (
	r jobs.Result, armed bool) {
	before, now := k.Memory.Probed(), k.Job.Now()
	again := before.Since != 0 || k.Job.Evidence(action).MayHaveBegun()
	free := now.Add(bound + jobs.KillGrace)
	k.Memory.Probe = &verdict.Probing{Since: cmp.Or(before.Since, now), Free: free,
		Until: free.Add(action.Confirm().Within)}
	if err := k.Permits.Ask(); err != nil {
		k.neverArmed(before)
		return k.Permits.Refused(ctx, action, err), false
	}
	f := k.Job.Evidence(action)
	if !again {
		if r, late := k.goCameLate(action); late {
			return r, false
		}
	}
	k.Course.Begin()
	cmd := remote.Command{Shell: action.Confirm().Arm, Bound: bound, Stop: k.Stop.Done()}
	if verdict.KeepsRecords(f.Grant.Host) {
		cmd.Record = k.Records.Numbered(0)
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
			before.Free = cmp.Or(before.Free, now.Add(max(f.Grant.Bound, bound)))
			return f.Appoint(jobs.KindVerify, before, before.Free.Sub(now), verdict.Reason(f.Err)), false
		}
		k.neverArmed(before) // it was not sent
		r, _ := verdict.Judge(k.withError(action, f.Err), k.Job.Chance())
		return r, false
	case f.Result.ExitCode > 0:
		r := f.End(jobs.Failed, jobs.ClassOperator, verdict.Reason(f.Err))
		return r, false
	}
	// The change may have cut the connection. The next question goes over a new one.
	k.unheard = f.Err
	return jobs.Result{}, true
}

// neverArmed forgets that this attempt was about to begin the change. It keeps what was known
// before, because an earlier attempt may have begun the change.
func (k *confirmStep) neverArmed(before verdict.Probing) {
	k.Memory.Probe = nil
	if before.Since != 0 {
		k.Memory.Probe = &before
	}
}

func (k *confirmStep) withError(action scripts.Action, err error) verdict.Evidence {
	f := k.Job.Evidence(action)
	f.Err = err
	return f
}

// proves asks the host for the state of the change and continues from there. over means that the
// step has a result, or has ended well.
func (k *confirmStep) proves(ctx context.Context, action scripts.Action) (r jobs.Result, goOn,
	over bool) {
	f := k.Job.Evidence(action)
	if f.Order != nil {
		return k.takeBack(ctx, f), false, true
	}
	bound, ok := verdict.Bound(action.Timeout, k.Job.Left())
	if !ok {
		return f.Appoint(jobs.KindVerify, k.Memory.Probed(), 0, "too little time is left"), false, true
	}
	f, state, ok := k.change(ctx, f, remote.Command{Shell: action.Confirm().Prove, Bound: bound,
		Stop: k.Stop.Done()})
	switch {
	case f.Order != nil:
		return k.takeBack(ctx, f), false, true
	case !ok:
		return k.confirmAway(ctx, action, f.Err), false, true
	case state.Word == trial.None:
		return verdict.UnknownThere(f, k.Job.Now())
	case state.Word != trial.Proof:
		r, goOn := verdict.Settled(f, state, "")
		if state.Word == trial.Confirmed {
			r, goOn = k.confirm(ctx, action, bound) // its keep may not have run yet
		}
		return r, goOn, true
	}
	k.arm(state.Left)
	f = k.fresh(f)
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

// keptFromChange returns the result of a step at a time when no change may begin. Look calls it if
// an earlier attempt was about to make the change and the host does not know the change. The
// command of that attempt may still arrive, so the step first waits until it cannot any more.
func (k *confirmStep) keptFromChange(ctx context.Context, f verdict.Evidence) (r jobs.Result,
	kept bool) {
	shut := k.Times.AdmitAgain(ctx, f.Action)
	if shut == nil {
		return jobs.Result{}, false
	}
	c := k.Memory.Probed()
	if c.Free == 0 {
		c.Since, c.Free = k.Job.Now(), k.Job.Now().Add(f.Grant.Bound)
	}
	if left := c.Free.Sub(k.Job.Now()); left > 0 {
		return f.Appoint(jobs.KindVerify, c, max(left, verdict.ProofPause(f)),
			"it may be about to begin"), true
	}
	k.Memory.Probe = nil
	return k.Times.Defer(k.Job.Evidence(f.Action), *shut), true
}

// unproven returns what is missing in the proof of the change; empty if nothing is. final means
// that further tries cannot prove it.
func (k *confirmStep) unproven(ctx context.Context, f verdict.Evidence,
	state trial.State) (why string, final bool) {
	switch state.Code {
	case 0:
	case scripts.NotYet:
		return verdict.HostSaid(verdict.NotProven, verdict.LastWords(f.Result.Output)), false
	default:
		return verdict.HostSaid("proof: "+f.Finding().Text, verdict.LastWords(f.Result.Output)), true
	}
	for _, p := range f.Action.Confirm().Probes {
		if err := k.tries(ctx, p); err != nil {
			return fmt.Sprintf("probe %s: %s", p, verdict.Reason(err)), false
		}
	}
	return "", false
}

// tries makes one probe.
func (k *confirmStep) tries(ctx context.Context, p trial.Probe) error {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime,
		fmt.Errorf("the probe was not over within %s", probeTime))
	defer cancel()
	if p.TCP != "" {
		return remote.TCP(ctx, p.TCP)
	}
	r, err := k.Host.Run(ctx, remote.Command{Shell: p.Shell(),
		Bound: probeTime - verdict.AnswerTime,
		Stop:  k.Stop.Done()})
	if err == nil && r.ExitCode != 0 {
		err = errors.New(verdict.HostSaid(fmt.Sprintf("exit %d", r.ExitCode), verdict.LastLine(r.Output)))
	}
	return err
}

// confirm tells the host to keep the change. The host answers if the time of the change has run out
// meanwhile.
func (k *confirmStep) confirm(ctx context.Context, action scripts.Action, bound time.Duration) (
	r jobs.Result, goOn bool) {
	f := k.Job.Evidence(action)
	cmd := remote.Command{Shell: action.Confirm().Confirm, Bound: bound}
	if verdict.KeepsRecords(f.Grant.Host) {
		cmd.Record = k.Records.Numbered(keepTry)
		cmd.Record.Again, cmd.Record.Twice = true, true
		cmd.Record.Marked = false // it disturbs nothing
	}
	f, state, ok := k.change(ctx, f, cmd)
	if !ok {
		return k.confirmAway(ctx, action, f.Err), false
	}
	return verdict.Settled(k.fresh(f), state, "its time ran out before it was confirmed")
}

// refuse tells the host to take back at once a change that was not proven.
func (k *confirmStep) refuse(ctx context.Context, f verdict.Evidence, why string) jobs.Result {
	c := k.Memory.Probed()
	c.Saying = verdict.Shortened(why, verdict.NoteMax)
	k.Memory.Probe = &c
	g, state, ok := k.back(ctx, f)
	if !ok {
		return k.confirmAway(ctx, f.Action, g.Err)
	}
	g.Result.ExitCode = f.Result.ExitCode
	r, _ := verdict.Settled(k.fresh(g), state, why)
	return r
}

// takeBack tells the host to take back the change of a cancelled job.
func (k *confirmStep) takeBack(ctx context.Context, f verdict.Evidence) jobs.Result {
	g, state, ok := k.back(ctx, f)
	return verdict.TakenBack(k.fresh(f), g, state, ok)
}

// back tells the host to take its change back.
func (k *confirmStep) back(ctx context.Context, f verdict.Evidence) (verdict.Evidence,
	trial.State, bool) {
	bound, ok := verdict.Bound(f.Action.Timeout, k.Job.Left())
	if !ok {
		f.Err = fmt.Errorf("too little time is left")
		return f, trial.State{}, false
	}
	return k.change(ctx, f, remote.Command{Shell: f.Action.Confirm().Back, Bound: bound})
}
