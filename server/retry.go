package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/draft"
)

type (
	retryInput struct {
		Asked
		Task string `path:"task"`
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body *api.RetryRequest
	}
	retryOutput struct {
		Status int
		Body   api.Retried
	}
)

// retry makes a new task of those hosts of an old one whose jobs ended in some
// ways. What is run is the old task's own frozen runbook, with its arguments; the
// hosts are as the inventory has them today. Hosts that another task does again
// already are left out.
func (s *Server) retry(ctx context.Context, in *retryInput) (*retryOutput, error) {
	var b api.RetryRequest
	if in.Body != nil {
		b = *in.Body
	}
	if len(b.Outcomes) == 0 {
		b.Outcomes = []jobs.Outcome{jobs.Failed}
	}
	of, g, err := checkRetry(in, b)
	if err != nil {
		return nil, err
	}
	if b.ID != "" && !b.DryRun {
		if out, err := s.repeatRetry(ctx, of, jobs.TaskID(b.ID)); err != nil || out != nil {
			return out, err
		}
	}
	for {
		// Another may claim the same hosts while this one is made.
		out, err := s.retryOnce(ctx, retrying{of, b, g})
		if !errors.Is(err, queue.ErrRetried) {
			return out, err
		}
		if b.ID == "" {
			continue
		}
		if _, err := s.queue.Read.Tasks.Task(ctx, jobs.TaskID(b.ID)); err == nil {
			b.ID = "" // it was put with hosts that others have now; without them it is another task
		}
	}
}

// retrying is a retry that was found to be asked for properly.
type retrying struct {
	of   jobs.TaskID
	body api.RetryRequest
	giver
}

// retryOnce makes the new task, or tells that there is nothing to make. It wraps
// queue.ErrRetried if others have come in between: then nothing was made.
func (s *Server) retryOnce(ctx context.Context, r retrying) (*retryOutput, error) {
	b := r.body
	chosen, err := s.choose(ctx, r.of, b.Outcomes)
	if err == nil {
		err = s.leaveEarlier(ctx, r, &chosen)
	}
	if err != nil {
		return nil, s.gone(ctx, r.of, err)
	}
	if len(chosen.Hosts) == 0 && len(chosen.Earlier) > 0 {
		return s.alreadyRetried(ctx, r, chosen, api.Retried{Open: chosen.Open})
	}
	p, out, err := s.planRetry(ctx, r, chosen)
	switch {
	case err != nil:
		return nil, err
	case out.Already:
		return s.alreadyRetried(ctx, r, chosen, out)
	}
	if b.DryRun {
		out.Submitted = p.Answer(s.durable)
		out.Hosts = fleet.Fold(p.Names)
		return &retryOutput{http.StatusOK, out}, nil
	}
	if err := s.put(ctx, &p); err != nil {
		return nil, err
	}
	out.Submitted = p.Answer(s.durable)
	// It is accepted, whatever becomes of this look at it.
	if t, err := s.queue.Read.Tasks.Task(ctx, p.Task.ID); err == nil {
		out.TaskInfo = t
	}
	s.logOrder("task retried", r.giver, append([]any{"task", r.of, "as", p.Task.ID},
		ranWords(out.TaskInfo)...)...)
	return &retryOutput{http.StatusCreated, out}, nil
}

// planRetry finds out what the new task comes to; its error is ready to be answered.
func (s *Server) planRetry(ctx context.Context, r retrying, c draft.Choice) (
	draft.Draft, api.Retried, error) {
	v, err := s.look.Scene(ctx, "")
	if err != nil {
		return draft.Draft{}, api.Retried{}, problem(err)
	}
	p, out, wrong := draft.Again(r.body, c,
		draft.Setting{Scene: v, Operator: r.name, Proven: r.proven, Now: s.now()})
	if len(wrong) > 0 {
		return p, out, refusal(wrong)
	}
	if out.Already {
		return p, out, nil
	}
	if p.Secrets, err = s.openSecrets(r.of, p.Frozen); err != nil {
		return p, out, refusal(mistakes("path.task", err))
	}
	if wrong, err = s.lookAtFacts(ctx, v, &p); err == nil && len(wrong) == 0 {
		wrong, err = s.appoint(ctx, &p, api.Timed{}, nil)
	}
	if err == nil && len(wrong) > 0 {
		err = refusal(wrong)
	}
	return p, out, problem(err)
}

func checkRetry(in *retryInput, b api.RetryRequest) (jobs.TaskID, giver, error) {
	of, err := jobs.ParseTaskID(in.Task)
	wrong := mistakes("path.task", err)
	g, more := giverOf(b.OrderRequest, "retried", in.who, in.User)
	wrong = append(wrong, more...)
	for i, o := range b.Outcomes {
		if !o.Valid() {
			wrong = append(wrong, mistake(fmt.Sprintf("body.outcomes[%d]", i), "%q: want one of %v",
				clip(string(o)), jobs.Outcomes()))
		}
	}
	_, err = draft.ParseExpect(b.Expect)
	wrong = append(wrong, mistakes("body.expect", err)...)
	if b.ID != "" {
		_, err := jobs.ParseTaskID(b.ID)
		wrong = append(wrong, mistakes("body.id", err)...)
	}
	if len(wrong) > 0 {
		return of, g, refusal(wrong)
	}
	return of, g, nil
}

// repeatRetry answers a retry whose id is known already; nil if it is to go on.
func (s *Server) repeatRetry(ctx context.Context, of, id jobs.TaskID) (*retryOutput, error) {
	t, err := s.queue.Read.Tasks.Task(ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, problem(err)
	case t.RetryOf != of:
		return nil, conflict(id, fmt.Sprintf("it is no retry of %s", of))
	case t.CancelledInSubmit:
		return nil, neverComes(id)
	case t.State == jobs.TaskSubmitting:
		return nil, nil
	}
	return &retryOutput{http.StatusOK,
		api.Retried{Submitted: api.Submitted{TaskInfo: t, Durable: s.durable}}}, nil
}

func (s *Server) choose(ctx context.Context, of jobs.TaskID, as []jobs.Outcome) (
	draft.Choice, error) {
	c := draft.Choice{Of: of}
	var err error
	if c.Spec, err = s.queue.Read.Tasks.Spec(ctx, of); err != nil {
		return c, err
	}
	err = s.queue.Read.Jobs.EachJob(ctx, of, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			switch {
			case j.State != jobs.Ended:
				c.Open++
			case slices.Contains(as, j.Outcome):
				c.Hosts = append(c.Hosts, j.Host)
			}
		}
		return nil
	})
	return c, err
}
