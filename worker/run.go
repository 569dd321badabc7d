package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// An attempt is one try at a job, from its take to its result. It runs in a
// goroutine of its own.
type attempt struct {
	*Worker
	zone  string
	grant jobs.Grant
	plan  plan
	lease *lease
	moved chan<- struct{} // told that the lease was moved on

	halting context.Context // ends with that of the attempt, and when the job is cancelled
	halt    context.CancelCauseFunc

	timing

	progress
	marks
	said   *transcript
	clocks stopwatch

	hidden
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
	unheard   error       // the answer of a host that was told to make a change was lost
}

// timing is when an attempt began, and whether it should have.
type timing struct {
	sent    time.Duration // before the take, on the boot clock
	began   time.Duration // on the boot clock
	tooLate bool          // the lease was over by then
	stepped time.Duration // when the first step was begun; 0: none was

	ruled    time.Duration // when it was looked whether the step in hand may start now
	outside  *ruling       // the step in hand must not start: the host is only asked about it
	overtime sync.Once
}

func newAttempt(c *clerk, g jobs.Grant, p plan) *attempt {
	if p.spec.Retry.Tries < 1 {
		p.spec.Retry = jobs.DefaultPolicy()
	}
	a := &attempt{
		Worker:   c.Worker,
		zone:     c.calls.zone,
		grant:    g,
		plan:     p,
		moved:    c.lines.moved,
		progress: progress{step: g.Step, memory: verdict.Recall(g.Saved)},
		said:     newTranscript(c.cfg.OutputMax, newVoice(g, c.cfg.OutputMax)),
		clocks:   stopwatch{ledger: verdict.SpentBefore(g)},
	}
	a.memory.Why = "" // of the attempt before
	return a
}

// run works on the job. A mistake of our own must not take the jobs in the other
// slots with it: of a panic is said what is known, and the worker goes on.
func (a *attempt) run(ctx context.Context) (e ending) {
	defer func() {
		if p := recover(); p != nil {
			a.Log.Error("panic in a job", "job", a.grant.Job, "panic", p,
				"stack", string(debug.Stack()))
			e = ending{token: a.grant.Token, result: a.panicked()}
		}
		e.result.Output, e.result.Gap = a.said.output()
		e.result.Runs = a.said.runsFor(e.result.Kind)
		e.result.Spent = a.spent(e.result.Kind)
		a.log(e, a.Clock()-a.began)
	}()

	defer a.hangUp()
	defer a.leaveOthers()
	r, stale := a.work(ctx)
	left := verdict.LeftHalfWay(a.facts(), r, a.answered)
	r = a.conclude(r)
	r.KeepLock = r.KeepLock || left
	if !stale {
		r = a.unmark(ctx, r)
	}
	return ending{token: a.grant.Token, result: r, stale: stale}
}

