package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// This file is about hosts that keep a record of the steps they are given: what an earlier
// attempt did is asked there, before anything is said or started.

// sinceMargin is how much earlier than by the server's clock a task may have been made by
// that of Redis, which makes the tokens.
const sinceMargin = 10 * time.Minute

// jumpMargin is how far the clock of Redis may have gone back since it said when a task was
// committed: beyond that the queue takes nothing before somebody has looked.
const jumpMargin = time.Minute

// triesApart is how far the numbers are from each other by which hosts know two tries of one
// step: what became of one says nothing about the next.
const triesApart = 1000

// refuses tells whether a host may refuse a step to an attempt that was overtaken.
func refuses(h *fleet.Host, action scripts.Action) bool {
	return recorded(h, action) || keepsRecords(h) && action.Kind == scripts.KindUpload
}

// recorded tells whether a host may keep a record of a step. Uploads need none: a file is
// there as a whole or not at all.
func recorded(h *fleet.Host, action scripts.Action) bool {
	return keepsRecords(h) && action.Kind == scripts.KindRun
}

func keepsRecords(h *fleet.Host) bool {
	return h != nil && h.Fence != fleet.FenceNone && h.Fence != ""
}

// mayHaveRun tells whether an earlier attempt may have started the step that the job is at.
func mayHaveRun(g jobs.Grant) bool { return g.Mode == jobs.ModeLost || remembered(g.Saved) }

// mayHaveBegun tells whether an earlier attempt may have started the step in hand.
func (a *attempt) mayHaveBegun() bool { return mayHaveRun(a.grant) && a.step == a.grant.Step }

// asks tells whether the host must be asked about a step before it is started.
func (a *attempt) asks(action scripts.Action) bool {
	return a.mayHaveBegun() && recorded(a.grant.Host, action)
}

// record is what the host is told of a step; nil: it is not asked. With look it starts nothing.
func (a *attempt) record(action scripts.Action, look bool) *remote.Record {
	if !refuses(a.grant.Host, action) {
		return nil
	}
	r := a.recordOf(a.step + triesApart*a.memory.Again)
	if action.Kind == scripts.KindUpload { // later the old lock is over, and so is the old attempt
		r.Again = a.grant.Mode == jobs.ModeLost && a.step == a.grant.Step
		return r
	}
	r.Again, r.Twice, r.Look = a.asks(action), action.Repeatable, look
	r.Marked = r.Marked && a.disturbs(action)
	return r
}

// recordOf is the record of this job that has a number.
func (a *attempt) recordOf(number int) *remote.Record {
	return &remote.Record{
		Job:   string(a.grant.Job),
		Step:  number,
		Token: int64(a.grant.Token),
		Since: int64(a.since()),
		// What disturbs the host is not begun where another job has marked its group since.
		Marked: a.memory.Marked != 0,
	}
}

// since is before any attempt at the job. A host whose records are no older shows by them that
// a step never began: the later it is the more of them can.
func (a *attempt) since() jobs.Micros {
	spec := a.plan.spec
	since := max(spec.Created, spec.After).Add(-sinceMargin)
	if a.committed != 0 {
		since = max(since, a.committed.Add(-jumpMargin))
	}
	return max(since, 0)
}

// learnCommit asks the queue when the task was committed, by the clock that makes tokens. If it
// does not say the server's clock must do.
func (a *attempt) learnCommit(ctx context.Context) {
	if a.Committed == nil || a.committed != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(a.cfg.Call, max(a.lease.left(), 0)))
	defer cancel()
	at, err := a.Committed(ctx, a.zone, a.grant.Job.Task())
	if err != nil {
		a.Log.Info("it is not known when the task was committed", "job", a.grant.Job, "error", err)
	}
	a.committed = at
}

// runOf is the run that a record of a step is about; none if nobody may take it over, or
// if what it says is covered in places: two attempts may cover it otherwise.
func (a *attempt) runOf(action scripts.Action, r *remote.Record) jobs.Run {
	if r == nil || action.Kind != scripts.KindRun || len(a.veil) > 0 {
		return jobs.Run{}
	}
	return jobs.Run{Token: a.grant.Token, Step: r.Step}
}

// note is what is worth telling of a job beside its outcome; empty: nothing.
func (f facts) beside() string {
	r := f.result
	var parts []string
	if r.Attached {
		parts = append(parts, "attached")
	}
	if r.Unfenced != "" {
		parts = append(parts, "unfenced: it lacks "+r.Unfenced)
	}
	if lost := cmp.Or(r.Lost, f.mind().Lost); lost != "" {
		parts = append(parts, "output lost: "+lost)
	}
	return strings.Join(parts, ", ")
}

// canAsk tells whether the next attempt may learn from the host how it went.
func (f facts) canAsk(k remote.Kind) bool {
	if !recorded(f.grant.Host, f.action) || f.result.Unfenced != "" {
		return false
	}
	switch k {
	case remote.KindGone, remote.KindMute, remote.KindRunning:
		return false
	}
	return recall(f.grant.Saved).Asked+1 < max(f.policy.Tries, askMin)
}

// askMin is how often at least a host is asked before that is given up.
const askMin = 3

// askLater has the job come again, to attach to what runs or take the result. It keeps its
// host until then.
func (f facts) askLater(text string) jobs.Result {
	r := f.say(jobs.KindWait, f.place()+text+"; the host will be asked")
	r.Delay, r.Step = f.policy.Delay, f.step
	m := f.mind()
	m.MayHaveRun = true
	if f.step == f.grant.Step {
		m.Asked = recall(f.grant.Saved).Asked + 1
	}
	r.Saved = m.String()
	return r
}

// told is about a step that the host refused to start, and why. ok is false if its fence has
// nothing to do with it.
func (f facts) told(e *remote.Error) (r jobs.Result, ok bool) {
	switch e.Kind {
	case remote.KindRecord, remote.KindStale:
		return f.doubt(f.end(jobs.Failed, jobs.ClassOperator, reason(e))), true
	case remote.KindBusy:
		return f.unreached(jobs.Failed, max(e.Wait, f.policy.Delay)), true
	case remote.KindUntold:
		if f.grant.Mode == jobs.ModeLost {
			f.result.Output = remote.Output{}
			r = lost(f)
			r.Error = oneLine(r.Error + ": " + reason(e))
			return r, true
		}
		return f.doubt(f.end(jobs.Failed, jobs.ClassOperator, reason(e))), true
	case remote.KindNever:
		return halted(f), true
	}
	return jobs.Result{}, false
}

// unbegun is about a cancelled job whose host says that the step never began.
func (f facts) unbegun() jobs.Result {
	return f.endOf(jobs.Cancelled, jobs.ClassNone, fmt.Sprintf("%s; %s never began", f.note(),
		f.stepWords()))
}

// stoppedBefore is about a step that was stopped on the host for an attempt before this one.
func (f facts) stoppedBefore() jobs.Result {
	f.order = &stopOrder{"stopped for an earlier attempt"}
	return f.stoppedOnHost()
}

// asked is what an error says about a host that could not tell more.
func asked(err error) (k remote.Kind) {
	var e *remote.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return remote.KindLost
}
