package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/draft"
	"muster/server/fault"
	"muster/server/stock"
	"muster/server/web"
)

// A retry reads so many jobs at once.
const jobsMax = 500

// Retrying finds the tasks that do jobs of a task again already.
type Retrying interface {
	Retries(ctx context.Context, of, by jobs.TaskID, hosts []string) ([]jobs.Again, error)
}

// Retries makes tasks that do jobs of other tasks again.
type Retries struct {
	Look     *stock.Looker
	Sealer   Sealer
	Openings *Openings
	Entry    *Entry
	Tasks    Tasks
	Specs    SpecReader // that are believed
	Jobs     stock.Jobs
	Retrying Retrying
	Durable  string
	Now      func() time.Time
	// Await calls a function until it returns true, for a while, or until the server stops.
	Await func(ctx context.Context, wait time.Duration, look func() (bool, error)) error
}

// A RetryAsk is a request to do some jobs of a task again. Its outcomes are complete and valid.
type RetryAsk struct {
	Of       jobs.TaskID
	Body     api.RetryRequest
	Operator string
	Proven   bool
	Trace    string // as in an Ask
}

// A RetryAnswer is what becomes of a RetryAsk.
type RetryAnswer struct {
	Retried api.Retried
	Created bool // a new task was made
}

// retry is a RetryAsk on its way through the stages.
type retry struct {
	with   *Retries
	ask    RetryAsk
	choice draft.Choice
	scene  stock.Scene
	draft  draft.Draft
	answer RetryAnswer
}

// Retry makes a new task of those hosts of an old one whose jobs ended in some
// ways. The task runs the old task's own frozen runbook, with its arguments; the
// hosts are as the inventory has them today. Hosts that another task does again
// already are left out.
func (r *Retries) Retry(ctx context.Context, a RetryAsk) (RetryAnswer, error) {
	for {
		// Another may claim the same hosts while this one is made.
		answer, err := r.once(ctx, a)
		if !errors.Is(err, queue.ErrRetried) {
			return answer, err
		}
		if a.Body.ID == "" {
			continue
		}
		if _, err := r.Tasks.Task(ctx, jobs.TaskID(a.Body.ID)); err == nil {
			a.Body.ID = "" // it was put with hosts that others have now; without them it is another task
		}
	}
}

// once makes the new task, or answers that there is nothing to make. It wraps
// queue.ErrRetried if others have come in between: then nothing was made.
func (r *Retries) once(ctx context.Context, a RetryAsk) (RetryAnswer, error) {
	t := &retry{with: r, ask: a}
	err := through(ctx,
		t.answerIfKnown,
		t.chooseHosts,
		t.leaveEarlier,
		t.lookAtHosts,
		t.makeDraft,
		t.openSecrets,
		t.checkFacts,
		t.appoint,
		t.answerDryRun,
		t.put,
	)
	return t.answer, err
}

// answerIfKnown answers a retry whose id is known already.
func (t *retry) answerIfKnown(ctx context.Context) error {
	id := jobs.TaskID(t.ask.Body.ID)
	if id == "" || t.ask.Body.DryRun {
		return nil
	}
	info, err := t.with.Tasks.Task(ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return nil
	case err != nil:
		return err
	case info.RetryOf != t.ask.Of && !web.ViewOf(ctx).All():
		return foreign(id)
	case info.RetryOf != t.ask.Of:
		return conflict(id, fmt.Sprintf("it is no retry of %s", t.ask.Of))
	case info.CancelledInSubmit:
		return neverComes(id)
	case info.State == jobs.TaskSubmitting:
		return nil
	}
	t.answer.Retried.Submitted = api.Submitted{TaskInfo: info, Durable: t.with.Durable}
	return errAnswered
}

// chooseHosts finds the jobs that ended in one of the ways asked for.
func (t *retry) chooseHosts(ctx context.Context) error {
	of, c := t.ask.Of, &t.choice
	c.Of = of
	var err error
	if c.Spec, err = t.with.Specs.Spec(ctx, of); err != nil {
		return err
	}
	return t.with.Jobs.EachJob(ctx, of, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			switch {
			case j.State != jobs.Ended:
				c.Open++
			case slices.Contains(t.ask.Body.Outcomes, j.Outcome):
				c.Hosts = append(c.Hosts, j.Host)
			}
		}
		return nil
	})
}

