package intake

import (
	"context"
	"errors"
	"time"

	"muster/access"
	"muster/api"
	"muster/jobs"
	"muster/scripts"
	"muster/server/draft"
	"muster/server/fault"
	"muster/server/stock"
	"muster/server/web"
)

// Tasks reads tasks. Its errors wrap queue.ErrNotFound if Redis has no such task.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	Spec(ctx context.Context, id jobs.TaskID) (jobs.Spec, error)
}

// Holding knows which tasks wait for signatures.
type Holding interface {
	IsHeld(ctx context.Context, id jobs.TaskID) (bool, error)
}

// Past reads tasks that Redis may have forgotten.
type Past interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// Chains keeps chains.
type Chains interface {
	SaveChain(ctx context.Context, c jobs.Chain) (jobs.Chain, error)
}

// An Intake makes tasks of submits and of schedules.
type Intake struct {
	Catalog  func() *scripts.Catalog
	Stock    *stock.Store
	Look     *stock.Looker
	Files    Files
	Sealer   Sealer
	Openings *Openings
	Entry    *Entry
	Tasks    Tasks
	Holding  Holding
	Chains   Chains
	Advance  func(ctx context.Context, chain jobs.TaskID) error // begins what is next in a chain
	Past     Past                                               // nil: there is no history
	Durable  string                                             // each answer repeats it
	Now      func() time.Time
	Chance   func() uint16
}

// An Ask is a request for a task, with who asks for it.
type Ask struct {
	Body     api.Submit
	Operator string
	Proven   bool
	Wrong    []error // mistakes that were found before: they are reported with all others

	Schedule string    // of this schedule; empty: of none
	Tick     jobs.Time // of this tick; zero: a person runs the schedule out of its turn

	Reason string // for later readers; empty: none
	// Waits says for what the task waits once it is put.
	Waits draft.Waits
	// Glass says why the one who asks breaks the glass; empty: they do not.
	Glass string
	Trace string // traceparent of the caller; it is ignored if it is wrong
}

// A stage is one step of a request on its way. Its error ends the way.
type stage func(context.Context) error

// errAnswered ends the way of a request that has its answer.
var errAnswered = errors.New("answered")

// through takes a request through stages.
func through(ctx context.Context, stages ...stage) error {
	for _, next := range stages {
		if err := next(ctx); errors.Is(err, errAnswered) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// refuse returns the error of a request with mistakes, and another error first.
func refuse(wrong []error, err error) error {
	if err == nil && len(wrong) > 0 {
		return fault.Refuse(wrong)
	}
	return err
}

// Tick drafts the task of a schedule, or returns all that is wrong with it. offset says how much
// later a host begins than the others; nil: all at once. An error comes from Redis.
func (in *Intake) Tick(ctx context.Context, a Ask, offset func(host string) time.Duration) (
	draft.Draft, []error, error) {
	p, wrong, err := in.resolve(ctx, in.Look, a, false)
	p.Task.Spec.Schedule, p.Task.Spec.Tick = a.Schedule, a.Tick
	if err != nil || len(wrong) > 0 {
		return p, wrong, err
	}
	wrong, err = in.Openings.Appoint(ctx, &p, a.Body.Timed, offset)
	return p, wrong, err
}

// Foresee drafts a task that nobody submits, to find out when it would be done.
func (in *Intake) Foresee(ctx context.Context, a Ask) (draft.Draft, error) {
	a.Body.DryRun, a.Body.ID = true, ""
	p, more, err := in.resolve(ctx, in.Look, a, true)
	more = append(more, a.Waits.Lane.Check()...)
	if err = refuse(append(a.Wrong, more...), err); err != nil {
		return p, err
	}
	view, act := web.ViewOf(ctx), access.Act{Verb: access.Plan, Runbook: p.Task.Spec.Runbook}
	if a.Body.AllowedOnly {
		keepAllowed(view, &p, []string{act.Runbook})
	}
	if err := view.Refuse(act, p.Names); err != nil {
		return p, err
	}
	if p.Waits.Lane, err = scoped(a.Waits.Lane, p, view); err != nil || !a.Body.SkipClosed {
		return p, err
	}
	wrong, err := in.Openings.SkipClosed(ctx, &p)
	return p, refuse(wrong, err)
}

// scenes finds out how the hosts of a selector stand.
type scenes interface {
	Scene(ctx context.Context, on string) (stock.Scene, error)
}

// resolve drafts what a request comes to now, or returns all that is wrong with it.
func (in *Intake) resolve(ctx context.Context, look scenes, a Ask, foretold bool) (draft.Draft,
	[]error, error) {
	catalog := in.Catalog()
	b, stored, err := in.Files.Keep(ctx, a.Body, catalog, a.Operator)
	if err != nil {
		return draft.Draft{}, nil, err
	}
	v, err := look.Scene(ctx, b.On)
	if err != nil {
		return draft.Draft{}, nil, err
	}
	p, wrong := draft.New(b, draft.Setting{Catalog: catalog, Scene: v, Operator: a.Operator,
		Proven: a.Proven, Now: in.Now(), Stored: stored, Foretold: foretold})
	return p, wrong, nil
}
