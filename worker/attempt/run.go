package attempt

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/jobs"
	"muster/scripts"
	"muster/worker/kinds"
	"muster/worker/verdict"
)

// run works on the job. A bug in muster must not take the jobs in the other slots with it: after a
// panic run returns a result that says what is known, and the worker continues.
func (a *Attempt) run(ctx context.Context) (e Ending) {
	defer func() {
		if p := recover(); p != nil {
			a.logger().Error("panic in a job", "panic", p, "stack", string(debug.Stack()))
			e = Ending{Token: a.grant.Token, Result: a.panicked()}
		}
		e.Result.Output, e.Result.Gap = a.transcript.Output()
		e.Result.Runs = a.transcript.RunsFor(e.Result.Kind)
		e.Result.Spent = a.spent(e.Result.Kind)
		e.Result.Saved = a.vouched(e.Result)
		a.tell(e, a.env.Clock()-a.timed.began)
	}()

	a.logger().Debug("the attempt begins")
	defer a.hangUp()
	defer a.group.leaveOthers()
	r, stale := a.work(ctx)
	left := verdict.LeftHalfWay(a.evidence(), r, a.answered)
	r = course{a}.conclude(r)
	r.KeepLock = r.KeepLock || left
	if !stale {
		r = a.group.unmark(ctx, r)
	}
	return Ending{Token: a.grant.Token, Result: r, Stale: stale}
}

// vouched returns the state of the job after a result, with a proof that it is of this node. A
// state that was not examined gets none.
func (a *Attempt) vouched(r jobs.Result) string {
	if !a.plan.Proven || r.Kind == jobs.KindEnd {
		return r.Saved
	}
	return a.env.Trust.Seal(r.Job, r.Step, r.Saved)
}

// panicked returns the result of an attempt in which a bug caused a panic.
func (a *Attempt) panicked() jobs.Result {
	if !a.begun {
		return verdict.Puzzled(a.grant, a.plan.Spec.Retry,
			"panic before any step was started: a mistake in muster")
	}
	f := a.evidence()
	f.Action.Name = ""
	r := f.End(jobs.Unknown, jobs.ClassOperator, fmt.Sprintf("panic at step %d, and it is not known "+
		"what ran: a mistake in muster", a.step+1))
	r.KeepLock = true
	return r
}

// work does the steps until the attempt has a result.
func (a *Attempt) work(ctx context.Context) (r jobs.Result, stale bool) {
	if r, refused := (entry{a}).refused(ctx); refused {
		return r, false
	}
	ruling := a.times.admit(ctx)
	if !ruling.ok {
		return a.times.defers(scripts.Action{}, ruling), false
	}
	defer a.times.watch(ctx, ruling.end, ruling.now)()
	reach := a.stop.ctx
	if verdict.MayHaveRun(a.grant) {
		reach = ctx // also a cancelled step must be found on the host before it can be stopped
	}
	hand := a.hand()
	for {
		a.answered = false
		action, err := a.action(a.step)
		if err != nil {
			return a.evidence().End(jobs.Failed, jobs.ClassUser, err.Error()), false
		}
		a.kind = action.Kind
		if action.Skip != "" {
			hand.Notes.Remark(action.Name, ": skipped, "+action.Skip)
			if hand.Course.GoOn(nil); (course{a}).over() {
				return a.evidence().Through(), false
			}
			continue
		}
		kind := kinds.Of(action.Kind, hand)
		r, done, goOn := kind.Begin(ctx, a.evidenceFor(action))
		if !done {
			if r, goOn = a.stepOn(ctx, reach, action, kind); a.stale {
				return r, true
			}
		}
		switch {
		case !goOn:
			return r, false
		case course{a}.over():
			return a.evidence().Through(), false
		}
	}
}

