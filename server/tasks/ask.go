package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/web"
)

// Asking orders a worker to ask a host how a job ended.
type Asking interface {
	OrderAsk(ctx context.Context, id jobs.ID, note string) (jobs.AskOrdered, error)
}

type (
	askInput struct {
		web.Order
		Job string `path:"job"`
	}
	askOutput struct{ Body jobs.AskOrdered }
)

// ask orders a worker of the zone to ask the host of a job that ended unknown how it ended.
// Servers have no way to the hosts.
func (s JobRoutes) ask(ctx context.Context, in *askInput) (*askOutput, error) {
	g, wrong := in.Giver("asked for")
	id, err := jobs.ParseID(in.Job)
	if wrong = append(wrong, web.Mistakes("path.job", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	did, err := s.Asks.OrderAsk(ctx, id, g.Note())
	if err != nil {
		return nil, s.unasked(ctx, id, err)
	}
	web.LogOrder(s.Log, "host to be asked about a job", g, "job", id, "already", did.Already,
		"known", did.Known)
	return &askOutput{did}, nil
}

// unasked returns the reason why no worker asks a host about a job.
func (s JobRoutes) unasked(ctx context.Context, id jobs.ID, err error) error {
	if errors.Is(err, queue.ErrOpen) {
		return huma.Error409Conflict(fmt.Sprintf("%s: only what ended unknown is asked about", err))
	}
	if !errors.Is(err, queue.ErrNotFound) && !errors.Is(err, queue.ErrForgotten) {
		return web.Problem(err)
	}
	j, failed := s.Find.OrPast(ctx, id, queue.ErrNotFound)
	switch {
	case failed != nil:
		return s.Find.Gone(ctx, id.Task(), queue.ErrNotFound)
	case j.Outcome != jobs.Unknown:
		return huma.Error409Conflict(fmt.Sprintf("job %s ended %s: only what ended unknown is asked "+
			"about", id, j.Outcome))
	}
	return huma.Error409Conflict(fmt.Sprintf("job %s ended at %s, and Redis has forgotten it: a host "+
		"can be asked about a job as long as Redis keeps it, which is a day behind the end of its "+
		"task; look at %s by hand", id, j.Finished, j.Host))
}
