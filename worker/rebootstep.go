package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/agreed"
	"muster/worker/verdict"
)

// rebootStep does a step of kind reboot: once it has told its host, it probes that like verify.
type rebootStep struct{ verifyStep }

func newRebootStep(a *attempt) stepKind { return rebootStep{verifyStep{watchStep{onHost{a}}}} }

// begin has nothing to do without a host.
func (k rebootStep) begin(ctx context.Context, f verdict.Evidence) (r jobs.Result, done,
	goOn bool) {
	return k.onHost.begin(ctx, f)
}

// look leads the host to a new boot, and probes it there.
func (k rebootStep) look(ctx context.Context, s start) (r jobs.Result, goOn bool) {
	defer k.at.on(verdict.Looking(s.action.Kind))()
	r, ready := k.reboots(ctx, s)
	if !ready || s.action.Shell == "" {
		return k.endProbe(k.at.with(s.action), r, ready)
	}
	return k.watchStep.look(ctx, s)
}

// reboots leads a host from its old boot to a new one. ready: it is there.
func (k rebootStep) reboots(ctx context.Context, s start) (r jobs.Result, ready bool) {
	action := s.action
	f, c := k.at.with(action), k.at.probed()
	const ask = "cat /proc/sys/kernel/random/boot_id"
	got, err := k.at.conn.Run(ctx, remote.Command{Shell: ask, Bound: probeTime,
		Stop: k.at.halt.ctx.Done()})
	k.at.hasAnswered(err)
	f.Order = order(k.at.halt.ctx)
	if err != nil && c.Boot != "" {
		return k.away(ctx, action, err), false
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
		return verdict.Unwell(f, k.at.now(), verdict.NotReady, "its boot id cannot be read"), false
	case c.Boot != "" && boot != c.Boot:
		return jobs.Result{}, true
	case c.Boot != "" && c.Told:
		return verdict.Unwell(f, k.at.now(), verdict.NotReady, "it has not gone down yet"), false
	}
	began := c.Boot != ""
	if began {
		if r, kept := k.keptFromReboot(ctx, f); kept {
			return r, false
		}
	}
	c.Boot = boot
	k.at.memory.Probe = &c
	return k.tellToReboot(ctx, action, reboot{s.bound, began}), false
}

// keptFromReboot is about a host that an earlier attempt may have told to reboot, and that is in
// its old boot: it is told, or told again, only when a reboot may begin. At any other time it is
// looked at as if it had been told. Once that was done as often as after a reboot, the job waits
// for such a time, and keeps its group and the boot id: should the host go down after all, the
// next attempt sees that.
func (k rebootStep) keptFromReboot(ctx context.Context, f verdict.Evidence) (r jobs.Result,
	kept bool) {
	rules := k.at.times.admitAgain(ctx, f.Action)
	if rules.ok {
		return jobs.Result{}, false
	}
	c := k.at.probed()
	next := c
	if _, last := next.After(*f.Action.Probes, verdict.NotReady); !last {
		return verdict.Unwell(f, k.at.now(), verdict.NotReady,
			"it may have been told to reboot, has not gone down, "+
				"and must not be told now: "+rules.why), true
	}
	c.NotReady = 0 // of the reboot that is to come
	k.at.memory.Probe = &c
	return k.at.times.deferred(k.at.with(f.Action), rules, nil), true
}

// lateToTell is about a go for a reboot that came when the reboot must not begin any more.
func (k rebootStep) lateToTell(f verdict.Evidence, how reboot) (r jobs.Result, late bool) {
	switch {
	case !how.began:
		return k.at.times.goCameLate(k.at.halt.ctx, f.Action)
	case k.at.worker.Clock()-k.at.times.ruled <= agreed.AgeMax:
		return jobs.Result{}, false
	}
	return k.keptFromReboot(k.at.halt.ctx, f)
}

// reboot is how a host is told.
type reboot struct {
	bound time.Duration
	began bool // it may have been told before
}

// tellToReboot gives the command. Its boot id is kept before, so that whatever becomes of the
// connection or of this worker, the next one knows whether the host has booted. To tell a host
// twice is no harm as long as it is in its old boot: with that ends all that was begun there.
func (k rebootStep) tellToReboot(ctx context.Context, action scripts.Action,
	how reboot) jobs.Result {
	v, err := k.at.queue().checkpoint(k.at.halt.ctx)
	if (err != nil || v != jobs.Go) && !how.began {
		k.at.memory.Probe = nil // nor is it for the next attempt, which would look at no window
	}
	f := k.at.with(action)
	switch {
	case err != nil:
		return k.at.queue().noGo(ctx, action, err)
	case v == jobs.Stale:
		k.at.stale = true
		return jobs.Result{}
	case v != jobs.Go:
		return k.at.queue().notAllowed(action)
	}
	if r, late := k.lateToTell(f, how); late {
		return r
	}
	k.at.remark(action.Name, "")
	before := k.at.memory.Disturbed
	k.at.begin()
	k.at.noteDisturbed(action)
	var record *remote.Record
	if verdict.KeepsRecords(k.at.grant.Host) {
		record = k.at.records().recordOf(k.at.step)
		record.Again, record.Twice = how.began, true
	}
	told := k.at.on(jobs.Acting)
	f.Result, f.Err = k.at.conn.Run(ctx, remote.Command{Shell: action.Command, Bound: how.bound,
		Stop: k.at.halt.ctx.Done(), Record: record, Live: k.at.said.Live})
	told()
	k.at.hasAnswered(f.Err)
	k.at.said.Add(f.Result.Output)
	f.Cause, f.Order = cause(ctx), order(k.at.halt.ctx)
	c := k.at.probed()
	f = k.at.fresh(f)
	switch {
	case f.Err == nil && f.Result.ExitCode == 0:
		c.Told = true
	case f.Err != nil && verdict.SentKind(f.Err) == "" && !how.began:
		k.at.memory.Probe, k.at.memory.Disturbed = nil, before // it was not sent
		f = k.at.fresh(f)
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
