package worker

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// This file says what became of a change, by what its host says of it.

// armed is about a host that says how the change stands after it was told to make it.
func (a *attempt) armed(f facts, state scripts.Confirmation) (r jobs.Result, armed bool) {
	switch state.State {
	case scripts.ConfirmArmed:
		c := a.probed()
		c.Armed, c.Until = true, a.now().Add(state.Left)
		a.memory.Probe = &c
		return jobs.Result{}, true
	case scripts.ConfirmNone:
		if state.Code <= 0 { // not the guard: the change is forgotten, and may have been made
			break
		}
		f.result.ExitCode = max(state.Code, 1)
		finding := f.finding()
		r := f.end(jobs.Failed, jobs.Class(finding.Class),
			hostSaid("guard: "+finding.Text, lastWords(f.result.Output)))
		r.ExitCode = &f.result.ExitCode
		return r, false
	case scripts.ConfirmBusy:
		return f.end(jobs.Failed, jobs.ClassTransient, fmt.Sprintf("the change of job %s is neither "+
			"confirmed nor taken back: for %s yet", remote.Name(state.More), state.Left)), false
	}
	return a.settled(f, state, "")
}

// settled is about a change that is decided.
func (a *attempt) settled(f facts, state scripts.Confirmation, why string) (r jobs.Result,
	goOn bool) {
	switch {
	case state.State == scripts.ConfirmConfirmed && state.Code == 0:
		return jobs.Result{}, true
	case state.State == scripts.ConfirmConfirmed:
		text := fmt.Sprintf("confirmed, but keep failed with exit %d: it does not outlive a reboot",
			state.Code)
		return f.end(jobs.Failed, jobs.ClassOperator, hostSaid(text, lastWords(f.result.Output))), false
	case state.State != scripts.ConfirmRolledBack:
		r := f.end(jobs.Unknown, jobs.ClassOperator, "the host knows nothing of the change any more")
		r.KeepLock = true
		return r, false
	case state.Code != 0:
		r := f.end(jobs.Failed, jobs.ClassOperator, hostSaid(also("the rollback failed", why),
			lastWords(f.result.Output)))
		r.KeepLock = f.disruptive
		return r, false
	}
	class := jobs.ClassUser
	if code := 0; state.More != "" {
		if _, err := fmt.Sscanf(state.More, "apply %d", &code); err == nil {
			f.result.ExitCode = code
			finding := f.finding()
			class = jobs.Class(finding.Class)
			why = hostSaid("apply: "+finding.Text, lastWords(f.result.Output))
		}
	} else if f.err == nil && f.result.ExitCode != 0 {
		class = jobs.Class(f.finding().Class)
	}
	return f.end(jobs.RolledBack, class, cmp.Or(why, a.probed().Saying, "not confirmed in time")+
		"; the host took it back"), false
}

// hearChange puts what was said into the transcript. A proof that is not there yet is tried
// often, and says the same each time.
func (a *attempt) hearChange(f facts, state scripts.Confirmation, ok bool) {
	words := lastWords(f.result.Output)
	again := state.State == scripts.ConfirmProof && state.Code == scripts.NotYet && words != "" &&
		a.probed().Saying == shortened(hostSaid(notProven, words), noteMax)
	if again {
		return
	}
	how := ""
	if ok {
		how = ": " + state.String()
	}
	a.remark(f.action.Name, how)
	a.said.add(withoutMark(f.result.Output))
}

// withoutMark is what a host said before how the change stands.
func withoutMark(o remote.Output) remote.Output {
	for _, part := range []*[]byte{&o.Tail, &o.Head} {
		if at := bytes.LastIndex(*part, []byte(scripts.ConfirmMark)); at >= 0 {
			*part = (*part)[:at]
			break
		}
	}
	return o
}

// lastWords is the last line that a host said before how the change stands.
func lastWords(o remote.Output) string { return lastLine(withoutMark(o)) }

// confirmAway is about a host that cannot be asked how its change stands. As long as it may
// be confirmed that is tried; then the host has its time to be back as it was, and is asked.
func (a *attempt) confirmAway(ctx context.Context, action scripts.Action, err error) jobs.Result {
	f, c := a.with(action), a.probed()
	f.err, f.cause = err, cause(ctx)
	why := shortened(reason(err), noteMax)
	now := a.now()
	if c.Since == 0 { // another worker was lost with it
		c.Since, c.Until = now, now.Add(a.grant.Bound+action.Confirm.Within)
	}
	switch {
	case f.order != nil:
		r := f.endOf(jobs.Unknown, jobs.ClassOperator, f.note()+"; the change may be made, and if it "+
			"is not confirmed the host takes it back: "+why)
		r.KeepLock = true
		return r
	case now < c.Until:
		c.Saying = cmp.Or(c.Saying, why)
		return f.appoint(jobs.KindVerify, c, f.proofPause(), why)
	}
	delay, last := c.after(scripts.DefaultProbes(), away)
	if !last {
		return f.appoint(jobs.KindVerify, c, delay, why)
	}
	r := f.end(jobs.Unknown, jobs.ClassOperator,
		"it is not known whether the host took the change back: "+why)
	r.KeepLock = true
	return r
}
