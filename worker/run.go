package worker

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"muster/jobs"
	"muster/scripts"
	"muster/worker/kinds"
	"muster/worker/said"
	"muster/worker/verdict"
)

// An attempt is one try at a job, from its take to its result. It runs in a
// goroutine of its own.
type attempt struct {
	worker *Worker
	zone   string
	grant  jobs.Grant
	plan   plan
	lease  *lease

	halt  halt
	timed timing

	progress
	group *groupMarks
	times *admission
	said  *said.Transcript

	secrets hidden
}

// halt is the context of an attempt's steps: it ends with that of the attempt, and when the job is
// cancelled.
type halt struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// progress is how far an attempt has come.
type progress struct {
	step     int // in hand, or the one that would be next
	kind     scripts.Kind
	memory   verdict.Memory
	begun    bool // a step was started in this attempt
	answered bool // the end of the command that was last given was seen on the host
	attached bool // to a step that an earlier one started
	conn     Conn // nil: none yet
	stale    bool // it was found that a newer attempt is under way

	committed jobs.Micros // the task was, by the clock of Redis; 0: nobody has asked
}

// timing is when an attempt began, and whether it should have.
type timing struct {
	sent    time.Duration // before the take, on the boot clock
	began   time.Duration // on the boot clock
	tooLate bool          // the lease was over by then
	stepped time.Duration // when the first step was begun; 0: none was
	clocks  stopwatch
}

func newAttempt(c *clerk, g jobs.Grant, p plan) *attempt {
	if p.spec.Retry.Tries < 1 {
		p.spec.Retry = jobs.DefaultPolicy()
	}
	a := &attempt{
		worker:   c.Worker,
		zone:     c.calls.zone,
		grant:    g,
		plan:     p,
		progress: progress{step: g.Step, memory: verdict.Recall(g.Saved)},
		said:     said.NewTranscript(c.cfg.OutputMax, said.NewVoice(g, c.cfg.OutputMax)),
		timed:    timing{clocks: stopwatch{ledger: verdict.SpentBefore(g)}},
	}
	a.group, a.times = &groupMarks{at: a}, &admission{at: a}
	a.memory.Why = "" // of the attempt before
	return a
}

// run works on the job. A mistake of our own must not take the jobs in the other
// slots with it: of a panic is said what is known, and the worker goes on.
func (a *attempt) run(ctx context.Context) (e ending) {
	defer func() {
		if p := recover(); p != nil {
			a.worker.Log.Error("panic in a job", "job", a.grant.Job, "panic", p,
				"stack", string(debug.Stack()))
			e = ending{token: a.grant.Token, result: a.panicked()}
		}
		e.result.Output, e.result.Gap = a.said.Output()
		e.result.Runs = a.said.RunsFor(e.result.Kind)
		e.result.Spent = a.spent(e.result.Kind)
		a.log(e, a.worker.Clock()-a.timed.began)
	}()

	defer a.hangUp()
	defer a.group.leaveOthers()
	r, stale := a.work(ctx)
	left := verdict.LeftHalfWay(a.facts(), r, a.answered)
	r = a.conclude(r)
	r.KeepLock = r.KeepLock || left
	if !stale {
		r = a.group.unmark(ctx, r)
	}
	return ending{token: a.grant.Token, result: r, stale: stale}
}

// mustEnd is when the attempt has had its time to stop.
func (a *attempt) mustEnd() time.Duration {
	return max(a.lease.until(), a.timed.began, a.lease.toldAt()) + stuckAfter
}

func (a *attempt) panicked() jobs.Result {
	if !a.begun {
		return verdict.Puzzled(a.grant, a.plan.spec.Retry,
			"panic before any step was started: a mistake in muster")
	}
	f := a.facts()
	f.Action.Name = ""
	r := f.End(jobs.Unknown, jobs.ClassOperator, fmt.Sprintf("panic at step %d, and it is not known "+
		"what ran: a mistake in muster", a.step+1))
	r.KeepLock = true
	return r
}

// work goes through the steps until there is something to say.
func (a *attempt) work(ctx context.Context) (r jobs.Result, stale bool) {
	if r, unfit := a.unfit(); unfit {
		return r, false
	}
	if err := a.unseal(); err != nil {
		return a.sealedEnd(err), false
	}
	ruling := a.times.admit(ctx)
	if !ruling.ok {
		return a.times.defers(scripts.Action{}, ruling), false
	}
	defer a.times.watch(ctx, ruling.end, ruling.now)()
	reach := a.halt.ctx
	if verdict.MayHaveRun(a.grant) {
		reach = ctx // what is cancelled must be found before it can be stopped
	}
	hand := a.hand()
	for {
		a.answered = false
		action, err := a.plan.book.Step(a.step, *a.grant.Host, a.context())
		if err != nil {
			return a.facts().End(jobs.Failed, jobs.ClassUser, err.Error()), false
		}
		a.kind = action.Kind
		if action.Skip != "" {
			hand.Notes.Remark(action.Name, ": skipped, "+action.Skip)
			if hand.Course.GoOn(nil); a.step == a.until() {
				return a.facts().Through(), false
			}
			continue
		}
		kind := kinds.Of(action.Kind, hand)
		r, done, goOn := kind.Begin(ctx, a.with(action))
		if !done {
			if r, goOn = a.stepOn(ctx, reach, action, kind); a.stale {
				return r, true
			}
		}
		switch {
		case !goOn:
			return r, false
		case a.step == a.until():
			return a.facts().Through(), false
		}
	}
}

