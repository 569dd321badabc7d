package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/server/web"
)

// whoRoutes says who a caller is.
type whoRoutes struct{}

type (
	whoInput  struct{ web.Asked }
	whoOutput struct{ Body api.Whoami }
)

// Routes registers the route.
func (s whoRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/whoami", "Show who you are, and what proves it"), s.whoami)
}

func (whoRoutes) whoami(ctx context.Context, in *whoInput) (*whoOutput, error) {
	who := in.Caller()
	w := api.Whoami{Principal: who.Name, Proof: who.Proof(), Token: who.Token,
		Session: who.Session,
		Expires: jobs.Time{Time: who.Until}, Groups: append([]string{}, who.Groups...),
		Verbs: []string{}, Admin: who.Admin}
	for _, verb := range web.ViewOf(ctx).Verbs() {
		w.Verbs = append(w.Verbs, string(verb))
	}
	return &whoOutput{w}, nil
}
