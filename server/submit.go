package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/draft"
)

// idTries is how often an id of our own is made anew when another task has it.
const idTries = 5

// partsKept is how long at least the parts of a task stay, once they were put.
const partsKept = 24 * time.Hour

// The results of a submit, as they are counted.
const (
	resultAccepted = "accepted"
	resultRepeated = "repeated"
	resultRefused  = "refused"
	resultFailed   = "failed" // Redis was away
)

type submitInput struct {
	Asked
	User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
	Body api.Submit

	schedule string // that a person runs out of its turn; no client can write it
}

type submitOutput struct {
	Status int
	Body   api.Submitted
}

// submit answers POST /v1/tasks.
func (s *Server) submit(ctx context.Context, in *submitInput) (*submitOutput, error) {
	out, result, err := s.accept(ctx, in)
	if in.Body.DryRun {
		return out, err
	}
	s.meters.Submitted(result)
	if err == nil && result == resultAccepted {
		t := out.Body
		s.log.Info("task accepted", append([]any{"task", t.Task, "operator", t.Operator,
			"proven", t.Proven}, ranWords(t.TaskInfo)...)...)
	}
	return out, err
}

func (s *Server) accept(ctx context.Context, in *submitInput) (*submitOutput, string, error) {
	b := in.Body
	catalog := s.catalog.Load()
	name, proven, err := operator(in.who, b.As, in.User)
	wrong := mistakes("body.as", err)
	if b.ID != "" {
		_, err := jobs.ParseTaskID(b.ID)
		wrong = append(wrong, mistakes("body.id", err)...)
		if len(wrong) == 0 && !b.DryRun {
			out, err := s.repeat(ctx, b, name)
			switch {
			case err != nil:
				return nil, resultOf(err), err
			case out != nil:
				return out, resultRepeated, nil
			}
		}
	}
	b, stored, err := s.store(ctx, b, catalog, name)
	if err != nil {
		return nil, resultOf(problem(err)), problem(err)
	}
	v, err := s.look.Scene(ctx, b.On)
	if err != nil {
		return nil, resultFailed, away(fmt.Sprintf("%s; nothing was accepted: submit it again", err))
	}
	p, chain, more := draft.NewChain(b, draft.Setting{Catalog: catalog, Scene: v, Operator: name,
		Proven: proven, Now: s.now(), Stored: stored}, s.chance)
	wrong = append(wrong, more...)
	if wrong = append(wrong, s.mayKeepSecrets(p)...); len(wrong) > 0 {
		return nil, resultRefused, refusal(wrong)
	}
	p.Task.Spec.Schedule = in.schedule
	if wrong, err = s.lookAtFacts(ctx, v, &p); err != nil {
		return nil, resultFailed, away(fmt.Sprintf("%s; nothing was accepted: submit it again", err))
	} else if len(wrong) > 0 {
		return nil, resultRefused, refusal(wrong)
	}
	if wrong, err = s.appoint(ctx, &p, in.Body.Timed, nil); err != nil {
		return nil, resultFailed, away(fmt.Sprintf("%s; nothing was accepted: submit it again", err))
	} else if len(wrong) > 0 {
		return nil, resultRefused, refusal(wrong)
	}
	if chain != nil {
		return s.acceptChain(ctx, b, *chain, p)
	}
	if b.DryRun {
		return s.dryRun(p), "", nil
	}
	if err := s.put(ctx, &p); err != nil {
		return nil, resultOf(err), err
	}
	out := &submitOutput{http.StatusCreated, p.Answer(s.durable)}
	// It is accepted, whatever becomes of this look at it.
	if t, err := s.queue.Read.Tasks.Task(ctx, p.Task.ID); err == nil {
		out.Body.TaskInfo = t
	}
	return out, resultAccepted, nil
}

// dryRun tells what a plan would come to.
func (s *Server) dryRun(p draft.Draft) *submitOutput {
	out := &submitOutput{http.StatusOK, p.Answer(s.durable)}
	out.Body.Hosts = fleet.Fold(p.Names)
	return out
}

func resultOf(err error) string {
	var p huma.StatusError
	if errors.As(err, &p) && p.GetStatus() < http.StatusInternalServerError {
		return resultRefused
	}
	return resultFailed
}

