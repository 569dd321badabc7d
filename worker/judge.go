package worker

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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
	steps  int     // of the runbook, without those of on_fail
	until  int     // behind the last step of the main ones or the on_fail; 0: steps
	step   int     // in hand, or the one that would be next
	begun  bool    // this attempt has started a step before this one
	safe   bool    // the step changes nothing, so it is no matter whether it ran
	memory *memory // what is kept for the next attempt; nil: what the grant says

	disruptive bool           // the task may disturb its host, whatever this step does
	action     scripts.Action // of the step; zero while connecting

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
	code := f.result.ExitCode
	finding := f.finding()
	switch {
	case finding.Moot:
		r = f.end(jobs.Unknown, jobs.ClassOperator, finding.Text)
		r.ExitCode = &code
		return r, false
	case !finding.OK:
		return f.unmet(finding), false
	case f.step+1 < cmp.Or(f.until, f.steps):
		return jobs.Result{}, true
	}
	r = f.through()
	if f.action.Kind != scripts.KindUpload {
		r.ExitCode = &code
	}
	return r, false
}

// finding is how the end of a step is judged.
func (f facts) finding() scripts.Finding {
	return f.action.Judge(f.evidence(), f.mind().Saved)
}

func (f facts) evidence() scripts.Evidence {
	return scripts.Evidence{
		Exit:   f.result.ExitCode,
		Signal: f.result.Signal,
		Output: slices.Concat(f.result.Output.Head, f.result.Output.Tail),
		Cut:    f.result.Output.Omitted > 0 || f.result.Lost != "",
		Lost:   f.result.Lost,
	}
}

// unmet is about a step that did not do what is expected of it.
func (f facts) unmet(finding scripts.Finding) jobs.Result {
	code := f.result.ExitCode
	text := hostSaid(finding.Text, lastLine(f.result.Output))
	again := f.action.Retry
	if tried := f.mind().Again + 1; again != nil && finding.Class == scripts.ClassTransient {
		if tried < again.Tries {
			return f.anew(again.Delay, fmt.Sprintf("try %d of %d: %s", tried, again.Tries, text))
		}
		text = fmt.Sprintf("%d tries, the last: %s", tried, text)
	}
	r := f.end(jobs.Failed, jobs.Class(finding.Class), text)
	r.ExitCode = &code
	return r
}

// anew has a step tried once more that is known to have failed. It keeps its host.
func (f facts) anew(delay time.Duration, text string) jobs.Result {
	r := f.say(jobs.KindWait, f.place()+text)
	r.Delay, r.Step = delay, f.step
	m := f.mind()
	m.Again++
	m.MayHaveRun, m.Asked, m.Over = false, 0, 0
	r.Saved = m.over(f.grant.Saved)
	return r
}

// through is about a job that went through all its steps.
func (f facts) through() jobs.Result {
	r := f.end(jobs.Succeeded, jobs.ClassNone, "")
	r.Error = ""
	return r
}

