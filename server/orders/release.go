package orders

import (
	"context"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/stock"
	"muster/server/web"
)

type (
	hostOrder struct {
		web.Order
		Host string `path:"host"`
	}
	releasedOutput struct{ Body jobs.Released }
)

// release gives a host back at the word of a person who has looked: no command of the job that
// ended unknown is at work there.
func (s HostRoutes) release(ctx context.Context, in *hostOrder) (*releasedOutput, error) {
	g, wrong := in.Reasoned("released")
	wrong = append(wrong, web.Mistakes("path.host", fleet.CheckName(in.Host))...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	v, err := s.Look.Scene(ctx, "")
	if err != nil {
		return nil, web.Problem(err)
	}
	if v.Stock == nil {
		return nil, web.Refusal(web.Mistakes("path.host", stock.ErrNone))
	}
	h, known := v.Host(in.Host)
	if !known {
		return nil, huma.Error404NotFound(v.Unknown(in.Host))
	}
	did, err := s.Exclusion.ReleaseHost(ctx, h.Zone, h.Name, g.Note())
	if errors.Is(err, queue.ErrHeld) {
		return nil, huma.Error409Conflict(fmt.Sprintf("%s; `muster cancel %s` stops it", err, did.Job))
	}
	if err != nil {
		return nil, web.Problem(err)
	}
	web.LogOrder(s.Log, "host released", g, "host", h.Name, "already", did.Already, "job", did.Job)
	return &releasedOutput{did}, nil
}
