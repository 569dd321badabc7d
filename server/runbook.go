package server

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/scripts"
)

// ArgRules are what a value of an argument must be like. Durations are in seconds.
type ArgRules struct {
	Pattern   string   `json:"pattern,omitempty"`
	MaxLength int      `json:"max_length,omitempty"`
	Min       *int64   `json:"min,omitempty"`
	Max       *int64   `json:"max,omitempty"`
	Values    []string `json:"values,omitempty"`
}

// RunbookStep describes a step of a runbook.
type RunbookStep struct {
	Name       string   `json:"name"`
	Kind       string   `json:"kind"`
	Timeout    float64  `json:"timeout_seconds"`
	Repeatable bool     `json:"repeatable"`
	Disruptive bool     `json:"disruptive"`
	Dry        string   `json:"dry,omitempty"`     // preflight or diff
	When       []string `json:"when,omitempty"`    // conditions
	Saves      []string `json:"saves,omitempty"`   // names of values
	OnFail     []string `json:"on_fail,omitempty"` // names of steps
	Rescue     bool     `json:"rescue,omitempty"`  // it is one of an on_fail
}

// RunbookDetail is the answer of GET /v1/runbooks/{runbook}.
type RunbookDetail struct {
	Runbook
	Version string        `json:"version,omitempty"`
	Hash    string        `json:"sha256"` // of the source
	Timeout float64       `json:"timeout_seconds"`
	Expect  float64       `json:"expect_seconds,omitempty"`
	Reserve float64       `json:"reserve_seconds,omitempty"`
	Window  bool          `json:"window"` // begins only in an approved window
	Steps   []RunbookStep `json:"steps"`
	Source  string        `json:"source"` // as it was written
}

type (
	runbookInput struct {
		Runbook string `path:"runbook"`
	}
	runbookOutput struct{ Body RunbookDetail }
)

// runbook answers GET /v1/runbooks/{runbook}.
func (s *Server) runbook(_ context.Context, in *runbookInput) (*runbookOutput, error) {
	catalog := s.catalog.Load()
	r, err := catalog.Lookup(in.Runbook)
	if err != nil {
		return nil, huma.Error404NotFound(err.Error())
	}
	d := RunbookDetail{Runbook: describe(r), Version: r.Version, Hash: r.Hash,
		Timeout: r.Timeout.Seconds(), Expect: r.Expect.Seconds(), Reserve: r.Reserve.Seconds(),
		Window: r.Window, Source: catalog.Source(r)}
	for i, step := range r.Steps {
		d.Steps = append(d.Steps, describeStep(r, i, step))
	}
	return &runbookOutput{d}, nil
}

func describe(r *scripts.Runbook) Runbook {
	one := Runbook{Name: r.Name, Description: r.Description, Disruptive: r.Disruptive,
		Repeatable: r.Repeatable, Needs: append([]string{}, r.Needs...),
		Arguments: make([]RunbookArg, 0, len(r.Arguments))}
	for _, a := range r.Arguments {
		one.Arguments = append(one.Arguments, RunbookArg{Name: a.Name, Type: string(a.Type),
			Description: a.Description, Required: a.Required, Default: a.Default,
			ArgRules: ArgRules{a.Pattern, a.MaxLength, a.Min, a.Max, a.Values}})
	}
	return one
}

func describeStep(r *scripts.Runbook, i int, step scripts.Step) RunbookStep {
	one := RunbookStep{Name: step.Name, Kind: string(step.Kind), Rescue: i >= r.Main,
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
