package kinds

import (
	"context"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// rebootStep does a step of kind reboot. It tells the host to reboot, and then probes it as verify
// does.
type rebootStep struct{ verifyStep }

func newRebootStep(h Hand) Kind { return rebootStep{verifyStep{watchStep{onHost{h}}}} }

// Begin does nothing, because a reboot needs its host from the beginning.
func (k rebootStep) Begin(ctx context.Context, f verdict.Evidence) (r jobs.Result, done,
	goOn bool) {
	return k.onHost.Begin(ctx, f)
}

// Look leads the host to a new boot, and probes it there.
func (k rebootStep) Look(ctx context.Context, s Start) (r jobs.Result, goOn bool) {
	defer k.Job.Spend(verdict.Looking(s.Action.Kind))()
	r, ready := k.reboots(ctx, s)
	if !ready || s.Action.Shell == "" {
		return k.endProbe(k.Job.Evidence(s.Action), r, ready)
	}
	return k.watchStep.Look(ctx, s)
}

// reboots leads the host from its old boot to a new one. ready means that the new one is there.
func (k rebootStep) reboots(ctx context.Context, s Start) (r jobs.Result, ready bool) {
	action := s.Action
	f, c := k.Job.Evidence(action), k.Memory.Probed()
	const ask = "cat /proc/sys/kernel/random/boot_id"
	got, err := k.Host.Run(ctx, remote.Command{Shell: ask, Bound: probeTime,
		Stop: k.Stop.Done()})
	k.Notes.Answered(err)
	f.Order = k.order()
	if err != nil && c.Boot != "" {
		return k.Away(ctx, action, err), false
	}
	boot := verdict.ReadBoot(got.ExitCode, string(got.Output.Bytes()))
	switch {
	case err != nil:
		f.Err, f.Cause = err, verdict.CauseOf(ctx)
		r, _ := verdict.Judge(f, k.Job.Chance())
		return r, false
	case boot == "" && c.Boot == "":
		return f.End(jobs.Failed, jobs.ClassOperator, verdict.HostSaid("its boot id cannot be read",
			verdict.LastLine(got.Output))), false
	case boot == "":
		return verdict.Unwell(f, k.Job.Now(), verdict.NotReady, "its boot id cannot be read"), false
	case c.Boot != "" && boot != c.Boot:
		return jobs.Result{}, true
	case c.Boot != "" && c.Told:
		return verdict.Unwell(f, k.Job.Now(), verdict.NotReady, "it has not gone down yet"), false
	}
	began := c.Boot != ""
	if began {
		if r, kept := k.keptFromReboot(ctx, f); kept {
			return r, false
		}
	}
	c.Boot = boot
	k.Memory.Probe = &c
	return k.tellToReboot(ctx, action, reboot{s.Bound, began}), false
}

// keptFromReboot returns the result of a step at a time when no reboot may begin. reboots and
// lateToTell call it if an earlier attempt may have sent the reboot and the host is still in its
// old boot. The step then probes the host as if the reboot had been sent. After as many probes as
// follow a reboot, the job waits for a time when a reboot may begin. It keeps its group and the
// boot id meanwhile, so that the next attempt sees it if the host goes down after all.
func (k rebootStep) keptFromReboot(ctx context.Context, f verdict.Evidence) (r jobs.Result,
	kept bool) {
	shut := k.Times.AdmitAgain(ctx, f.Action)
	if shut == nil {
		return jobs.Result{}, false
	}
	c := k.Memory.Probed()
	next := c
	if _, last := next.After(*f.Action.Probes, verdict.NotReady); !last {
		return verdict.Unwell(f, k.Job.Now(), verdict.NotReady,
			"it may have been told to reboot, has not gone down, "+
				"and must not be told now: "+shut.Why), true
	}
	c.NotReady = 0 // the probes of the next reboot count from 0
	k.Memory.Probe = &c
	return k.Times.Defer(k.Job.Evidence(f.Action), *shut), true
}

// lateToTell returns the result of a reboot that the queue allowed so late that it must not begin
// any more.
func (k rebootStep) lateToTell(f verdict.Evidence, how reboot) (r jobs.Result, late bool) {
	switch {
	case !how.began:
		return k.goCameLate(f.Action)
	case !k.Times.Old():
		return jobs.Result{}, false
	}
	return k.keptFromReboot(k.Stop, f)
}

// A reboot holds the circumstances of the command to reboot.
type reboot struct {
	bound time.Duration
	began bool // an earlier attempt may have sent the command
}

// tellToReboot sends the command to reboot. Before that the queue stores the boot id, so that the
// next worker knows whether the host has booted, also if the connection or this worker is lost. The
// command may reach a host in its old boot twice without harm, because a reboot ends everything
// that began in that boot.
func (k rebootStep) tellToReboot(ctx context.Context, action scripts.Action,
	how reboot) jobs.Result {
	err := k.Permits.Ask()
	if err != nil && !how.began {
		k.Memory.Probe = nil // with it the next attempt would ask for no window
	}
	if err != nil {
		return k.Permits.Refused(ctx, action, err)
	}
	f := k.Job.Evidence(action)
	if r, late := k.lateToTell(f, how); late {
		return r
	}
	k.Notes.Remark(action.Name, "")
	before := k.Memory.Disturbed
	k.Course.Begin()
	k.Course.Disturb(action)
	var record *remote.Record
	if verdict.KeepsRecords(f.Grant.Host) {
		record = k.Records.Numbered(0)
		record.Again, record.Twice = how.began, true
	}
	told := k.Job.Spend(jobs.Acting)
	f.Result, f.Err = k.Host.Run(ctx, remote.Command{Shell: action.Command, Bound: how.bound,
		Stop: k.Stop.Done(), Record: record, Live: k.Said.Live})
	told()
	k.Notes.Answered(f.Err)
	k.Said.Add(f.Result.Output)
	f.Cause, f.Order = verdict.CauseOf(ctx), k.order()
	c := k.Memory.Probed()
	f = k.fresh(f)
	switch {
	case f.Err == nil && f.Result.ExitCode == 0:
		c.Told = true
	case f.Err != nil && verdict.SentKind(f.Err) == "" && !how.began:
		k.Memory.Probe, k.Memory.Disturbed = nil, before // it was not sent
		f = k.fresh(f)
		fallthrough
	case f.Err == nil, verdict.SentKind(f.Err) == "":
		r, _ := verdict.Judge(f, k.Job.Chance())
		return r
	case f.Order != nil:
		return verdict.LeftAlone(f)
	}
	// A host that reboots drops the connection.
	return f.Appoint(jobs.KindVerify, c, action.Probes.NotReady.First, "told to reboot")
}
