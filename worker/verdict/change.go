package verdict

import (
	"bytes"
	"cmp"
	"fmt"

	"muster/fleet/remote"
	"muster/internal/trial"
	"muster/jobs"
	"muster/scripts"
)

// This file decides about a change that muster has to confirm, by the words of its host.

// NotProven begins the text about a change whose proof says: not yet.
const NotProven = "not proven yet"

// NotArmed returns the result of a step whose host says that the change is not armed.
func NotArmed(f Evidence, state trial.State) (r jobs.Result, goOn bool) {
	switch {
	case state.Word == trial.None && state.Code > 0: // else the host forgot the change
		f.Result.ExitCode = state.Code
		finding := f.Finding()
		r := f.End(jobs.Failed, jobs.Class(finding.Class),
			HostSaid("guard: "+finding.Text, LastWords(f.Result.Output)))
		r.ExitCode = &f.Result.ExitCode
		return r, false
	case state.Word == trial.Busy:
		return f.End(jobs.Failed, jobs.ClassTransient, fmt.Sprintf("the change of job %s is neither "+
			"confirmed nor taken back: for %s yet", remote.Name(state.More), state.Left)), false
	}
	return Settled(f, state, "")
}

// Settled returns the result of a step whose change is decided. goOn: it is confirmed.
func Settled(f Evidence, state trial.State, why string) (r jobs.Result,
	goOn bool) {
	switch {
	case state.Word == trial.Confirmed && state.Code == 0:
		return jobs.Result{}, true
	case state.Word == trial.Confirmed:
		text := fmt.Sprintf("confirmed, but keep failed with exit %d: it does not outlive a reboot",
			state.Code)
		return f.End(jobs.Failed, jobs.ClassOperator, HostSaid(text, LastWords(f.Result.Output))), false
	case state.Word != trial.RolledBack:
		r := f.End(jobs.Unknown, jobs.ClassOperator, "the host knows nothing of the change any more")
		r.KeepLock = true
		return r, false
	case state.Code != 0:
		r := f.End(jobs.Failed, jobs.ClassOperator, HostSaid(Also("the rollback failed", why),
			LastWords(f.Result.Output)))
		r.KeepLock = f.Disruptive
		return r, false
	}
	class := jobs.ClassUser
	if code := 0; state.More != "" {
		if _, err := fmt.Sscanf(state.More, "apply %d", &code); err == nil {
			f.Result.ExitCode = code
			finding := f.Finding()
			class = jobs.Class(finding.Class)
			why = HostSaid("apply: "+finding.Text, LastWords(f.Result.Output))
		}
	} else if f.Err == nil && f.Result.ExitCode != 0 {
		class = jobs.Class(f.Finding().Class)
	}
	return f.End(jobs.RolledBack, class, cmp.Or(why, f.Probed().Saying, "not confirmed in time")+
		"; the host took it back"), false
}

// ChangeAway returns the result of a step whose host cannot be asked for the state of its change.
// As long as the change may still be confirmed, the next attempts try that. After that the host
// gets time to take the change back, and the next attempts ask for its state.
func ChangeAway(f Evidence, now jobs.Micros) jobs.Result {
	c := f.Probed()
	why := Shortened(Reason(f.Err), NoteMax)
	if c.Since == 0 { // another worker was lost with it
		c.Since, c.Until = now, now.Add(f.Grant.Bound+f.Action.Confirm().Within)
	}
	switch {
	case f.Order != nil:
		r := f.EndOf(jobs.Unknown, jobs.ClassOperator, f.note()+"; the change may be made, and if it "+
			"is not confirmed the host takes it back: "+why)
		r.KeepLock = true
		return r
	case now < c.Until:
		c.Saying = cmp.Or(c.Saying, why)
		return f.Appoint(jobs.KindVerify, c, ProofPause(f), why)
	}
	delay, last := c.After(scripts.DefaultProbes(), Away)
	if !last {
		return f.Appoint(jobs.KindVerify, c, delay, why)
	}
	r := f.End(jobs.Unknown, jobs.ClassOperator,
		"it is not known whether the host took the change back: "+why)
	r.KeepLock = true
	return r
}

// NeverMade returns the result of a step whose host got the command for a change and does not know
// the change.
func NeverMade(f Evidence) jobs.Result {
	switch k := SentKind(f.Err); k {
	case remote.KindTimeout:
		return f.broken(k)
	case remote.KindGone:
		return f.End(jobs.Failed, jobs.ClassOperator, Reason(f.Err)+"; the change was not made")
	}
	return f.Appoint(jobs.KindVerify, f.Probed(), ProofPause(f), "the change has not begun")
}

// UnknownThere returns the result of a step whose host does not know its change: the change has not
// begun, or its command is still on the way. over: there is a result.
func UnknownThere(f Evidence, now jobs.Micros) (r jobs.Result, goOn, over bool) {
	c := f.Probed()
	switch {
	case c.Armed:
		r, goOn = Settled(f, trial.State{Word: trial.None}, "")
		return r, goOn, true
	case KeepsRecords(f.Grant.Host), c.Free != 0 && now >= c.Free:
		return r, false, false // its record will say, or the older command has surely ended
	}
	if c.Free == 0 {
		c.Since, c.Free = now, now.Add(f.Grant.Bound)
	}
	return f.Appoint(jobs.KindVerify, c, max(c.Free.Sub(now), ProofPause(f)),
		"it may be about to begin"), false, true
}

// ProveLater returns a wait until the next try of the proof. Once the time of the change is over,
// the host takes the change back, and says so at the next question.
func ProveLater(f Evidence, why string) jobs.Result {
	c := f.Probed()
	c.Saying = Shortened(why, NoteMax)
	return f.Appoint(jobs.KindVerify, c, ProofPause(f), c.Saying)
}

// TakenBack returns the end of a cancelled job whose host was told to take its change back. g is
// the answer of the host, and state the state in it; ok is false if there is none.
func TakenBack(f Evidence, g Evidence, state trial.State, ok bool) jobs.Result {
	if ok && state.Word == trial.RolledBack && state.Code == 0 {
		return f.EndOf(jobs.RolledBack, jobs.ClassNone, f.note()+"; the host took it back")
	}
	if ok && state.Word == trial.None && !f.Probed().Armed {
		return f.EndOf(jobs.Cancelled, jobs.ClassNone, f.note()+"; stopped before "+f.StepWords())
	}
	how := "it is not known whether it is confirmed; if not the host takes it back"
	if ok {
		how = "it is " + string(state.Word)
	}
	if g.Err != nil {
		how = Also(how, Reason(g.Err))
	}
	r := f.EndOf(jobs.Unknown, jobs.ClassOperator, f.note()+"; "+how)
	r.KeepLock = true
	return r
}

// WithoutMark returns the output of a host before the line about the change.
func WithoutMark(o remote.Output) remote.Output {
	for _, part := range []*[]byte{&o.Tail, &o.Head} {
		if at := bytes.LastIndex(*part, []byte(trial.Mark)); at >= 0 {
			*part = (*part)[:at]
			break
		}
	}
	return o
}

// LastWords returns the last line of the output before the line about the change.
func LastWords(o remote.Output) string { return LastLine(WithoutMark(o)) }