// stepOn does a step on the host, which is connected with once it is needed.
func (a *attempt) stepOn(ctx, reach context.Context, action scripts.Action, kind kinds.Kind) (
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
		a.stale = end.stale
		return end.result, false
	}
	bound, ok := verdict.Bound(action.Timeout, a.lease.left())
	if !ok {
		late := verdict.Hindrance{Late: true, Why: "too little time is left for it"}
		return a.with(action).NotStarted(late), false
	}
	return kind.Look(ctx, kinds.Start{Action: action, Bound: bound, Ask: look,
		Outside: a.times.outside})
}

func (a *attempt) hangUp() {
	if a.conn != nil {
		a.conn.Close()
	}
	a.conn = nil
}

// unfit tells what is to be said at once, without going to the host.
func (a *attempt) unfit() (r jobs.Result, unfit bool) {
	f, g := a.facts(), a.grant
	if g.Mode == jobs.ModeLost && !a.tells() && !a.safe() {
		if g.Host != nil && a.plan.err == nil {
			// Of a step that cannot be made it is not known whether it may run twice.
			f.Action, _ = a.plan.book.Step(g.Step, *g.Host, a.context())
		}
		return verdict.Lost(f), true
	}
	switch _, enough := verdict.Bound(verdict.BoundMin, verdict.Deadline(0, g.Timeout)); {
	case g.Host == nil:
		return f.Doubt(f.End(jobs.Failed, jobs.ClassOperator, fmt.Sprintf(
			"host is not in inventory version %s", a.plan.spec.Inventory))), true
	case a.plan.err != nil:
		return f.End(jobs.Failed, jobs.ClassOperator, a.plan.err.Error()), true
	case g.Step < 0 || g.Step >= len(a.plan.book.Steps):
		return f.End(jobs.Failed, jobs.ClassOperator, fmt.Sprintf("the job is at step %d of a "+
			"runbook with %d steps: a mistake in muster", g.Step+1, len(a.plan.book.Steps))), true
	case !enough:
		return f.End(jobs.Failed, jobs.ClassOperator, fmt.Sprintf("the task allows an attempt %s, "+
			"in which nothing can be started", g.Timeout)), true
	}
	if _, ok := verdict.Bound(verdict.BoundMin, a.lease.left()); !ok {
		return verdict.Untouched(g, "too little time was left when it came"), true
	}
	return jobs.Result{}, false
}

// tells tells whether the host of a lost job may know what became of it, or sees to it
// itself that nothing more does.
func (a *attempt) tells() bool {
	if a.grant.Host == nil || a.plan.err != nil {
		return false
	}
	action, err := a.plan.book.Step(a.grant.Step, *a.grant.Host, a.context())
	return err == nil && verdict.Refuses(a.grant.Host, action)
}

// connect has its own bound, so that a slow host does not eat up the time of the
// steps.
func (a *attempt) connect(ctx context.Context) (Conn, error) {
	dial := func(ctx context.Context) (Conn, error) {
		defer a.on(jobs.Connecting)()
		ctx, cancel := context.WithTimeoutCause(ctx, jobs.ConnectAllowance,
			fmt.Errorf("no connection within %s", jobs.ConnectAllowance))
		defer cancel()
		return a.secrets.dial(ctx, a.worker.Dial, *a.grant.Host)
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	lasting := &lastingConn{Conn: conn, again: dial, clock: a.worker.Clock}
	if len(a.secrets.veil) > 0 {
		return &veiledConn{lasting, a.secrets.veil}, nil
	}
	return lasting, nil
}

// fresh returns f with what the attempt would keep by now.
func (a *attempt) fresh(f verdict.Evidence) verdict.Evidence {
	f.Memory = a.memory
	return f
}

func (a *attempt) facts() verdict.Evidence {
	return verdict.Evidence{
		Grant:  a.grant,
		Policy: a.plan.spec.Retry,
		Steps:  a.plan.book.MainSteps(),
		Until:  a.until(),
		Step:   a.step,
		Begun:  a.begun,
		Safe:   a.safe(),
		Memory: a.memory,

		Disruptive: a.plan.spec.Disruptive,
		Order:      verdict.StoppedBy(a.halt.ctx),
	}
}

func (a *attempt) with(action scripts.Action) verdict.Evidence {
	f := a.facts()
	f.Action = action
	return f
}

func (a *attempt) context() scripts.Context {
	return scripts.Context{Task: string(a.grant.Job.Task()), Attempt: a.grant.Attempt,
		Saved: a.memory.Saved, RecordDir: a.worker.cfg.RecordDir}
}

// log is one line for an attempt. What went well is only of interest to those
// who look for it: the events of the queue have it too.
func (a *attempt) log(e ending, took time.Duration) {
	args := []any{"job", a.grant.Job, "attempt", a.grant.Attempt, "took", took}
	if e.stale {
		a.worker.Log.Warn("the attempt was not the latest any more and was left", args...)
		return
	}
	args = append(args, "kind", e.result.Kind, "outcome", e.result.Outcome, "error", e.result.Error)
	if e.result.Outcome == jobs.Succeeded {
		a.worker.Log.Debug("the attempt is over", args...)
		return
	}
	a.worker.Log.Info("the attempt is over", args...)
}
