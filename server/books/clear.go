package books

import (
	"context"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server/stock"
	"muster/server/web"
)

type (
	clearInput struct {
		web.Order
		Host string `path:"host"`
	}
	clearOutput struct{ Body api.ClearedHost }
)

// ClearRoutes drops what is remembered of a host.
type ClearRoutes struct {
	Kept  Facts
	Look  *stock.Looker
	Waits Work
	Log   hclog.Logger
	Now   func() time.Time
}

// Routes registers the routes of the resource.
func (s ClearRoutes) Routes(a huma.API) {
	huma.Register(a, web.Post("/v1/hosts/{host}/clear", "Drop what is remembered of a host"), s.clear)
}

// clear answers POST /v1/hosts/{host}/clear. It stores facts without content, so that none that are
// older come back from a task.
func (s ClearRoutes) clear(ctx context.Context, in *clearInput) (*clearOutput, error) {
	g, wrong := in.Reasoned("cleared")
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
	work, err := s.Waits.HostWork(ctx, h.Zone, h.Name, 1)
	if err != nil {
		return nil, web.Problem(err)
	}
	if work.Lock != "" {
		return nil, huma.Error409Conflict(fmt.Sprintf("job %s has host %s, and needs what is remembered "+
			"of it: wait for its end, `muster wait %s`, or cancel it", work.Lock, h.Name, work.Lock.Task()))
	}
	out := &clearOutput{api.ClearedHost{Host: h.Name, Zone: h.Zone, Note: g.Note()}}
	all, _, err := s.Kept.Facts(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	had, there := all[h.Name]
	if there {
		out.Body.Facts, out.Body.At = len(had.Facts), had.At
		_, err = s.Kept.SaveFacts(ctx, []jobs.HostFacts{{Host: h.Name, At: jobs.Time{Time: s.Now()},
			Inventory: v.Version}})
		if err != nil {
			return nil, web.Problem(err)
		}
	}
	web.LogOrder(s.Log, "host cleared", g, "host", h.Name, "facts", out.Body.Facts)
	return out, nil
}
