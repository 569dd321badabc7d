package server

import (
	"context"
	"fmt"
	"net/http"

	"muster/api"
	"muster/jobs"
	"muster/server/draft"
	"muster/server/intake"
	"muster/server/web"
)

type (
	retryInput struct {
		web.Asked
		Task string `path:"task"`
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		// Trace is that of a submit.
		Trace string `header:"Traceparent" doc:"W3C trace context of the caller"`
		Body  *api.RetryRequest
	}
	retryOutput struct {
		Status int
		Body   api.Retried
	}
)

// retry answers POST /v1/tasks/{task}/retry.
func (s submitRoutes) retry(ctx context.Context, in *retryInput) (*retryOutput, error) {
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
	a, err := s.intake.retries.Retry(ctx, intake.RetryAsk{Of: of, Body: b, Operator: g.Name,
		Proven: g.Proven, Trace: in.Trace})
	if err != nil {
		return nil, s.find.Gone(ctx, of, err)
	}
	out := &retryOutput{http.StatusOK, a.Retried}
	switch {
	case a.Created:
		out.Status = http.StatusCreated
		web.LogOrder(s.log, "task retried", g, append([]any{"task", of, "as", a.Retried.Task},
			ranWords(a.Retried.TaskInfo)...)...)
	case a.Retried.Already && !b.DryRun:
		s.showEarlier(ctx, &out.Body)
		web.LogOrder(s.log, "task was retried before", g, "task", of, "as", a.Retried.Earlier[0].Task)
	}
	return out, nil
}

// showEarlier answers a retry of which nothing is left to do with the earlier task, if that is
// one.
func (s submitRoutes) showEarlier(ctx context.Context, out *api.Retried) {
	if len(out.Earlier) > 1 {
		return
	}
	out.Task, out.State = out.Earlier[0].Task, jobs.TaskSubmitting
	if t, _, err := s.find.Task(ctx, out.Task); err == nil {
		out.TaskInfo = t
	}
}

func checkRetry(in *retryInput, b api.RetryRequest) (jobs.TaskID, web.Giver, error) {
	of, err := jobs.ParseTaskID(in.Task)
	wrong := web.Mistakes("path.task", err)
	g, more := web.GiverOf(b.OrderRequest, "retried", in.Caller(), in.User)
	wrong = append(wrong, more...)
	for i, o := range b.Outcomes {
		if !o.Valid() {
			wrong = append(wrong, web.Mistake(fmt.Sprintf("body.outcomes[%d]", i), "%q: want one of %v",
				web.Clip(string(o)), jobs.Outcomes()))
		}
	}
	_, err = draft.ParseExpect(b.Expect)
	wrong = append(wrong, web.Mistakes("body.expect", err)...)
	if b.ID != "" {
		_, err := jobs.ParseTaskID(b.ID)
		wrong = append(wrong, web.Mistakes("body.id", err)...)
	}
	if len(wrong) > 0 {
		return of, g, web.Refusal(wrong)
	}
	return of, g, nil
}