// broken is about a step that was sent to the host and went wrong.
func (f facts) broken(k remote.Kind) jobs.Result {
	switch k {
	case remote.KindTimeout:
		return f.end(jobs.Timeout, jobs.ClassNone,
			hostSaid(reason(f.err), lastLine(f.result.Output)))
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
	if f.safe {
		f.err = errors.New(text)
		return f.unreached(jobs.Failed, f.policy.Delay)
	}
	if f.canAsk(asked(f.err)) {
		return f.askLater(text)
	}
	// Where the host says that nothing of the step is alive, as after a reboot, nobody needs to
	// wait for its bound.
	dead := f.cause == nil && asked(f.err) == remote.KindGone
	if f.action.Repeatable && f.policy.Again(f.grant.Tries+1, jobs.ClassTransient) {
		r := f.retry(max(f.busy, f.policy.Delay), text)
		if dead {
			r = f.retry(f.policy.Delay, text)
		}
		r.KeepLock = !dead
		r.Saved = f.remember()
		return r
	}
	r := f.end(jobs.Unknown, jobs.ClassOperator, text)
	r.KeepLock = !dead
	return r
}

// hindered is about a step, or the connecting before it, that did not get as far
// as to be sent.
func (f facts) hindered(k remote.Kind, chance float64) jobs.Result {
	switch k {
	case remote.KindHostKey, remote.KindAuth, remote.KindKey, remote.KindRefused, remote.KindFailed:
		r := f.doubt(f.end(jobs.Failed, jobs.ClassOperator, reason(f.err)))
		// A host that was disturbed lets nobody in who could see how it is.
		r.KeepLock = r.KeepLock || f.halfWay()
		return r
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
// the job ends, as last says; but it is not unreachable if something of it ran, and if
// that was to disturb the host, it is not known in what state it is.
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
	switch {
	case last == jobs.Unreachable && f.halfWay():
		return f.end(jobs.Unknown, jobs.ClassOperator, text+"; it was disturbed before")
	case last == jobs.Unreachable && (f.step > 0 || f.mind().Again > 0):
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
	if f.order != nil {
		return notStarted(f)
	}
	return f.giveBack("stopped before " + f.stepWords())
}

// giveBack returns a job of which nothing is under way. If this attempt has done
// something, the job goes on behind that, and keeps its host until then. What the queue was
// told with a question is taken back, or holds: its answer may have got lost.
func (f facts) giveBack(text string) jobs.Result {
	if p := f.mind().Probe; p != nil && patient(f.action.Kind) && f.action.Kind != scripts.KindWait {
		return f.appoint(jobs.KindVerify, *p, f.policy.Delay, text) // a cancel does not find it untouched
	}
	told := f.mind().told
	if !f.begun && !(told && f.step > f.grant.Step) {
		r := back(f.grant, text)
		if told && r.Saved == "" {
			r.Saved = toldQueue
		}
		return r
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
		r.Saved = f.remember()
		return r
	}
	r := f.end(jobs.Unknown, jobs.ClassOperator, text)
	r.KeepLock = f.grant.Bound > 0
	return r
}

// doubt turns an end that says that nothing ran into unknown, if an earlier
// attempt may have started the step.
func (f facts) doubt(r jobs.Result) jobs.Result {
	if r.Kind != jobs.KindEnd || !mayHaveRun(f.grant) || f.step != f.grant.Step || f.safe {
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
	r := f.end(jobs.Failed, jobs.ClassOperator, text)
	r.KeepLock = f.mind().Disturbed
	return r
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
	if f.grant.Mode == jobs.ModeLost && f.step == f.grant.Step && !f.safe {
		r.Saved, r.KeepLock = f.remember(), f.grant.Bound > 0
	}
	return r
}

func (f facts) say(k jobs.Kind, text string) jobs.Result {
	return jobs.Result{Job: f.grant.Job, Token: f.grant.Token, Kind: k, Error: oneLine(text),
		Saved: f.kept(), Note: f.beside(),
		Said: jobs.Said{Spent: f.spent(k)}}
}

// place names the step that a text is about, if there is more than one.
func (f facts) place() string {
	if f.action.Name == "" || f.steps == 0 || f.steps == 1 && f.step == 0 {
		return ""
	}
	return f.stepWords() + ": "
}

// stepWords names the step in hand.
func (f facts) stepWords() string { return stepWords(f.step, f.steps, f.action.Name) }

func stepWords(step, steps int, name string) string {
	words := fmt.Sprintf("step %d", step+1)
	if step >= steps && steps > 0 {
		words = "step of on_fail"
	}
	if name != "" {
		words += " (" + name + ")"
	}
	return words
}

// stopWords says why the context of the attempt ended.
func (f facts) stopWords() string {
	if errors.Is(f.cause, errOverdue) {
		return errOverdue.Error()
	}
	return "the worker was stopped"
}
