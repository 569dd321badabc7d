package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/api"
	"muster/jobs"
	"muster/server/chains"
	"muster/server/draft"
	"muster/server/duties"
	"muster/server/intake"
	"muster/server/metrics"
	"muster/server/tasks"
	"muster/server/web"
)

// The results of a submit, as they are counted.
const (
	resultAccepted = "accepted"
	resultRepeated = "repeated"
	resultRefused  = "refused"
	resultFailed   = "failed" // Redis was away
)

type submitInput struct {
	web.Asked
	User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
	Hold bool   `query:"hold" doc:"the task waits for signatures of people"`
	// Glass is a reason.
	Glass string `query:"break_glass" maxLength:"500" doc:"why one person runs alone what more must sign; with hold"`
	Lane  string `query:"lane" doc:"key of the lane in which the task waits for its turn, such as rules/acme"`
	// Trace is ignored if it is wrong, as https://www.w3.org/TR/trace-context wants it.
	Trace string `header:"Traceparent" doc:"W3C trace context of the caller, to which the trace of the task belongs"`
	Mode  string `query:"lane_mode" doc:"how it waits there: serial (if empty), latest, gate, pipeline or parallel=N"`
	Body  api.Submit

	schedule string // that a person runs out of its turn; no client can write it
}

type submitOutput struct {
	Status int
	Order  string `header:"Muster-Order" doc:"hash of the signed order of a new task"`
	Body   api.Submitted
}

// submitRoutes takes tasks, and does jobs of tasks again.
type submitRoutes struct {
	intake requests
	find   tasks.Finder
	chains chains.Resource
	meters *metrics.Meters
	log    hclog.Logger
}

func (s submitRoutes) Routes(api huma.API) {
	submit := web.Post("/v1/tasks", "Submit a task")
	submit.MaxBodyBytes, submit.DefaultStatus = web.SubmitMax, http.StatusCreated
	huma.Register(api, submit, s.submit)
	retry := web.Post("/v1/tasks/{task}/retry", "Do jobs of a task again, as a new task")
	retry.DefaultStatus = http.StatusCreated
	huma.Register(api, retry, s.retry)
}

// submit answers POST /v1/tasks.
func (s submitRoutes) submit(ctx context.Context, in *submitInput) (*submitOutput, error) {
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

// submitFor is submit for a schedule that a person runs out of its turn.
func (s submitRoutes) submitFor(ctx context.Context, who web.Asked, user string, b api.Submit,
	schedule string) (int, api.Submitted, error) {
	out, err := s.submit(ctx, &submitInput{Asked: who, User: user, Body: b, schedule: schedule})
	if err != nil {
		return 0, api.Submitted{}, err
	}
	return out.Status, out.Body, nil
}

// refusals returns the reasons why the task of each of some ticks would be refused at this moment.
func (s submitRoutes) refusals(ctx context.Context, list []api.Submit, by web.Giver) ([][]error,
	error) {
	var asks []intake.Ask
	for _, b := range list {
		asks = append(asks, intake.Ask{Body: b, Operator: by.Name, Proven: by.Proven})
	}
	return s.intake.submits.Refusals(ctx, asks)
}

// accept hands a submit over, and returns its answer with the result to count.
func (s submitRoutes) accept(ctx context.Context, in *submitInput) (*submitOutput, string, error) {
	name, proven, err := web.Operator(in.Caller(), in.Body.As, in.User)
	a, err := s.intake.submits.Submit(ctx, intake.Ask{Body: in.Body, Operator: name, Proven: proven,
		Wrong: web.Mistakes("body.as", err), Schedule: in.schedule,
		Waits: draft.Waits{Hold: in.Hold, Lane: draft.Lane{Key: in.Lane, Mode: in.Mode}},
		Glass: strings.TrimSpace(in.Glass), Trace: in.Trace})
	out := &submitOutput{http.StatusCreated, a.Order, a.Submitted}
	result := resultAccepted
	if a.Known {
		result = resultRepeated
	}
	if a.Known || in.Body.DryRun {
		out.Status = http.StatusOK
	}
	switch {
	case err != nil:
	case a.Chain != nil:
		out.Body.Follows = duties.InfoOf(*a.Chain, jobs.ChainSeen{})
	case a.Follows != "":
		var info jobs.ChainInfo
		info, err = s.chains.Info(ctx, a.Follows, access.See)
		out.Body.Follows = &info
	}
	if err = web.Problem(err); err != nil {
		return nil, resultOf(err), err
	}
	return out, result, nil
}

func resultOf(err error) string {
	var p huma.StatusError
	if errors.As(err, &p) && p.GetStatus() < http.StatusInternalServerError {
		return resultRefused
	}
	return resultFailed
}
