package books

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/scripts"
	"muster/server/web"
)

type (
	runbookInput struct {
		Runbook string `path:"runbook"`
	}
	runbookOutput  struct{ Body api.RunbookDetail }
	runbooksOutput struct{ Body api.RunbookList }
)

// RunbookRoutes shows the runbooks.
type RunbookRoutes struct{ Catalog func() *scripts.Catalog }

// Routes registers the routes of the resource.
func (s RunbookRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/runbooks", "List runbooks"), s.runbooks)
	huma.Register(api, web.Get("/v1/runbooks/{runbook}", "Show a runbook"), s.runbook)
}

func (s RunbookRoutes) runbooks(ctx context.Context, _ *web.Nothing) (*runbooksOutput, error) {
	view := web.ViewOf(ctx)
	out := &runbooksOutput{api.RunbookList{Runbooks: []api.Runbook{}}}
	catalog := s.Catalog()
	if err := catalog.Doubt; err != nil {
		return nil, web.Problem(err)
	}
	for _, r := range catalog.All() {
		if !view.Runbook(r.Name) {
			continue
		}
		out.Body.Runbooks = append(out.Body.Runbooks, describe(r))
	}
	return out, nil
}

// runbook answers GET /v1/runbooks/{runbook}.
func (s RunbookRoutes) runbook(_ context.Context, in *runbookInput) (*runbookOutput, error) {
	catalog := s.Catalog()
	r, err := catalog.Lookup(in.Runbook)
	if err != nil && catalog.Doubt != nil {
		return nil, web.Problem(catalog.Doubt)
	}
	if err != nil {
		return nil, huma.Error404NotFound(err.Error())
	}
	d := api.RunbookDetail{Runbook: describe(r), Version: r.Version, Hash: r.Hash,
		Timeout: r.Timeout.Seconds(), Expect: r.Expect.Seconds(), Reserve: r.Reserve.Seconds(),
		Window: r.Window, Source: catalog.Source(r)}
	for i, step := range r.Steps {
		d.Steps = append(d.Steps, describeStep(r, i, step))
	}
	return &runbookOutput{d}, nil
}

func describe(r *scripts.Runbook) api.Runbook {
	one := api.Runbook{Name: r.Name, Description: r.Description, Disruptive: r.Disruptive,
		Repeatable: r.Repeatable, Needs: append([]string{}, r.Needs...),
		Arguments: make([]api.RunbookArg, 0, len(r.Arguments))}
	for _, a := range r.Arguments {
		one.Arguments = append(one.Arguments, api.RunbookArg{Name: a.Name, Type: string(a.Type),
			Description: a.Description, Required: a.Required, Default: a.Default,
			ArgRules: api.ArgRules{Pattern: a.Pattern, MaxLength: a.MaxLength, Min: a.Min,
				Max: a.Max, Values: a.Values}})
	}
	return one
}

func describeStep(r *scripts.Runbook, i int, step scripts.Step) api.RunbookStep {
	one := api.RunbookStep{Name: step.Name, Kind: string(step.Kind), Rescue: i >= r.Main,
		Timeout:    step.Timeout.Round(time.Millisecond).Seconds(),
		Repeatable: step.Repeatable, Disruptive: step.Disruptive, Dry: string(step.Dry)}
	for _, c := range step.When {
		one.When = append(one.When, c.String())
	}
	for _, save := range step.Save {
		one.Saves = append(one.Saves, save.Name)
	}
	if b := step.OnFail; b != nil {
		for _, rescue := range r.Steps[b.First : b.First+b.Count] {
			one.OnFail = append(one.OnFail, rescue.Name)
		}
	}
	return one
}
