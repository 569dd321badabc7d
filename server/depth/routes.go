package depth

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/server/web"
)

type (
	pastInput struct {
		Zone string `query:"zone" doc:"only this zone"`
	}
	pastOutput struct{ Body api.DepthList }
)

// Routes shows how many jobs waited.
type Routes struct {
	Book *Book
	Sees func(ctx context.Context, zone string) bool // a caller sees the queue of a zone
}

// Routes registers the route of the resource.
func (s Routes) Routes(a huma.API) {
	huma.Register(a, web.Get("/v1/queue/depth", "Show how many jobs waited in each zone, over time"),
		func(ctx context.Context, in *pastInput) (*pastOutput, error) {
			return &pastOutput{s.Book.Past(func(zone string) bool {
				return (in.Zone == "" || zone == in.Zone) && s.Sees(ctx, zone)
			})}, nil
		})
}
