package verdict

import (
	"errors"
	"fmt"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// NeedsPerson reports whether only a person can mend a host that fails in this way.
func NeedsPerson(k remote.Kind) bool {
	switch k {
	case remote.KindHostKey, remote.KindAuth, remote.KindKey, remote.KindRefused, remote.KindFailed,
		remote.KindInvalid:
		return true
	}
	return false
}

// HinderedProbe returns the end of a step whose host lets nobody in: a person must look at it.
func HinderedProbe(f Evidence, k remote.Kind) jobs.Result {
	why := Reason(f.Err)
	if k == remote.KindHostKey {
		why = "it came back with another host key: " + why
	}
	r := f.End(jobs.Failed, jobs.ClassOperator, why)
	r.KeepLock = f.Disruptive
	return r
}

// KindOfProbe returns the kind of result between two probes of the step.
func KindOfProbe(f Evidence) jobs.Kind {
	if f.Action.Kind == scripts.KindWait {
		return jobs.KindWait
	}
	return jobs.KindVerify
}

// LeftAlone returns the end of a job that was cancelled while its host was probed.
func LeftAlone(f Evidence) jobs.Result {
	if f.Action.Kind == scripts.KindWait {
		return f.NotStarted(Hindrance{})
	}
	return f.EndOf(jobs.Unknown, jobs.ClassOperator, "cancelled before the host was back: "+f.note())
}

// SentKind returns the kind of an error of a command that was sent; empty for any other error.
func SentKind(err error) remote.Kind {
	var e *remote.Error
	if errors.As(err, &e) && e.Sent {
		return e.Kind
	}
	return ""
}

// proofMost is the longest time between two tries of a proof.
const proofMost = 5 * time.Second

// ProofPause returns the time between two tries of a proof, which is short enough for at least ten
// tries.
func ProofPause(f Evidence) time.Duration {
	return min(f.Action.Confirm().Within/10, proofMost)
}

// Stands returns the wait of a job whose gate nobody has answered. The question never changes.
func Stands(f Evidence, c Probing, now jobs.Micros) jobs.Result {
	gate := f.Action.Gate()
	if c.Gate == nil {
		c.Since, c.Until = now, now.Add(gate.Timeout)
		c.Gate = &asking{f.Action.Name, gate.Question}
		c.Saying = Shortened("waits at the gate "+f.Action.Name+" for a person: "+gate.Question, NoteMax)
	}
	r := f.Appoint(jobs.KindWait, c, c.Until.Sub(now), c.Saying)
	r.Release = gate.Release
	return r
}

// Shut returns why a gate stays shut: a person refused it, or nobody opened it in time.
func Shut(f Evidence, answer jobs.GateAnswer) string {
	if answer.Word == jobs.GateLate {
		return fmt.Sprintf("nobody opened the gate within %s", f.Action.Gate().Timeout)
	}
	return OneLine(answer.Note)
}

// asking holds a gate for the people who answer it.
type asking struct {
	Name     string `json:"name"`
	Question string `json:"question"`
}
