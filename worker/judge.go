package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// errOverdue is why the context of an attempt ends by its lease. Any other cause
// is a stop of the worker.
var errOverdue = errors.New("its deadline was reached")

// facts are all that a decision about a job is made of.
type facts struct {
	grant  jobs.Grant
	policy jobs.Policy
	steps  int            // of the runbook
	step   int            // in hand, or the one that would be next
	begun  bool           // this attempt has started a step before this one
	action scripts.Action // of the step; zero while connecting

	result remote.Result
	err    error         // of connecting or of the step
	cause  error         // why the context of the attempt ended; nil: it did not
	busy   time.Duration // the host may be at the step for so long yet
	order  *stopOrder    // the job is cancelled; nil: not as far as is known
}

// judge says what is to be said about a job after connecting failed, or a step
// was tried. goOn means that nothing is: the next step may be tried.
//
// chance, from 0 to 1, spreads those who have to come again.
func judge(f facts, chance float64) (r jobs.Result, goOn bool) {
	if f.err == nil {
		return f.exited()
	}
	var e *remote.Error
	known := errors.As(f.err, &e)
	switch {
	case f.order != nil:
		return f.cancelled(e), false
	case known && e.Kind == remote.KindStopped && e.Sent:
		return f.stoppedBefore(), false
	case !known && f.action.Kind == "":
		return f.hindered(remote.KindUnreachable, chance), false
	case !known:
		return f.doubtful(), false
	case e.Sent:
		return f.broken(e.Kind), false
	}
	if r, ok := f.told(e); ok {
		return r, false
	}
	return f.hindered(e.Kind, chance), false
}

// exited is about a step whose end was seen.
func (f facts) exited() (r jobs.Result, goOn bool) {
	if code := f.result.ExitCode; code != 0 {
		how := fmt.Sprintf("exit %d", code)
		if f.result.Signal != "" {
			how = "ended by signal " + f.result.Signal
		}
		r := f.end(jobs.Failed, jobs.ClassUser, also(how, lastLine(f.result.Output)))
		r.ExitCode = &code
		return r, false
	}
	if f.step+1 < f.steps {
		return jobs.Result{}, true
	}
	r = f.end(jobs.Succeeded, jobs.ClassNone, "")
	r.Error = ""
	if f.action.Kind == scripts.KindRun {
		r.ExitCode = new(int)
	}
	return r, false
}

// broken is about a step that was sent to the host and went wrong.
func (f facts) broken(k remote.Kind) jobs.Result {
	switch k {
	case remote.KindTimeout:
		return f.end(jobs.Timeout, jobs.ClassNone, also(reason(f.err), lastLine(f.result.Output)))
	case remote.KindFailed, remote.KindNode:
		return f.end(jobs.Failed, jobs.ClassOperator, reason(f.err))
	case remote.KindInvalid:
		return f.end(jobs.Failed, jobs.ClassUser, reason(f.err))
	}
	return f.doubtful()
}

// doubtful is about a step of which it is not known whether it ran, or runs
// still. If it may run twice it is tried again once the host must be done with
// it; else a person has to look.
func (f facts) doubtful() jobs.Result {
	text := reason(f.err)
	if f.cause != nil {
		text = f.stopWords() + ": it is not known whether the step ran to its end"
	}
	if f.canAsk(asked(f.err)) {
		return f.askLater(text)
	}
	if f.action.Repeatable && f.policy.Again(f.grant.Tries+1, jobs.ClassTransient) {
		r := f.retry(max(f.busy, f.policy.Delay), text)
		r.KeepLock = true
		r.Saved = remember(f.grant.Saved)
		return r
	}
	r := f.end(jobs.Unknown, jobs.ClassOperator, text)
	r.KeepLock = true
	return r
}

// hindered is about a step, or the connecting before it, that did not get as far
// as to be sent.
func (f facts) hindered(k remote.Kind, chance float64) jobs.Result {
	switch k {
	case remote.KindHostKey, remote.KindAuth, remote.KindKey, remote.KindRefused, remote.KindFailed:
		return f.doubt(f.end(jobs.Failed, jobs.ClassOperator, reason(f.err)))
	case remote.KindInvalid:
		return f.doubt(f.end(jobs.Failed, jobs.ClassUser, reason(f.err)))
	case remote.KindThrottled, remote.KindNode:
		// Half to three halves of the delay: who was turned away together must
		// not come back together.
		delay := f.policy.Delay/2 + time.Duration(chance*float64(f.policy.Delay))
		return f.unreached(jobs.Failed, delay)
	}
	if f.cause != nil && !errors.Is(f.cause, errOverdue) {
		return f.giveBack(f.stopWords())
	}
	return f.unreached(jobs.Unreachable, f.policy.Delay)
}

// unreached is about a try that may work later. Once there were enough of them
// the job ends, as last says; but it is not unreachable if something of it ran.
func (f facts) unreached(last jobs.Outcome, delay time.Duration) jobs.Result {
	tries := f.grant.Tries + 1
	text := reason(f.err)
	if errors.Is(f.cause, errOverdue) {
		text = also(f.stopWords(), text)
	}
	if f.policy.Again(tries, jobs.ClassTransient) {
		return f.retry(delay, text)
	}
	if tries > 1 {
		text = fmt.Sprintf("%d tries, the last: %s", tries, text)
	}
	if last == jobs.Unreachable && f.step > 0 {
		last = jobs.Failed
	}
	return f.doubt(f.end(last, jobs.ClassTransient, text))
}

// outOfTime is about a step that was not started because too little time was
// left for it, or no go came from the queue for why.
func outOfTime(f facts, why string) jobs.Result {
	f.err = errors.New("not started: " + why)
	if !f.begun {
		return f.giveBack(f.place() + reason(f.err))
	}
	return f.unreached(jobs.Failed, f.policy.Delay)
}