// mustEnd is when the attempt has had its time to stop.
func (a *attempt) mustEnd() time.Duration {
	return max(a.lease.until(), a.began, a.lease.toldAt()) + stuckAfter
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
	ruling := a.admit(ctx)
	if !ruling.ok {
		return a.deferred(a.facts(), ruling, nil), false
	}
	defer a.watch(ctx, ruling.end, ruling.now)()
	reach := a.halting
	if verdict.MayHaveRun(a.grant) {
		reach = ctx // what is cancelled must be found before it can be stopped
	}
	for {
		a.answered = false
		action, err := a.plan.book.Step(a.step, *a.grant.Host, a.context())
		if err != nil {
			return a.facts().End(jobs.Failed, jobs.ClassUser, err.Error()), false
		}
		a.kind = action.Kind
		if action.Skip != "" {
			a.remark(action.Name, ": skipped, "+action.Skip)
			if a.goOn(nil); a.step == a.until() {
				return a.facts().Through(), false
			}
			continue
		}
		r, rests, goOn := a.rests(ctx, action)
		if !rests {
			if r, goOn = a.stepOn(ctx, reach, action); a.stale {
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
func (a *attempt) stepOn(ctx, reach context.Context, action scripts.Action) (r jobs.Result,
	goOn bool) {
	if a.conn == nil {
		conn, err := a.connect(reach)
		if err != nil {
			return a.noWay(ctx, action, err), false
		}
		a.conn = conn
	}
	look, end := a.mayStartNow(ctx, action)
	if end != nil {
		a.stale = end.stale
		return end.result, false
	}
	bound, ok := bound(action.Timeout, a.lease.left())
	switch {
	case !ok:
		return a.with(action).NotStarted(verdict.Hindrance{Late: true,
				Why: "too little time is left for it"}),
			false
	case action.Kind == scripts.KindConfirm:
		defer a.on(verdict.Looking(action.Kind))()
		return a.confirms(ctx, action, bound)
	case verdict.Patient(action.Kind):
		defer a.on(verdict.Looking(action.Kind))()
		return a.probe(ctx, a.conn, action, bound)
	}
	if a.asks(action) {
		a.learnCommit(ctx)
	}
	return a.try(ctx, a.conn, action, a.record(action, look), bound)
}

// noWay is about a host that cannot be connected with.
func (a *attempt) noWay(ctx context.Context, action scripts.Action, err error) jobs.Result {
	begun := a.memory.Probe != nil
	switch {
	case action.Kind == scripts.KindConfirm && (begun || a.mayHaveBegun()):
		return a.confirmAway(ctx, action, err)
	case action.Kind == scripts.KindWait, begun && verdict.Patient(action.Kind):
		return a.probeAway(ctx, action, err)
	}
	f := a.facts()
	f.Err, f.Cause = err, cause(ctx)
	r, _ := verdict.Judge(f, rand.Float64())
	f.Action = action
	return verdict.Follow(f, r, a.now())
}

func (a *attempt) hangUp() {
	if a.conn != nil {
		a.conn.Close()
	}
	a.conn = nil
}

// mayStart asks the queue, if it must be, whether the next step may start. If not it
// returns what is to be said, or that the host may be looked at: what became of the step
// before is asked there also when nothing may start any more.
func (a *attempt) mayStart(ctx context.Context, action scripts.Action) (look bool, end *ending) {
	asks, f := a.asks(action), a.with(action)
	switch {
	case f.Order != nil:
		if asks {
			return true, nil
		}
		return false, &ending{result: f.NotStarted(verdict.Hindrance{})}
	case !asks && !a.needsGo(action):
		return false, nil
	}
	v, err := a.checkpoint(a.halting)
	switch {
	case asks && order(a.halting) != nil:
		return true, nil
	case err != nil:
		return false, &ending{result: a.noGo(ctx, action, err)}
	case v == jobs.Stale:
		return false, &ending{stale: true}
	case v != jobs.Go && !asks:
		return false, &ending{result: a.notAllowed(action)}
	}
	return v != jobs.Go, nil
}

// needsGo tells whether the queue must be asked before the next step. For the
// first one the take was a go, if it is fresh enough to show a stop or the loss
// of Redis, and left the step all its time. That of a lost job was none: it comes also if it
// was cancelled, with what is left of the lock of its last attempt.
func (a *attempt) needsGo(action scripts.Action) bool {
	return a.step > a.grant.Step || a.Clock()-a.sent > goTime || a.grant.Mode == jobs.ModeLost ||
		room(a.lease.left()) < max(action.Timeout, boundMin)
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
	switch _, enough := bound(boundMin, deadline(0, g.Timeout)); {
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
	if _, ok := bound(boundMin, a.lease.left()); !ok {
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
		return a.dial(ctx, a.Dial, *a.grant.Host)
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	lasting := &lastingConn{Conn: conn, again: dial, clock: a.Clock}
	if len(a.veil) > 0 {
		return &veiledConn{lasting, a.veil}, nil
	}
	return lasting, nil
}

// checkpoint asks whether the next step may start, until there is an answer or
// the time is over. A go renews the lock, so the lease goes on from before the
// call that brought it.
func (a *attempt) checkpoint(ctx context.Context) (jobs.Verdict, error) {
	question := jobs.Checkpoint{
		Job: a.grant.Job, Token: a.grant.Token, Step: a.step, Saved: a.memory.Replacing(a.grant.Saved),
	}
	a.memory.Told = a.memory.Told || question.Saved != ""
	for tries := 1; ; tries++ {
		sent := a.Clock()
		v, err := a.ask(ctx, question)
		if err == nil {
			if v == jobs.Go {
				a.lease.extend(deadline(sent, a.grant.Timeout))
				a.tell()
			}
			return v, nil
		}
		timer := time.NewTimer(pause(tries, rand.Float64()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", err
		}
	}
}

// ask asks once.
func (a *attempt) ask(ctx context.Context, q jobs.Checkpoint) (jobs.Verdict, error) {
	within := min(a.cfg.Call, a.lease.left())
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	v, err := a.Queue.Checkpoint(ctx, a.zone, q)
	return v, verdict.NoAnswer(err, within)
}

// tell lets the clerk report the new deadline.
func (a *attempt) tell() {
	select {
	case a.moved <- struct{}{}:
	default: // it has been told and will look
	}
}

// noGo returns the result of a job whose step the queue did not allow in time.
func (a *attempt) noGo(ctx context.Context, action scripts.Action, err error) jobs.Result {
	f := a.with(action)
	f.Cause = cause(ctx)
	if f.Order == nil && errors.Is(f.Cause, verdict.ErrOverdue) {
		return f.NotStarted(verdict.Hindrance{Late: true,
			Why: verdict.Also("no go came from the queue", err.Error())})
	}
	return f.NotStarted(verdict.Hindrance{Why: f.StopWords()})
}

// fresh returns f with what the attempt would keep by now.
func (a *attempt) fresh(f verdict.Evidence) verdict.Evidence {
	f.Memory = a.memory
	return f
}

// try runs one step on the host.
func (a *attempt) try(ctx context.Context, conn Conn, action scripts.Action, record *remote.Record,
	bound time.Duration) (r jobs.Result, goOn bool) {
	f := a.with(action)
	stdin, err := a.stdin(action)
	if err != nil {
		return f.End(jobs.Failed, jobs.ClassOperator, err.Error()), false
	}
	free := a.Clock() + bound + jobs.KillGrace + answerTime
	if len(a.plan.book.Steps) > 1 { // one alone needs no title
		a.remark(action.Name, "")
	}
	a.begin()
	run := a.runOf(action, record)
	a.said.begins(run)
	done := a.on(jobs.Acting)
	f.Result, f.Err = a.do(ctx, conn, action, remote.Command{Shell: action.Shell, Bound: bound,
		Stdin: stdin, Stop: a.halting.Done(), Record: record, Live: a.said.live,
		Began: a.tellAgain(record), Attached: func(token int64) {
			run.Token = jobs.Token(token)
			a.said.takeOver(run)
		}})
	done()
	a.hasAnswered(f.Err)
	a.hears(&f.Result)
	f.Busy = max(0, free-a.Clock())
	f.Cause, f.Order = cause(ctx), order(a.halting)
	f = a.fresh(f)
	if a.outside != nil && verdict.Asked(f.Err) == remote.KindNever {
		return a.deferred(f, *a.outside, f.Err), false
	}
	if r, ok := verdict.SecretsLost(f); ok {
		return r, false
	}
	if f.Err == nil {
		a.noteDisturbed(action) // it ran, whatever it says, and may be tried once more
		f = a.fresh(f)
	}
	if r, goOn = verdict.Judge(f, rand.Float64()); goOn {
		a.goOn(f.Finding().Saved)
	} else if verdict.GoesOnAlone(f) {
		r = verdict.Follow(f, r, a.now())
	} else if verdict.Rescues(f, r) {
		a.rescue(action, r)
		goOn = true
	}
	return r, goOn
}

// do is the step itself.
func (a *attempt) do(ctx context.Context, conn Conn, action scripts.Action,
	c remote.Command) (remote.Result, error) {
	if action.Kind == scripts.KindUpload {
		return a.upload(ctx, conn, action.Upload, c)
	}
	return conn.Run(ctx, c)
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
		Order:      order(a.halting),
	}
}

func (a *attempt) with(action scripts.Action) verdict.Evidence {
	f := a.facts()
	f.Action = action
	return f
}

func (a *attempt) context() scripts.Context {
	return scripts.Context{Task: string(a.grant.Job.Task()), Attempt: a.grant.Attempt,
		Saved: a.memory.Saved, RecordDir: a.cfg.RecordDir}
}

// cause is why ctx ended; nil: it has not.
func cause(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// log is one line for an attempt. What went well is only of interest to those
// who look for it: the events of the queue have it too.
func (a *attempt) log(e ending, took time.Duration) {
	args := []any{"job", a.grant.Job, "attempt", a.grant.Attempt, "took", took}
	if e.stale {
		a.Log.Warn("the attempt was not the latest any more and was left", args...)
		return
	}
	args = append(args, "kind", e.result.Kind, "outcome", e.result.Outcome, "error", e.result.Error)
	if e.result.Outcome == jobs.Succeeded {
		a.Log.Debug("the attempt is over", args...)
		return
	}
	a.Log.Info("the attempt is over", args...)
}