// comingWait bounds how long a retry waits for another one of the same hosts that is being
// submitted: one that takes longer keeps its hosts if its server has died.
const comingWait = 15 * time.Second

// leaveEarlier leaves out hosts that another task does again. It waits until it is known
// whether a task comes that is just being submitted.
func (t *retry) leaveEarlier(ctx context.Context) error {
	wait := comingWait
	if t.ask.Body.DryRun {
		wait = 0
	}
	c := &t.choice
	var list []jobs.Again
	coming := false
	err := t.with.Await(ctx, wait, func() (over bool, err error) {
		list, err = t.with.Retrying.Retries(ctx, t.ask.Of, jobs.TaskID(t.ask.Body.ID), c.Hosts)
		coming = slices.ContainsFunc(list, func(a jobs.Again) bool { return a.Coming })
		return !coming, err
	})
	switch {
	case err != nil:
		return err
	case coming && !t.ask.Body.DryRun:
		// This server stops, or it takes too long: no task is named that may never come.
		return fault.Later("another retry of the same hosts is being submitted, and it is not known " +
			"yet whether it comes: nothing was made, give the order again")
	case t.ask.Body.Again:
		return nil
	}
	left := map[string]bool{}
	for _, a := range list {
		for _, host := range a.Hosts {
			left[host] = true
		}
	}
	c.Hosts = slices.DeleteFunc(c.Hosts, func(host string) bool { return left[host] })
	c.Earlier = list
	if len(c.Hosts) == 0 && len(c.Earlier) > 0 {
		return t.answerAlready(api.Retried{Open: c.Open})
	}
	return nil
}

// answerAlready answers a retry of which nothing is left to do.
func (t *retry) answerAlready(out api.Retried) error {
	out.Already, out.Earlier = true, draft.Earlier(t.choice.Earlier)
	out.TaskInfo = jobs.TaskInfo{Runbook: t.choice.Spec.Runbook, Zones: []string{},
		Outcomes: jobs.NewCounts(), Terms: jobs.Terms{RetryOf: t.ask.Of}}
	t.answer.Retried = out
	return errAnswered
}

func (t *retry) lookAtHosts(ctx context.Context) (err error) {
	t.scene, err = t.with.Look.Scene(ctx, "")
	return err
}

func (t *retry) makeDraft(context.Context) error {
	var wrong []error
	t.draft, t.answer.Retried, wrong = draft.Again(t.ask.Body, t.choice, draft.Setting{Scene: t.scene,
		Operator: t.ask.Operator, Proven: t.ask.Proven, Now: t.with.Now()})
	t.draft.Task.Trace = traceOf(t.ask.Trace)
	if len(wrong) == 0 && t.answer.Retried.Already {
		return t.answerAlready(t.answer.Retried)
	}
	return refuse(wrong, nil)
}

// openSecrets opens the secrets of the old task for the new one.
func (t *retry) openSecrets(context.Context) (err error) {
	t.draft.Secrets, err = t.with.Sealer.open(t.ask.Of, t.draft.Frozen)
	return refuse(fault.Each("path.task", err), nil)
}

func (t *retry) checkFacts(ctx context.Context) error {
	return refuse(checkFacts(ctx, t.with.Look, t.scene, &t.draft))
}

// appoint gives each host the opening in which its job begins.
func (t *retry) appoint(ctx context.Context) error {
	return refuse(t.with.Openings.Appoint(ctx, &t.draft, api.Timed{}, nil))
}

func (t *retry) answerDryRun(context.Context) error {
	if !t.ask.Body.DryRun {
		return nil
	}
	t.answer.Retried.Submitted = t.draft.Answer(t.with.Durable)
	t.answer.Retried.Hosts = fleet.Fold(t.draft.Names)
	return errAnswered
}

// put submits the task. It is accepted, whatever becomes of the look at it.
func (t *retry) put(ctx context.Context) error {
	if err := t.with.Entry.Put(ctx, &t.draft); err != nil {
		return err
	}
	t.answer.Created = true
	t.answer.Retried.Submitted = t.draft.Answer(t.with.Durable)
	if info, err := t.with.Tasks.Task(ctx, t.draft.Task.ID); err == nil {
		t.answer.Retried.TaskInfo = info
	}
	return nil
}
