package server

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/server/draft"
	"muster/server/intake"
	"muster/server/web"
)

type (
	foreseeInput struct {
		web.Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Lane string `query:"lane" doc:"key of the lane in which the task would wait for its turn"`
		Mode string `query:"lane_mode" doc:"how it would wait there, as in a submit"`
		Body api.Submit
	}
	foreseeOutput  struct{ Body api.Foresight }
	calibrateInput struct {
		Days int `query:"days" default:"30" minimum:"1" maximum:"4000" doc:"plans of so many days"`
	}
	calibrateOutput struct{ Body api.Calibration }
)

// planRoutes tells when a task would be done, and how well earlier plans held.
type planRoutes struct {
	intake  requests
	history *history.Store // nil: none
	log     hclog.Logger
	now     func() time.Time
	chance  func() uint16
}

func (s planRoutes) Routes(api huma.API) {
	foresee := web.Post("/v1/plan", "Tell when a task would be done")
	foresee.MaxBodyBytes = web.SubmitMax
	huma.Register(api, foresee, s.foresee)
	huma.Register(api, web.Get("/v1/plan/calibration",
		"Compare plans with what happened"), s.calibrate)
}

// foresee answers POST /v1/plan. It changes nothing but the list of plans.
func (s planRoutes) foresee(ctx context.Context, in *foreseeInput) (*foreseeOutput, error) {
	name, proven, err := web.Operator(in.Caller(), in.Body.As, in.User)
	p, err := s.intake.submits.Foresee(ctx, intake.Ask{Body: in.Body, Operator: name, Proven: proven,
		Waits: draft.Waits{Lane: draft.Lane{Key: in.Lane, Mode: in.Mode}},
		Wrong: web.Mistakes("body.as", err)})
	if err != nil {
		return nil, web.Problem(err)
	}
	begun := s.now()
	f, err := s.intake.forecast.Foresee(ctx, p)
	if err != nil {
		return nil, web.Problem(err)
	}
	f.ID, f.Operator, f.Start = string(jobs.NewTaskID(s.now(), s.chance())), name, in.Body.At
	s.log.Debug("planned", "hosts", f.Hosts, "others", len(f.Others), "took", s.now().Sub(begun))
	if s.history != nil {
		if err := s.history.SavePlan(ctx, f.Plan); err != nil {
			f.Notes = append(f.Notes, "the plan is not kept for a comparison: "+err.Error())
		}
	}
	return &foreseeOutput{f}, nil
}

// calibrate compares plans with what happened.
func (s planRoutes) calibrate(ctx context.Context, in *calibrateInput) (*calibrateOutput, error) {
	if s.history == nil {
		return nil, web.Problem(web.ErrNoHistory)
	}
	c, err := s.history.Calibrate(ctx, s.now().AddDate(0, 0, -in.Days))
	if err != nil {
		return nil, web.Problem(err)
	}
	return &calibrateOutput{c}, nil
}
