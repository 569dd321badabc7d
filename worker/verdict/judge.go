package verdict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// ErrOverdue is the cause with which a lease ends the context of its attempt. Any other cause
// means that the worker was stopped.
var ErrOverdue = errors.New("its deadline was reached")

// CauseOf returns why ctx ended; nil if it has not.
func CauseOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// Evidence holds all that decides about a job. It is a value: nothing that happens to the attempt
// later changes it.
type Evidence struct {
	Grant  jobs.Grant
	Policy jobs.Policy
	Steps  int    // the steps of the runbook, without those of on_fail
	Until  int    // the index after the last main step, or the last of the on_fail; 0: Steps
	Step   int    // the step in hand, or the next one
	Begun  bool   // this attempt has started a step before this one
	Safe   bool   // the step may run twice: it changes nothing, or finds out itself
	Memory Memory // kept for the next attempt

	Disruptive bool           // the task may disturb its host, whatever this step does
	Action     scripts.Action // the step in hand; zero while connecting

	Result remote.Result
	Err    error         // of connecting or of the step
	Cause  error         // why the context of the attempt ended; nil: it did not
	Busy   time.Duration // the longest time for which the step may still run on the host
	Order  *StopOrder    // the cancel of the job; nil: none is known
}

// Judge returns the result of a job whose connecting failed, or whose step was tried. goOn means
// that there is no result: the next step may be tried.
//
// chance, from 0 to 1, spreads the retries of jobs that failed to connect together.
func Judge(f Evidence, chance float64) (r jobs.Result, goOn bool) {
	if f.Err == nil {
		return f.exited()
	}
	var e *remote.Error
	known := errors.As(f.Err, &e)
	switch {
	case f.Order != nil:
		return f.cancelled(e), false
	case known && e.Kind == remote.KindStopped && e.Sent:
		return f.stoppedBefore(), false
	case !known && f.Action.Kind == "":
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

// exited returns the result of a step whose end is known.
func (f Evidence) exited() (r jobs.Result, goOn bool) {
	code := f.Result.ExitCode
	finding := f.Finding()
	switch {
	case finding.Moot:
		r = f.End(jobs.Unknown, jobs.ClassOperator, finding.Text)
		r.ExitCode = &code
		return r, false
	case !finding.OK:
		return f.unmet(finding), false
	case f.Step+1 < cmp.Or(f.Until, f.Steps):
		return jobs.Result{}, true
	}
	r = f.Through()
	if f.Action.Kind != scripts.KindUpload {
		r.ExitCode = &code
	}
	return r, false
}

// Finding returns what the runbook says about the end of the step.
func (f Evidence) Finding() scripts.Finding {
	return f.Action.Judge(f.Seen(), f.Memory.Saved)
}

// Seen returns the end of the step in the form in which runbooks judge it.
func (f Evidence) Seen() scripts.Evidence {
	return scripts.Evidence{
		Exit:   f.Result.ExitCode,
		Signal: f.Result.Signal,
		Output: slices.Concat(f.Result.Output.Head, f.Result.Output.Tail),
		Cut:    f.Result.Output.Omitted > 0 || f.Result.Lost != "",
		Lost:   f.Result.Lost,
	}
}

// unmet returns the result of a step that ended differently from what the runbook expects.
func (f Evidence) unmet(finding scripts.Finding) jobs.Result {
	code := f.Result.ExitCode
	text := HostSaid(finding.Text, LastLine(f.Result.Output))
	again := f.Action.Retry
	if tried := f.Memory.Again + 1; again != nil && finding.Class == scripts.ClassTransient {
		if tried < again.Tries {
			return f.anew(again.Delay, fmt.Sprintf("try %d of %d: %s", tried, again.Tries, text))
		}
		text = fmt.Sprintf("%d tries, the last: %s", tried, text)
	}
	r := f.End(jobs.Failed, jobs.Class(finding.Class), text)
	r.ExitCode = &code
	return r
}

// anew returns a wait, after which the job tries its failed step once more. The job keeps its host.
func (f Evidence) anew(delay time.Duration, text string) jobs.Result {
	r := f.say(jobs.KindWait, f.Place()+text)
	r.Delay, r.Step = delay, f.Step
	m := f.Memory
	m.Again++
	m.MayHaveRun, m.Asked, m.Over = false, 0, 0
	r.Saved = m.Replacing(f.Grant.Saved)
	return r
}

// Through returns the end of a job that went through all its steps.
func (f Evidence) Through() jobs.Result {
	r := f.End(jobs.Succeeded, jobs.ClassNone, "")
	r.Error = ""
	return r
}

// broken returns the result of a step that was sent to the host and went wrong.
func (f Evidence) broken(k remote.Kind) jobs.Result {
	switch k {
	case remote.KindTimeout:
		return f.End(jobs.Timeout, jobs.ClassNone,
			HostSaid(Reason(f.Err), LastLine(f.Result.Output)))
	case remote.KindFailed, remote.KindNode:
		return f.End(jobs.Failed, jobs.ClassOperator, Reason(f.Err))
	case remote.KindInvalid:
		return f.End(jobs.Failed, jobs.ClassUser, Reason(f.Err))
	}
	return f.doubtful()
}

// doubtful returns the result of a step that may have run, or may still run. A step that may run
// twice is tried again once the host must be done with it; else a person has to look.
func (f Evidence) doubtful() jobs.Result {
	text := Reason(f.Err)
	if f.Cause != nil {
		text = f.StopWords() + ": it is not known whether the step ran to its end"
	}
	if f.Safe {
		f.Err = errors.New(text)
		return f.unreached(jobs.Failed, f.Policy.Delay)
	}
	if f.canAsk(Asked(f.Err)) {
		return f.askLater(text)
	}
	// If the host says that nothing of the step is alive, as after a reboot, nobody needs to wait
	// for its bound.
	dead := f.Cause == nil && Asked(f.Err) == remote.KindGone
	if f.Action.Repeatable && f.Policy.Again(f.Grant.Tries+1, jobs.ClassTransient) {
		r := f.retry(max(f.Busy, f.Policy.Delay), text)
		if dead {
			r = f.retry(f.Policy.Delay, text)
		}
		r.KeepLock = !dead
		r.Saved = f.remember()
		return r
	}
	r := f.End(jobs.Unknown, jobs.ClassOperator, text)
	r.KeepLock = !dead
	return r
}

// hindered returns the result of a step that was not sent, because it or the connecting before it
// failed.
func (f Evidence) hindered(k remote.Kind, chance float64) jobs.Result {
	switch k {
	case remote.KindHostKey, remote.KindAuth, remote.KindKey, remote.KindRefused, remote.KindFailed:
		r := f.Doubt(f.End(jobs.Failed, jobs.ClassOperator, Reason(f.Err)))
		// A host that was disturbed lets nobody in to see its state.
		r.KeepLock = r.KeepLock || f.halfWay()
		return r
	case remote.KindInvalid:
		return f.Doubt(f.End(jobs.Failed, jobs.ClassUser, Reason(f.Err)))
	case remote.KindThrottled, remote.KindNode:
		// Half to three halves of the delay: jobs that failed together must not come back
		// together.
		delay := f.Policy.Delay/2 + time.Duration(chance*float64(f.Policy.Delay))
		if k == remote.KindNode {
			return f.unreached(jobs.Failed, delay) // the host did nothing wrong
		}
		return f.unreached(jobs.Unreachable, delay)
	}
	if f.Cause != nil && !errors.Is(f.Cause, ErrOverdue) {
		return f.NotStarted(Hindrance{Why: f.StopWords()})
	}
	return f.unreached(jobs.Unreachable, f.Policy.Delay)
}

// unreached returns a retry of a try that may work later. After enough tries the job ends with
// the outcome last; but it is not unreachable if a part of it ran, and if that part was to
// disturb the host, the state of the host is unknown.
func (f Evidence) unreached(last jobs.Outcome, delay time.Duration) jobs.Result {
	tries := f.Grant.Tries + 1
	text := Reason(f.Err)
	if errors.Is(f.Cause, ErrOverdue) {
		text = Also(f.StopWords(), text)
	}
	if f.Policy.Again(tries, jobs.ClassTransient) {
		return f.retry(delay, text)
	}
	if tries > 1 {
		text = fmt.Sprintf("%d tries, the last: %s", tries, text)
	}
	switch {
	case last == jobs.Unreachable && f.halfWay():
		return f.End(jobs.Unknown, jobs.ClassOperator, text+"; it was disturbed before")
	case last == jobs.Unreachable && (f.Step > 0 || f.Memory.Again > 0):
		last = jobs.Failed
	}
	return f.Doubt(f.End(last, jobs.ClassTransient, text))
}

// Lost returns the result of a job whose worker vanished, and whose host does not know the end of
// its step. Only a step that may run twice runs again, after the time in which the old attempt may
// still act on the host.
func Lost(f Evidence) jobs.Result {
	node := cmp.Or(f.Grant.LostNode, "(not known)")
	text := fmt.Sprintf("the worker on node %s died with it, and it is not known whether "+
		"step %d ran", node, f.Grant.Step+1)
	f.Step, f.Steps = f.Grant.Step, 0 // the text names the step
	// Once the old lock has ended, nothing acts on the host any more.
	if f.Action.Repeatable {
		r := f.retry(f.Grant.Bound, text)
		r.KeepLock = f.Grant.Bound > 0
		r.Saved = f.remember()
		return r
	}
	r := f.End(jobs.Unknown, jobs.ClassOperator, text)
	r.KeepLock = f.Grant.Bound > 0
	return r
}

// MayHaveBegun reports whether an earlier attempt may have started the step in hand.
func (f Evidence) MayHaveBegun() bool { return MayHaveRun(f.Grant) && f.Step == f.Grant.Step }

// Doubt turns an end which says that nothing ran into unknown, if an earlier attempt may have
// started the step.
func (f Evidence) Doubt(r jobs.Result) jobs.Result {
	if r.Kind != jobs.KindEnd || !MayHaveRun(f.Grant) || f.Step != f.Grant.Step || f.Safe {
		return r
	}
	r.Outcome, r.Class = jobs.Unknown, jobs.ClassOperator
	r.KeepLock = r.KeepLock || f.Grant.Bound > 0
	r.Error += "; an earlier attempt may have started the step"
	return r
}

// End returns the end of the job. Its text begins with the step in hand.
func (f Evidence) End(o jobs.Outcome, c jobs.Class, text string) jobs.Result {
	return f.EndOf(o, c, f.Place()+text)
}

// EndOf is End with a text that names the step itself.
func (f Evidence) EndOf(o jobs.Outcome, c jobs.Class, text string) jobs.Result {
	r := f.say(jobs.KindEnd, text)
	r.Outcome, r.Class, r.Step = o, c, f.Step
	return r
}

// retry returns a further try of the step in hand, after a delay.
func (f Evidence) retry(delay time.Duration, text string) jobs.Result {
	r := f.say(jobs.KindRetry, f.Place()+text)
	r.Delay, r.Step = delay, f.Step
	if f.Grant.Mode == jobs.ModeLost && f.Step == f.Grant.Step && !f.Safe {
		r.Saved, r.KeepLock = f.remember(), f.Grant.Bound > 0
	}
	return r
}

// say returns a result of kind k with a text, and all that a result keeps of the attempt.
func (f Evidence) say(k jobs.Kind, text string) jobs.Result {
	return jobs.Result{Job: f.Grant.Job, Token: f.Grant.Token, Kind: k, Error: OneLine(text),
		Saved: f.kept(), Note: f.beside(),
		Said: jobs.Said{Spent: f.spent(k)}}
}

// Place names the step in hand, as a prefix of a text; empty if the runbook has only one step.
func (f Evidence) Place() string {
	if f.Action.Name == "" || f.Steps == 0 || f.Steps == 1 && f.Step == 0 {
		return ""
	}
	return f.StepWords() + ": "
}

// StepWords names the step in hand.
func (f Evidence) StepWords() string { return stepWords(f.Step, f.Steps, f.Action.Name) }

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

// StopWords returns why the context of the attempt ended.
func (f Evidence) StopWords() string {
	if errors.Is(f.Cause, ErrOverdue) {
		return ErrOverdue.Error()
	}
	return "the worker was stopped"
}

// halfWay reports whether a disruptive job has begun to disturb its host. If such a host stops
// answering, its state is unknown.
func (f Evidence) halfWay() bool { return f.Disruptive && f.Memory.Disturbed }

// spent returns the ledger of a job on which this attempt spent no time.
func (f Evidence) spent(k jobs.Kind) string {
	return Reckoned(SpentBefore(f.Grant), k, WaitsFor(k, f.Action.Kind), jobs.Micros(f.Grant.Token))
}