// stepOn does a step on the host. The first such step connects to the host.
func (a *Attempt) stepOn(ctx, reach context.Context, action scripts.Action, kind kinds.Kind) (
	r jobs.Result, goOn bool) {
	if a.conn == nil {
		conn, err := a.connect(reach)
		if err != nil {
			return kind.Away(ctx, action, err), false
		}
		a.conn = conn
	}
	look, end := a.times.mayStartNow(ctx, action)
	if end != nil {
		a.stale = end.Stale
		return end.Result, false
	}
	bound, ok := verdict.Bound(action.Timeout, a.lease.left())
	if !ok {
		late := verdict.Hindrance{Late: true, Why: "too little time is left for it"}
		return a.evidenceFor(action).NotStarted(late), false
	}
	return kind.Look(ctx, kinds.Start{Action: action, Bound: bound, Ask: look,
		Outside: a.times.outside})
}

// hangUp closes the connection to the host.
func (a *Attempt) hangUp() {
	if a.conn != nil {
		a.conn.Close()
	}
	a.conn = nil
}

// connect connects to the host, with a bound of its own: a slow host does not use up the time of
// the steps.
func (a *Attempt) connect(ctx context.Context) (Conn, error) {
	dial := func(ctx context.Context) (Conn, error) {
		defer a.spend(jobs.Connecting)()
		ctx, cancel := context.WithTimeoutCause(ctx, jobs.ConnectAllowance,
			fmt.Errorf("no connection within %s", jobs.ConnectAllowance))
		defer cancel()
		return a.secrets.dial(ctx, a.env.Dial, *a.grant.Host)
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	lasting := &lastingConn{Conn: conn, again: dial, clock: a.env.Clock}
	if len(a.secrets.veil) > 0 {
		return &veiledConn{lasting, a.secrets.veil}, nil
	}
	return lasting, nil
}

// withMemory returns f with the memory of this moment.
func (a *Attempt) withMemory(f verdict.Evidence) verdict.Evidence {
	f.Memory = a.memory
	return f
}

// evidence returns what the attempt knows of its job at this moment.
func (a *Attempt) evidence() verdict.Evidence {
	return verdict.Evidence{
		Grant:  a.grant,
		Policy: a.plan.Spec.Retry,
		Steps:  a.plan.Book.MainSteps(),
		Until:  a.plan.until(a.memory),
		Step:   a.step,
		Begun:  a.begun,
		Safe:   a.plan.safe(a.step),
		Memory: a.memory,

		Disruptive: a.plan.Spec.Disruptive,
		Order:      verdict.StoppedBy(a.stop.ctx),
	}
}

// evidenceFor returns the evidence about one step.
func (a *Attempt) evidenceFor(action scripts.Action) verdict.Evidence {
	f := a.evidence()
	f.Action = action
	return f
}

// action returns a step as this attempt would do it on its host.
func (a *Attempt) action(step int) (scripts.Action, error) {
	return a.plan.Book.Step(step, *a.grant.Host, scripts.Context{Task: string(a.grant.Job.Task()),
		Attempt: a.grant.Attempt, Saved: a.memory.Saved, RecordDir: a.env.Config.RecordDir})
}

// logger names task, job and attempt in each line.
func (a *Attempt) logger() hclog.Logger {
	return a.env.Log.With("task", a.grant.Job.Task(), "job", a.grant.Job, "attempt", a.grant.Attempt)
}

// tell logs that the attempt is over. A success goes to the level debug, because the events of
// the queue have it, too.
func (a *Attempt) tell(e Ending, took time.Duration) {
	args := []any{"took", took, "kind", e.Result.Kind, "outcome", e.Result.Outcome, "error",
		e.Result.Error}
	switch {
	case e.Stale:
		a.logger().Warn("a newer attempt is under way, this one was abandoned", "took", took)
	case e.Result.Outcome == jobs.Succeeded:
		a.logger().Debug("the attempt is over", args...)
	default:
		a.logger().Info("the attempt is over", args...)
	}
}