// halted is about a job whose next step the queue did not allow. The queue knows
// why: a cancelled job ends when it is met again, one of a frozen or halted zone
// goes on at this step when that is over.
func halted(f facts) jobs.Result {
	return f.giveBack(fmt.Sprintf("stopped before step %d (%s)", f.step+1, f.action.Name))
}

// giveBack returns a job of which nothing is under way. If this attempt has done
// something, the job goes on behind that, and keeps its host until then.
func (f facts) giveBack(text string) jobs.Result {
	if !f.begun {
		return back(f.grant, text)
	}
	r := f.say(jobs.KindWait, text)
	r.Step = f.step
	return r
}

// lost is about a job whose worker vanished, and whose host cannot tell what became
// of it. Only a step that may run twice runs again, when the time is over in which
// the old attempt may still act on the host.
func lost(f facts) jobs.Result {
	node := cmp.Or(f.grant.LostNode, "(not known)")
	text := fmt.Sprintf("the worker on node %s died with it, and it is not known whether "+
		"step %d ran", node, f.grant.Step+1)
	f.step, f.steps = f.grant.Step, 0 // the text names the step
	// Once the old lock is over nothing acts on the host any more.
	if f.action.Repeatable {
		r := f.retry(f.grant.Bound, text)
		r.KeepLock = f.grant.Bound > 0
		r.Saved = remember(f.grant.Saved)
		return r
	}
	r := f.end(jobs.Unknown, jobs.ClassOperator, text)
	r.KeepLock = f.grant.Bound > 0
	return r
}

// doubt turns an end that says that nothing ran into unknown, if an earlier
// attempt may have started the step.
func (f facts) doubt(r jobs.Result) jobs.Result {
	if r.Kind != jobs.KindEnd || !mayHaveRun(f.grant) || f.step != f.grant.Step {
		return r
	}
	r.Outcome, r.Class = jobs.Unknown, jobs.ClassOperator
	r.KeepLock = r.KeepLock || f.grant.Bound > 0
	r.Error += "; an earlier attempt may have started the step"
	return r
}

// stuck is about an attempt that did not stop when it had to.
func stuck(g jobs.Grant) jobs.Result {
	f := facts{grant: g}
	r := f.end(jobs.Unknown, jobs.ClassOperator,
		"it did not stop at its deadline, and it is not known what it did: a mistake in muster")
	r.KeepLock = true
	return r
}

// puzzled is about a job that cannot be worked on by a mistake of our own. It is
// tried again like any other, because giving it back at once would be for ever.
// What was lost before stays unknown.
func puzzled(g jobs.Grant, p jobs.Policy, text string) jobs.Result {
	f := facts{grant: g, policy: p, step: g.Step}
	switch {
	case g.Mode == jobs.ModeLost:
		r := f.end(jobs.Unknown, jobs.ClassOperator, "its worker died with it, and now: "+text)
		r.KeepLock = true
		return r
	case p.Again(g.Tries+1, jobs.ClassTransient):
		return f.retry(p.Delay, text)
	}
	return f.end(jobs.Failed, jobs.ClassOperator, text)
}

// back gives a job back of which this attempt did nothing. Never one that was
// lost: it would come again as if nothing had happened.
func back(g jobs.Grant, text string) jobs.Result {
	f := facts{grant: g}
	r := f.say(jobs.KindBack, text)
	r.Step = g.Step
	return r
}

func (f facts) end(o jobs.Outcome, c jobs.Class, text string) jobs.Result {
	return f.endOf(o, c, f.place()+text)
}

// endOf is end with a text that names the step itself.
func (f facts) endOf(o jobs.Outcome, c jobs.Class, text string) jobs.Result {
	r := f.say(jobs.KindEnd, text)
	r.Outcome, r.Class, r.Step = o, c, f.step
	return r
}

func (f facts) retry(delay time.Duration, text string) jobs.Result {
	r := f.say(jobs.KindRetry, f.place()+text)
	r.Delay, r.Step = delay, f.step
	if f.grant.Mode == jobs.ModeLost && f.step == f.grant.Step {
		r.Saved, r.KeepLock = remember(f.grant.Saved), f.grant.Bound > 0
	}
	return r
}

func (f facts) say(k jobs.Kind, text string) jobs.Result {
	return jobs.Result{Job: f.grant.Job, Token: f.grant.Token, Kind: k, Error: oneLine(text),
		Saved: f.grant.Saved, Note: note(f.result)}
}

// place names the step that a text is about, if there is more than one.
func (f facts) place() string {
	if f.steps <= 1 || f.action.Name == "" {
		return ""
	}
	return fmt.Sprintf("step %d (%s): ", f.step+1, f.action.Name)
}

// stopWords says why the context of the attempt ended.
func (f facts) stopWords() string {
	if errors.Is(f.cause, errOverdue) {
		return errOverdue.Error()
	}
	return "the worker was stopped"
}

// memory is what attempts keep for those after them.
type memory struct {
	MayHaveRun bool `json:"may_have_run"`    // an attempt may have started its step, and it is not known
	Asked      int  `json:"asked,omitempty"` // so many attempts hoped that the host would tell the next one
}

// String is the form that is kept.
func (m memory) String() string {
	b, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	return string(b)
}

func remember(saved string) string {
	m := recall(saved)
	m.MayHaveRun = true
	return cmp.Or(m.String(), saved)
}

func remembered(saved string) bool { return recall(saved).MayHaveRun }

func recall(saved string) memory {
	var m memory
	if json.Unmarshal([]byte(saved), &m) != nil {
		return memory{}
	}
	return m
}
