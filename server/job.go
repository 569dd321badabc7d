package server

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/stock"
	"muster/server/waits"
	"muster/server/web"
)

// jobRoutes answers questions about one job.
type jobRoutes struct {
	find  finder
	until web.Waiter
	why   *waits.Reader
	stock *stock.Store
	asks  Asking
	log   hclog.Logger
}

func (s jobRoutes) Routes(api huma.API) {
	const job = "/v1/jobs/{job}"
	huma.Register(api, web.Get(job, "Show a job"), s.job)
	huma.Register(api, web.Post(job+"/ask", "Ask the host how a job ended that ended unknown"), s.ask)
	huma.Register(api, web.Raw(web.Get(job+"/output",
		"What the host said, byte for byte"), "application/octet-stream"), s.output)
}

func (s jobRoutes) job(ctx context.Context, in *jobInput) (*jobOutput, error) {
	id, err := jobs.ParseID(in.Job)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("path.job", err))
	}
	j, err := s.find.read.Jobs.Job(ctx, id)
	if err != nil {
		if j, err = s.find.orPast(ctx, id, err); err != nil {
			return nil, s.find.gone(ctx, id.Task(), err)
		}
	}
	j.HostLeft = s.stock.HasLeft(j)
	if j, err = s.why.Explained(ctx, j); err != nil {
		return nil, web.Problem(err)
	}
	out := &jobOutput{api.JobDetail{JobInfo: j}}
	t, past, err := s.find.task(ctx, id.Task())
	switch {
	case err == nil:
		out.Body.Of = ofTask(t)
		if !past {
			out.Body.Awaits, err = s.why.AwaitedBy(ctx, t, j)
		}
		if err != nil {
			return nil, web.Problem(err)
		}
	case !errors.Is(err, queue.ErrNotFound):
		return nil, web.Problem(err)
	}
	return out, nil
}