// repeat answers a submit whose id is known already. The host list and the
// runbook of a task are frozen, so what is there counts, and not what the body
// would come to today. It returns nil if the submit is to go on.
func (s *Server) repeat(ctx context.Context, b api.Submit, operator string) (*submitOutput, error) {
	t, err := s.queue.Read.Tasks.Task(ctx, jobs.TaskID(b.ID))
	if errors.Is(err, queue.ErrNotFound) {
		return nil, s.notInHistory(ctx, jobs.TaskID(b.ID))
	}
	if err != nil {
		return nil, problem(err)
	}
	if t.Runbook != b.Runbook || t.On != b.On || t.Operator != operator {
		return nil, conflict(t.Task,
			fmt.Sprintf("it runs %s on %s for %s", t.Runbook, clip(t.On), t.Operator))
	}
	if t.Total == 0 {
		// It has its name in the lists, and no zone knows of it.
		if s.now().Sub(t.Submitted.Time) < partsKept {
			return nil, nil
		}
		return nil, conflict(t.Task, "it was submitted at "+t.Submitted.String()+
			", and what became of it is not kept any more")
	}
	if t.CancelledInSubmit {
		return nil, neverComes(t.Task)
	}
	if t.State != jobs.TaskSubmitting {
		return s.repeated(ctx, b, t)
	}
	if now := s.stock.Now(); now == nil || now.Version != t.Inventory {
		return nil, conflict(t.Task, "an earlier submit got half way with inventory "+t.Inventory+
			", which is no longer in force; nothing of it has run, and it vanishes after a day")
	}
	return nil, nil
}

// repeated answers with a task that is there, and the chain that it begins.
func (s *Server) repeated(ctx context.Context, b api.Submit, t jobs.TaskInfo) (*submitOutput,
	error) {
	out := &submitOutput{http.StatusOK, api.Submitted{TaskInfo: t, Durable: s.durable}}
	switch {
	case draft.Chained(b) != (t.Chain != ""):
		return nil, conflict(t.Task, "one of them is of a chain, the other is not")
	case draft.Chained(b):
		info, err := s.chainInfo(ctx, t.Chain)
		out.Body.Follows = &info
		return out, err
	}
	return out, nil
}

func conflict(id jobs.TaskID, why string) error {
	return huma.Error409Conflict(fmt.Sprintf("task %s is there already and is not this one: %s; "+
		"submit under another id, or without one", id, why))
}

// neverComes refuses a submit with the id of a task that was cancelled while it was submitted.
func neverComes(id jobs.TaskID) error {
	return huma.Error409Conflict(fmt.Sprintf("submit task %s: %v", id, queue.ErrCancelled))
}

// put gives a plan an id, if it has none, and hands it to the queue.
func (s *Server) put(ctx context.Context, p *draft.Draft) error {
	if err := s.mayBegin(ctx); err != nil {
		return err
	}
	own := p.Task.ID == ""
	for try := 1; ; try++ {
		if own {
			p.Task.ID = jobs.NewTaskID(s.now(), s.chance())
		}
		err := s.putOnce(ctx, p, own)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, queue.ErrRetried):
			return err
		case errors.Is(err, queue.ErrConflict) && own && try < idTries:
		case errors.Is(err, queue.ErrConflict):
			return conflict(p.Task.ID, "it has other arguments or other hosts, or the runbook has changed")
		case errors.Is(err, queue.ErrCancelled): // with its id it never comes
			return huma.Error409Conflict(err.Error())
		case errors.Is(err, context.Canceled), errors.Is(err, jobs.ErrNoBlob):
			return problem(err)
		default:
			return away(fmt.Sprintf("%s; nothing of the task runs yet unless it was complete: submit it "+
				"again with id %s", err, p.Task.ID))
		}
	}
}

func (s *Server) putOnce(ctx context.Context, p *draft.Draft, own bool) error {
	if own {
		// A put that meets another task has named itself in its place already.
		_, err := s.queue.Read.Tasks.Task(ctx, p.Task.ID)
		if err == nil {
			return queue.ErrConflict
		}
		if !errors.Is(err, queue.ErrNotFound) {
			return err
		}
	}
	if err := s.queue.Blobs.Store.PinBlobs(ctx, p.Task.ID, p.Blobs); err != nil {
		return err
	}
	if err := s.sealSecrets(p); err != nil {
		return err
	}
	if err := s.tellOverride(ctx, p); err != nil {
		return err
	}
	return s.queue.Submit.Submits.Submit(ctx, p.Task, p.Hosts, nil)
}
