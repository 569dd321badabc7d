package server

import (
	"context"

	"muster/api"
	"muster/jobs"
	"muster/server/intake"
)

type (
	foreseeInput struct {
		Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body api.Submit
	}
	foreseeOutput  struct{ Body api.Foresight }
	calibrateInput struct {
		Days int `query:"days" default:"30" minimum:"1" maximum:"4000" doc:"plans of so many days"`
	}
	calibrateOutput struct{ Body api.Calibration }
)

// foresee answers POST /v1/plan. It changes nothing but the list of plans.
func (s *Server) foresee(ctx context.Context, in *foreseeInput) (*foreseeOutput, error) {
	name, proven, err := operator(in.who, in.Body.As, in.User)
	p, err := s.intake.submits.Foresee(ctx, intake.Ask{Body: in.Body, Operator: name, Proven: proven,
		Wrong: mistakes("body.as", err)})
	if err != nil {
		return nil, problem(err)
	}
	begun := s.now()
	f, err := s.intake.forecast.Foresee(ctx, p)
	if err != nil {
		return nil, problem(err)
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
func (s *Server) calibrate(ctx context.Context, in *calibrateInput) (*calibrateOutput, error) {
	if s.history == nil {
		return nil, problem(errNoHistory)
	}
	c, err := s.history.Calibrate(ctx, s.now().AddDate(0, 0, -in.Days))
	if err != nil {
		return nil, problem(err)
	}
	return &calibrateOutput{c}, nil
}
