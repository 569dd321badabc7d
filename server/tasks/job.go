package tasks

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

// JobRoutes answers questions about one job.
type JobRoutes struct {
	Reads Reads
	Find  Finder
	Until web.Waiter
	Why   *waits.Reader
	Stock *stock.Store
	Asks  Asking
	Log   hclog.Logger
	// Traces names the traces of a job; nil: none are sent.
	Traces func(t jobs.TaskInfo, j jobs.JobInfo) *api.Traces

	// Seen returns those tasks of a list that the caller may see.
	Seen func(ctx context.Context, list []jobs.TaskInfo) ([]jobs.TaskInfo, error)
}

// Routes registers the routes of the resource.
func (s JobRoutes) Routes(api huma.API) {
	const job = "/v1/jobs/{job}"
	huma.Register(api, web.Get(job, "Show a job"), s.job)
	huma.Register(api, web.Post(job+"/ask",
		"Ask a host about the end of a job that ended unknown"), s.ask)
	huma.Register(api, web.Raw(web.Get(job+"/output",
		"What the host said, byte for byte"), "application/octet-stream"), s.output)
}

func (s JobRoutes) job(ctx context.Context, in *jobInput) (*jobOutput, error) {
	id, err := jobs.ParseID(in.Job)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("path.job", err))
	}
	j, err := s.Reads.Jobs.Job(ctx, id)
	if err != nil {
		if j, err = s.Find.OrPast(ctx, id, err); err != nil {
			return nil, s.Find.Gone(ctx, id.Task(), err)
		}
	}
	j = marked(j, s.Find.marks(ctx, id.Task())[j.Host])
	j.HostLeft = s.Stock.HasLeft(j)
	if j, err = s.Why.Explained(ctx, j); err != nil {
		return nil, web.Problem(err)
	}
	out := &jobOutput{api.JobDetail{JobInfo: j}}
	t, past, err := s.Find.Task(ctx, id.Task())
	switch {
	case err == nil:
		shown, seeing := s.Seen(ctx, []jobs.TaskInfo{t})
		if seeing != nil && !errors.Is(seeing, queue.ErrNotFound) {
			return nil, web.Problem(seeing)
		}
		out.Body.Of = ofTask(t, len(shown) > 0)
		if s.Traces != nil {
			out.Body.Of.Traces = s.Traces(t, j)
		}
		if !past {
			out.Body.Awaits, err = s.Why.AwaitedBy(ctx, t, j)
		}
		if err != nil {
			return nil, web.Problem(err)
		}
	case !errors.Is(err, queue.ErrNotFound):
		return nil, web.Problem(err)
	}
	return out, nil
}
