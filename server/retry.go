package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"muster/api"
	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/scripts"
	"muster/server/stock"
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
	if len(chosen.hosts) == 0 && len(chosen.earlier) > 0 {
		return s.alreadyRetried(ctx, r, chosen, api.Retried{Open: chosen.open})
	}
	p, out, err := s.planRetry(ctx, r, chosen)
	switch {
	case err != nil:
		return nil, err
	case out.Already:
		return s.alreadyRetried(ctx, r, chosen, out)
	}
	if b.DryRun {
		out.Submitted = p.answer(s.durable)
		out.Hosts = fleet.Fold(p.names)
		return &retryOutput{http.StatusOK, out}, nil
	}
	if err := s.put(ctx, &p); err != nil {
		return nil, err
	}
	out.Submitted = p.answer(s.durable)
	// It is accepted, whatever becomes of this look at it.
	if t, err := s.queue.Read.Tasks.Task(ctx, p.task.ID); err == nil {
		out.TaskInfo = t
	}
	s.logOrder("task retried", r.giver, append([]any{"task", r.of, "as", p.task.ID},
		ranWords(out.TaskInfo)...)...)
	return &retryOutput{http.StatusCreated, out}, nil
}

// planRetry finds out what the new task comes to; its error is ready to be answered.
func (s *Server) planRetry(ctx context.Context, r retrying, c choice) (plan, api.Retried, error) {
	v, err := s.look.Scene(ctx, "")
	if err != nil {
		return plan{}, api.Retried{}, problem(err)
	}
	p, out, wrong := makeRetry(r.body, c,
		setting{Scene: v, operator: r.name, proven: r.proven, now: s.now()})
	if len(wrong) > 0 {
		return p, out, refusal(wrong)
	}
	if out.Already {
		return p, out, nil
	}
	if p.secrets, err = s.openSecrets(r.of, p.frozen); err != nil {
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
	_, err = parseExpect(b.Expect)
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

// choice is what of a task is to be done again.
type choice struct {
	of    jobs.TaskID
	spec  jobs.Spec
	hosts []string // whose jobs ended in one of the ways asked for
	open  int      // jobs that have not ended

	earlier []jobs.Again // who does again what is left out of hosts for that
}

func (s *Server) choose(ctx context.Context, of jobs.TaskID, as []jobs.Outcome) (choice, error) {
	c := choice{of: of}
	var err error
	if c.spec, err = s.queue.Read.Tasks.Spec(ctx, of); err != nil {
		return c, err
	}
	err = s.queue.Read.Jobs.EachJob(ctx, of, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			switch {
			case j.State != jobs.Ended:
				c.open++
			case slices.Contains(as, j.Outcome):
				c.hosts = append(c.hosts, j.Host)
			}
		}
		return nil
	})
	return c, err
}

// makeRetry finds out what a retry comes to, or every mistake in it. It changes
// nothing.
func makeRetry(b api.RetryRequest, c choice, in setting) (plan, api.Retried, []error) {
	answer := api.Retried{Open: c.open, Earlier: earlier(c.earlier)}
	if in.Stock == nil {
		return plan{}, answer, mistakes("path.task", stock.ErrNone)
	}
	var frozen scripts.Frozen
	if err := json.Unmarshal(c.spec.Action, &frozen); err != nil {
		return plan{}, answer, mistakes("path.task", fmt.Errorf("task %s: %w", c.of, err))
	}
	found, gone := in.Stock.Find(c.hosts)
	hosts, drained := in.Undrained(found)
	answer.LeftOut.Drained = fleet.Fold(drained)
	if b.SkipMissing {
		answer.Skipped = fleet.Fold(gone)
	}
	// What the same order left out when it was given before is not wrong now.
	if len(hosts) == 0 && len(c.earlier) > 0 && (len(gone) == 0 || b.SkipMissing) {
		answer.Already = true
		return plan{}, answer, nil
	}
	wrong := cannotRetry(b, c, gone, drained)
	wrong = append(wrong, mistakes("path.task", checkHosts(frozen, hosts))...)
	wrong = append(wrong, checkNeeds(c.spec.Needs, hosts, in.Stock)...)
	if len(wrong) > 0 {
		return plan{}, answer, wrong
	}
	spec := c.spec
	spec.RetryOf, spec.Reason, spec.Ran = c.of, strings.TrimSpace(b.Reason), ranOf(frozen)
	// A key says which content is newer. The retry has the content of the old
	// task, and must not end what newer ones have queued.
	spec.Supersedes = ""
	spec.Schedule, spec.Tick = "", jobs.Time{} // it is no tick
	spec.Override = ""                         // the reason was that of the old task
	spec.Rollout = rollAgain(spec.Rollout, hosts)
	if said, _ := parseExpect(b.Expect); said > 0 { // it was found right
		spec.Expect, spec.Unsaid = said, false
	}
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	spec.On = fleet.Fold(names)
	p := in.plan(jobs.Task{ID: jobs.TaskID(b.ID), Spec: spec, Again: b.Again}, hosts)
	p.blobs, p.frozen = frozen.Blobs(), frozen
	p.LeftOut.Drained = answer.LeftOut.Drained
	return p, answer, nil
}

// cannotRetry is what is wrong with the choice of hosts, some of which are gone from the
// inventory, and some drained.
func cannotRetry(b api.RetryRequest, c choice, gone, drained []string) []error {
	one := func(location, format string, args ...any) []error {
		return []error{mistake(location, format, args...)}
	}
	switch n := len(c.hosts); {
	case n == 0:
		return one("body.outcomes", "%s", nothingToRetry(c.of, b.Outcomes, c.open))
	case len(gone) > 0 && !b.SkipMissing:
		return one("body.skip_missing", "%d of %d hosts are in the inventory no more: %s; leave them "+
			"out with skip_missing", len(gone), n, brief(fleet.Fold(gone)))
	case len(gone)+len(drained) == n && len(drained) > 0:
		return one("path.task", "all of these hosts are drained: %s; undrain them",
			brief(fleet.Fold(drained)))
	case len(gone) == n:
		return one("body.skip_missing", "none of the %d hosts is in the inventory any more: %s", n,
			brief(fleet.Fold(gone)))
	}
	return nil
}

func nothingToRetry(of jobs.TaskID, as []jobs.Outcome, open int) string {
	text := fmt.Sprintf("no job of task %s is known to have ended %s", of, wording.Join(as, " or "))
	if open > 0 {
		return text + fmt.Sprintf("; %d have not ended, and only those that have can be done again",
			open)
	}
	return text + "; how a job ended is kept for a day"
}
